"""Groups without a network: messages late, in any order between tasks; members that fail."""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.queues import exchanges
from runnel.queues.collective import Collectives
from runnel.queues.collective_call import Call
from runnel.queues.waiter import Waiter

ONES = exchanges.all_reduce(np.ones(9000), "Add", False)
LOST = "lost"
"""In place of a message: the connection has ended."""


class Told(Waiter):
    """Keeps what it is told."""

    __slots__ = ("result", "error")

    def __init__(self) -> None:
        super().__init__()
        self.result: Any = None
        self.error: Exception | None = None

    def complete(self, make: Any) -> None:
        assert self.result is None
        assert self.error is None
        self.result = make()

    def fail(self, error: Exception) -> None:
        assert self.result is None
        assert self.error is None
        self.error = error


class Network:
    """Tasks whose messages arrive when they are let; those of one pair stay in order."""

    def __init__(self, count: int) -> None:
        self.names = [f"/job:worker/task:{i}" for i in range(count)]
        self.tasks: dict[str, Collectives] = {}
        self.waiting: dict[tuple[str, str], deque[tuple[str, np.ndarray]]] = {}
        self.unreachable: set[str] = set()
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        task = self.tasks[name] = Collectives()

        def post(to: str, key: str, value: np.ndarray) -> None:
            if to in self.unreachable:
                raise tf.errors.UnavailableError(None, None, f"{to} cannot be reached")
            self.waiting.setdefault((name, to), deque()).append((key, np.array(value)))

        task.connect(name, self.names[0], post)

    def call(
        self, index: int, begin: Any, group: int = 1, instance: int = 7, size: int | None = None
    ) -> Told:
        told = Told()
        size = size or len(self.names)
        self.tasks[self.names[index]].start(Call("CPU:0", group, size, instance, begin, told))
        return told

    def deliver(self, rng: random.Random, most: int = 1000) -> None:
        """Lets messages arrive, in a random order, until none are left or ``most`` have come."""
        for _ in range(most):
            pairs = [pair for pair, queue in self.waiting.items() if queue]
            if not pairs:
                return
            sender, to = rng.choice(pairs)
            key, value = self.waiting[sender, to].popleft()
            if key == LOST:
                self.tasks[to].lost(sender, f"{sender} is lost")
            else:
                self.tasks[to].deliver(sender, key, value)

    def kill(self, index: int) -> None:
        """A task dies: what it had sent is lost, and all others notice."""
        gone = self.names[index]
        for pair in [p for p in self.waiting if gone in p]:
            del self.waiting[pair]
        for name in self.names:
            if name != gone:
                self.tasks[name].lost(gone, f"{gone} is lost")

    def kill_unnoticed(self, index: int) -> None:
        """A task dies; each of the others notices it some time after what it had sent."""
        gone = self.names[index]
        self.unreachable.add(gone)
        for name in self.names:
            if name != gone:
                self.waiting.pop((name, gone), None)
                last = (LOST, np.zeros(0))
                self.waiting.setdefault((gone, name), deque()).append(last)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [3, 8000], ids=["sent whole", "around a ring"])
