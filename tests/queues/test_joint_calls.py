"""Groups whose members exchange through a fabric: all enter its exchanges in one order."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.queues import exchanges
from runnel.queues.collective import Collectives
from runnel.queues.collective_call import Call
from runnel.queues.joint_calls import Joint, JointPlan, agreed
from tests.queues.test_collective import Network, Told


class Loom:
    """Joins the tasks of a network; an exchange ends when all have entered it, in their order."""

    def __init__(self, tasks: list[str]) -> None:
        self.tasks = tasks
        self.entered: dict[str, list[Any]] = {task: [] for task in tasks}
        self.broken = ""
        self.is_best = True

    def advance(self, number: int) -> None:
        """Ends the exchange ``number``, if all tasks are in it."""
        if not all(len(entered) > number for entered in self.entered.values()):
            return
        found = [entered[number] for entered in self.entered.values()]
        assert len({plan for plan, _, _ in found}) == 1, "all are in the same exchange"
        total = sum(value for _, value, _ in found)
        for _, _, told in found:
            told(total, None)


class LoomEnd:
    """A task's end of a loom."""

    def __init__(self, loom: Loom, task: str) -> None:
        self._loom, self._task = loom, task

    tasks = property(lambda self: self._loom.tasks)
    broken = property(lambda self: self._loom.broken)

    def is_best(self, place: str) -> bool:
        return self._loom.is_best

    def place_of(self, device: str) -> str:
        return f"loom/{self._task.replace('/', '.')}"

    def held(self, value: Any) -> Any:
        return value

    def fail(self, why: str) -> None:
        self._loom.broken = self._loom.broken or why

    def launch(
        self, places: Sequence[str], rank: int, plan: JointPlan, value: Any, told: Any
    ) -> None:
        entered = self._loom.entered[self._task]
        entered.append((plan, value, told))
        self._loom.advance(len(entered) - 1)


class JoinedNetwork(Network):
    """Tasks that a loom joins."""

    def __init__(self, count: int) -> None:
        self.loom: Loom | None = None
        super().__init__(count)

    def start(self, name: str) -> None:
        if self.loom is None:
            self.loom = Loom(self.names)
        task = self.tasks[name] = Collectives()

        def post(to: str, key: str, value: np.ndarray) -> None:
            lane = (name, to) if not key.startswith(("go", "void")) else (f"{key} of {name}", to)
            self.waiting.setdefault(lane, deque()).append((key, np.array(value)))

        task.connect(name, self.names[0], post, LoomEnd(self.loom, name))

    def offer(
        self, index: int, value: float, group: int, instance: int, hint: str = "nccl"
    ) -> Told:
        told, array = Told(), np.full(instance, value)
        begin = exchanges.all_reduce(array, "Add", False)
        joint = Joint("reduce", array, "Add", False)
        self.tasks[self.names[index]].start(
            Call("CPU:0", group, len(self.names), instance, begin, told, 0.0, joint, hint)
        )
        return told


def settled(network: JoinedNetwork, rng: random.Random, calls: dict[int, Told], hint: str) -> None:
    """Every member makes calls, one after the other, until one has succeeded at all of them."""
    for _ in range(6):
        for member in range(len(network.names)):
            if member not in calls or calls[member].error or calls[member].result:
                calls[member] = network.offer(member, 1.0, 1, 3, hint)
        network.deliver(rng)
        if all(call.result for call in calls.values()):
            break
    for call in calls.values():
        np.testing.assert_array_equal(call.result[0], np.full(3, len(network.names)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whatever_the_order_of_offers_and_messages_nobody_is_left_in_an_exchange(count):
    for seed in range(40):
        rng = random.Random(seed)
        network = JoinedNetwork(count)
        calls = [(member, *call) for member in range(count) for call in [(1, 3), (1, 4), (2, 5)]]
        rng.shuffle(calls)
        told = {}
        for member, group, instance in calls:
            told[member, group, instance] = network.offer(member, member + 1.0, group, instance)
            network.deliver(rng, most=rng.randrange(8))
        network.deliver(rng)
        for (_, _, instance), call in told.items():
            total = count * (count + 1) / 2
            np.testing.assert_array_equal(call.result[0], np.full(instance, total))
        assert [len(entered) for entered in network.loom.entered.values()] == [3] * count


def test_a_call_that_is_given_up_leaves_nobody_in_an_exchange_and_the_group_forms_anew():
    failed = 0
    for seed in range(80):
        rng = random.Random(seed)
        network = JoinedNetwork(3)
        told = {i: network.offer(i, 1.0, 1, 3) for i in range(3)}
        network.deliver(rng, most=rng.randrange(25))
        gone = rng.randrange(3)
        if told[gone].result is None:
            assert network.tasks[network.names[gone]].cancel(told[gone])
            del told[gone]
        network.deliver(rng)
        failed += any(call.error is not None for call in told.values())
        settled(network, rng, told, "nccl")
        assert len({len(entered) for entered in network.loom.entered.values()}) == 1
    assert failed > 10


def test_a_lost_task_fails_the_calls_and_the_next_go_over_the_tasks_connections():
    for seed in range(40):
        rng = random.Random(seed)
        network = JoinedNetwork(3)
        told = [network.offer(i, 1.0, 1, 3) for i in range(3)]
        network.deliver(rng, most=rng.randrange(25))
        network.kill(2)
        network.start(network.names[2])
        network.deliver(rng)
        settled(network, rng, {i: told[i] for i in range(2)}, "auto")
        strict = [network.offer(i, 2.0, 9, 3, "nccl") for i in range(3)]
        network.deliver(rng)
        assert any("lost" in str(call.error) for call in strict)
        assert all(isinstance(call.error, tf.errors.OpError) for call in strict)


@pytest.mark.parametrize("is_best", [True, False])
@pytest.mark.parametrize("hint", ["auto", "nccl", "ring"])
def test_the_hint_says_which_way_a_call_goes(hint, is_best):
    network = JoinedNetwork(2)
    network.loom.is_best = is_best
    told = [network.offer(i, 1.0, 1, 3, hint) for i in range(2)]
    network.deliver(random.Random(0))
    assert [call.result[0].tolist() for call in told] == [[2.0] * 3] * 2
    through = hint == "nccl" or (hint == "auto" and is_best)
    assert [len(entered) for entered in network.loom.entered.values()] == [int(through)] * 2


@pytest.mark.parametrize(
    "descriptions",
    [
        ["reduce float32 [2] Add 0", "reduce float32 [3] Add 0"],
        ["reduce float32 [2] Add 0", "reduce float64 [2] Add 0"],
        ["reduce float32 [2] Add 0", "reduce float32 [2] Mul 0"],
        ["gather float32 [2,3]  0", "gather float32 [2,4]  0"],
        ["reduce float32 [2] Add 0", "receive"],
        ["receive", "receive"],
        ["send float32 [2]  0", "send float32 [2]  0"],
    ],
)
def test_members_that_do_not_fit_are_refused(descriptions):
    with pytest.raises(tf.errors.InvalidArgumentError, match="different values"):
        agreed(descriptions)


def test_every_member_reads_the_same_plan():
    value = np.zeros((2, 3), np.int32)
    gathered = agreed([Joint("gather", value[:rows]).described() for rows in (2, 0, 1)])
    assert gathered.shapes == ((2, 3), (0, 3), (1, 3))
    sent = agreed(["receive", Joint("send", np.float64(1.5)).described(), "receive"])
    assert (sent.kind, sent.root, sent.dtype, sent.shapes) == ("broadcast", 1, np.float64, ((),))