@pytest.mark.parametrize(("merge", "by"), list(exchanges.MERGES.items()))
def test_all_members_get_the_same_bits(count, size, merge, by):
    for seed in range(5):
        rng = random.Random(seed)
        network = Network(count)
        values = np.random.default_rng(seed).normal(size=(count, size))
        order = list(range(count))
        rng.shuffle(order)
        told = {i: network.call(i, exchanges.all_reduce(values[i], merge, False)) for i in order}
        network.deliver(rng)
        [first] = told[0].result
        np.testing.assert_allclose(first, by.reduce(values), rtol=1e-12, atol=1e-12)
        for other in told.values():
            assert other.result[0].tobytes() == first.tobytes()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "dtype", [tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64]
)
def test_sums_and_means_of_every_type_and_length_are_numpys(count, dtype):
    kind = np.dtype(dtype.as_numpy_dtype)
    cached, ring = exchanges.CACHED, exchanges.SMALL_BYTES // kind.itemsize
    shapes = [(), (0,), (2, 0), (5, 3), (ring,), (ring + 1,), (ring + 2,)]
    shapes += [(cached - 1,), (cached + 1,), (2 * cached + 1,)]
    rng = np.random.default_rng(count)
    for divides, shape in itertools.product([False, True], shapes):
        values = rng.integers(-4, 5, (count, *shape)).astype(kind)
        values.flags.writeable = False
        kept = values.copy()
        network = Network(count)
        told = [
            network.call(i, exchanges.all_reduce(values[i], "Add", divides)) for i in range(count)
        ]
        network.deliver(random.Random(0))
        expected = values.astype(np.float64).sum(0)  # exact: these are small integers
        if divides:
            expected = expected / count
        if kind.kind == "i":
            expected = np.trunc(expected)
        for call in told:
            [found] = call.result
            assert (found.dtype, found.shape) == (kind, shape)
            assert found.tobytes() == told[0].result[0].tobytes()
            np.testing.assert_array_equal(found, expected.astype(kind))
            assert not np.shares_memory(found, values)
        assert values.tobytes() == kept.tobytes()


def test_the_mean_of_integers_is_cut_towards_zero_down_to_the_smallest():
    least = np.iinfo(np.int32).min
    values = np.array([[least, -7, 7, -1], [1, 0, 0, 0]], np.int32)
    network = Network(2)
    told = [network.call(i, exchanges.all_reduce(values[i], "Add", True)) for i in range(2)]
    network.deliver(random.Random(0))
    assert told[0].result[0].tolist() == [int((least + 1) / 2), -3, 3, 0]


def test_rounds_do_not_mix_though_members_are_apart():
    for seed in range(30):
        rng = random.Random(seed)
        network = Network(3)
        told: list[list[Told]] = [[], [], []]
        while min(map(len, told)) < 6:
            member = rng.randrange(3)
            if len(told[member]) < 6:
                value = np.full(4, 10.0 * len(told[member]) + member)
                told[member].append(network.call(member, exchanges.all_reduce(value, "Add", True)))
            network.deliver(rng, most=rng.randrange(6))
        network.deliver(rng)
        for calls in told:
            means = [call.result[0][0] for call in calls]
            assert means == [10.0 * i + 1 for i in range(6)]


def test_a_broadcast_and_a_gather():
    rng = random.Random(0)
    network = Network(3)
    value = np.arange(6.0).reshape(2, 3)
    begins = [exchanges.broadcast_receive(), exchanges.broadcast_send(value)]
    told = [network.call(i, begins[i % 2]) for i in range(3)]
    parts = [np.full((i + 1, 2), i) for i in range(3)]
    gathered = [network.call(i, exchanges.all_gather(parts[i]), instance=8) for i in range(3)]
    network.deliver(rng)
    for call in told:
        np.testing.assert_array_equal(call.result[0], value)
    for call in gathered:
        np.testing.assert_array_equal(call.result[0], np.concatenate(parts))


def test_members_are_in_the_order_of_their_tasks():
    network = Network(12)
    told = [network.call(i, exchanges.all_gather(np.array([i]))) for i in reversed(range(12))]
    network.deliver(random.Random(1))
    assert all(call.result[0].tolist() == list(range(12)) for call in told)


def test_different_shapes_fail_at_every_member():
    network = Network(3)
    values = [np.zeros(3), np.zeros(4), np.zeros(3)]
    told = [network.call(i, exchanges.all_reduce(values[i], "Add", False)) for i in range(3)]
    network.deliver(random.Random(0))
    assert all(isinstance(call.error, tf.errors.OpError) for call in told)
    assert "different values" in str(told[0].error)


def settled(network: Network, rng: random.Random, calls: dict[int, Told]) -> None:
    """Every member makes calls, one after the other, until one has succeeded at all of them."""
    for _ in range(6):
        for member in range(len(network.names)):
            if member not in calls or calls[member].error or calls[member].result:
                calls[member] = network.call(member, ONES)
        network.deliver(rng)
        if all(call.result for call in calls.values()):
            break
    assert all((call.result[0] == len(network.names)).all() for call in calls.values())


def test_a_member_that_gives_up_fails_the_others_and_the_group_forms_anew():
    failed = 0
    for seed in range(60):
        rng = random.Random(seed)
        network = Network(3)
        calls = {i: network.call(i, ONES) for i in range(3)}
        network.deliver(rng, most=rng.randrange(20))
        gone = calls.pop(1)
        if gone.result is None:
            assert network.tasks[network.names[1]].cancel(gone)
        network.deliver(rng)
        failed += any(call.error is not None for call in calls.values())
        settled(network, rng, calls)
    assert failed > 10


def test_a_lost_member_fails_the_others_and_they_go_on_when_it_is_back():
    failed = 0
    for seed in range(60):
        rng = random.Random(seed)
        network = Network(3)
        calls = {i: network.call(i, ONES) for i in range(3)}
        network.deliver(rng, most=rng.randrange(20))
        network.kill(2)
        network.start(network.names[2])
        del calls[2]
        network.deliver(rng)
        failed += any(call.error is not None for call in calls.values())
        settled(network, rng, calls)
    assert failed > 10


@pytest.mark.parametrize("leader_takes_part", [True, False])
def test_nobody_waits_for_a_member_that_died_while_the_group_was_formed(leader_takes_part):
    """Whoever notices it first, and whether or not it has heard of the group by then."""
    members = [0, 1, 2, 3] if leader_takes_part else [1, 2, 3]
    failed = 0
    for seed in range(200):
        rng = random.Random(seed)
        network = Network(4)
        count = len(members)
        sends = exchanges.broadcast_send(np.arange(3.0))
        told = [network.call(i, exchanges.broadcast_receive(), size=count) for i in members[:-1]]
        network.call(3, sends, size=count)
        network.deliver(rng, most=rng.randrange(12))
        network.kill_unnoticed(3)
        network.deliver(rng)
        for call in told:
            if call.result is None and call.error is None:  # it waits for another to join
                pending = network.tasks[network.names[0]]._forming
                assert pending.get(1), "the leader waits for others, too"
        failed += any(call.error is not None for call in told)
    assert failed > 20


def test_a_member_whom_the_leader_does_not_hear_joins_the_next_time():
    rng = random.Random(0)
    network = Network(2)
    network.unreachable.add(network.names[0])
    failed = network.call(1, ONES)
    assert isinstance(failed.error, tf.errors.UnavailableError)
    network.unreachable.clear()
    told = [network.call(0, ONES), network.call(1, ONES)]
    network.deliver(rng)
    assert all((call.result[0] == 2).all() for call in told)


def test_a_member_that_gives_up_while_it_is_told_of_the_group_is_not_waited_for(monkeypatch):
    """The leader's word comes between the end of the call and that of the group."""
    rng = random.Random(0)
    network = Network(2)
    first, second = network.call(0, ONES), network.call(1, ONES)
    other = network.tasks[network.names[1]]
    network.deliver(rng, most=1)  # the second has joined: the leader's word is under way
    end = Collectives._end

    def end_late(self: Collectives, *arguments: Any, **more: Any) -> None:
        if self is other:
            monkeypatch.setattr(Collectives, "_end", end)
            network.deliver(rng)
        end(self, *arguments, **more)

    monkeypatch.setattr(Collectives, "_end", end_late)
    assert other.cancel(second)
    network.deliver(rng)
    assert isinstance(first.error, tf.errors.AbortedError)
    settled(network, rng, {0: first})


def test_a_group_has_one_size():
    network = Network(2)
    network.call(0, exchanges.broadcast_receive())
    hub = network.tasks[network.names[0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 members for one"):
        hub.start(Call("CPU:0", 1, 3, 7, exchanges.broadcast_receive(), Told()))
