"""Random programs on randomly chosen devices give what NumPy gives, which knows of no devices."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import runnel as tf
from runnel.runtime.session import session as sessions
from runnel.runtime.state.step_context import StepContext
from tests.both_tiers import COMPILED, INTERPRETED
from tests.execution_modes import forced
from tests.runtime.program_generator import random_program
from tests.runtime.test_fuzz import SEEDS, assert_equal, fuzz

DEVICES = 3


def scatter(seed: int) -> Callable[[Any], str]:
    """A device function: one of the devices for each operation, by chance."""
    return lambda op: f"/cpu:{zlib.crc32(f'{seed} {op.name}'.encode()) % DEVICES}"


def session(level: int, optimised: bool = True) -> tf.Session:
    config = tf.ConfigProto(device_count={"CPU": DEVICES})
    config.graph_options.optimizer_options.global_jit_level = level
    config.graph_options.optimizer_options.opt_level = 0 if optimised else -1
    return tf.Session(config=config)


class FedByQueues:
    """``tf`` for a program whose placeholders are elements of queues, to be put there first."""

    def __init__(self) -> None:
        self.queues: dict[tf.Tensor, tf.QueueBase] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)

    def placeholder(self, dtype: Any, shape: Any) -> tf.Tensor:
        queue = tf.FIFOQueue(1, dtype)
        element = queue.dequeue()
        element.set_shape(shape)
        self.queues[element] = queue
        return element


@contextmanager
def arriving_late(sess: tf.Session, fill: list[tf.Operation], seed: int) -> Iterator[None]:
    """Within the block, whenever a step goes to sleep one of ``fill`` is run, in any order."""
    waiting = list(fill)
    random.Random(seed).shuffle(waiting)
    sleep = StepContext.sleep

    def fill_and_sleep(self: StepContext) -> None:
        while waiting and not self.has_arrived():
            sess.run(waiting.pop())
        sleep(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepContext, "sleep", fill_and_sleep)
        yield
    sess.run(waiting)  # what nothing has waited for


def check(
    seed: int,
    levels: tuple[int, ...] = (INTERPRETED, COMPILED),
    max_steps: int = 30,
    queued: str = "",
) -> int:
    """Compares every fetch and every variable with NumPy; returns the number of transfers.

    ``queued`` says whether inputs come from queues, and when: "before" or "late".
    """
    program = random_program(seed, max_steps=max_steps)
    fetches = list(range(len(program.steps)))
    transfers = 0
    with tf.Graph().as_default(), tf.device(scatter(seed)):
        described = FedByQueues() if queued else tf
        tensors, variables = program.build(described)
        init = tf.global_variables_initializer()
        feed_dict = {tensors[number]: value for number, value in program.feeds.items()}
        fill: list[tf.Operation] = []
        if isinstance(described, FedByQueues):
            fill = [described.queues[t].enqueue(value) for t, value in feed_dict.items()]
            feed_dict = {}
        for level in levels:
            state = list(program.initial)
            with session(level) as sess:
                sess.run(init)
                for number in range(2):
                    expected = program.compute(fetches, state)
                    late = arriving_late(sess, fill, seed) if queued == "late" else nullcontext()
                    if queued == "before":
                        sess.run(fill)
                    with late:
                        found = sess.run([tensors[f] for f in fetches], feed_dict)
                    where = f"seed {seed}, level {level}, run {number}"
                    for f, a, b in zip(fetches, found, expected, strict=True):
                        assert_equal(a, b, f"{where}: step {f} {program.steps[f]}")
                    for a, b in zip(sess.run(variables), state, strict=True):
                        assert_equal(a, b, f"{where}: a variable")
                transfers += count_transfers(sess)
    return transfers


def count_transfers(sess: sessions.BaseSession) -> int:
    schedules = [prepared.plan.schedule for prepared in sess._prepared.values()]
    return sum(len(unit.transfers) for schedule in schedules for unit in schedule.units)


@given(SEEDS)
@fuzz(10)
def test_where_operations_run_does_not_change_what_they_compute(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("queued", ["before", "late"])
@given(seed=SEEDS)
@fuzz(4)
def test_nor_does_it_where_the_step_takes_its_inputs_from_queues(queued: str, seed: int) -> None:
    check(seed, queued=queued)


def test_the_programs_do_cross_devices() -> None:
    assert check(11, (INTERPRETED,)) > 5
    assert check(11, (INTERPRETED,), queued="late") > 5


def test_on_xla_devices_of_their_own() -> None:
    """The same in a process that has as many XLA devices: arrays really move."""
    code = "from tests.runtime.test_random_placement import check_many; check_many(6)"
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "3 devices" in done.stdout


def check_many(count: int) -> None:
    """Runs in a process of its own."""
    import jax

    rng = random.Random(7)
    for _ in range(count):
        seed = rng.randrange(2**32)
        check(seed, (COMPILED,), max_steps=20)
        check(seed, (COMPILED,), max_steps=20, queued="late")
    print(len(jax.devices()), "devices")
    with tf.Graph().as_default(), session(COMPILED) as sess:
        with tf.device("/cpu:2"):
            v = tf.Variable(np.ones((4, 4), np.float32))
            update = v.assign_add(tf.matmul(v, v))
        sess.run(v.initializer)
        sess.run(update)
        (cell,) = sess._task._containers[""].values()
        assert cell.value.devices() == {jax.devices()[2]}


# With branches and loops -------------------------------------------------------------------------


def random_flow(seed: int, updates: bool = True) -> tuple[list[tf.Tensor], tf.Tensor, tf.Variable]:
    """Values that come through nested conditionals and loops, with state inside; gradients.

    Without ``updates`` the variable is only read.
    """
    rng = random.Random(seed)
    x = tf.placeholder(tf.float64, [2], name="x")
    v = tf.Variable([0.5, -0.5], dtype=tf.float64, use_resource=rng.random() < 0.5)

    def expression(values: list[tf.Tensor], depth: int) -> tf.Tensor:
        a, b = rng.choice(values), rng.choice(values)
        kind = rng.randrange(7 if depth < 2 else 4)
        if kind == 0:
            return tf.tanh(a + 0.5 * b)
        if kind == 1:
            return tf.reverse(a, [0]) - b * 0.25
        if kind == 2 and not updates:
            return tf.tanh(a) - v
        if kind == 2:
            with tf.control_dependencies([v.assign_add(0.125 * tf.tanh(a))]):
                return tf.identity(b) + v
        if kind <= 3:
            return tf.sin(a) * b
        if kind == 4:
            inner = [*values]
            return tf.cond(
                tf.reduce_sum(a) > tf.reduce_sum(b),
                lambda: expression(inner, depth + 1),
                lambda: expression(inner, depth + 1),
            )
        trips = rng.randrange(4)
        return tf.while_loop(
            lambda i, y: i < trips,
            lambda i, y: (i + 1, expression([*values, y], depth + 1)),
            (tf.constant(0), a),
        )[1]

    values: list[tf.Tensor] = [x]
    for _ in range(rng.randint(3, 7)):
        values.append(expression(values, 0))
    gradients = tf.gradients(values[-1], [x, v])
    return [*values[1:], *(g for g in gradients if g is not None)], x, v


@given(SEEDS)
@fuzz(10)
def test_loops_and_conditionals_as_wholes_give_what_their_primitives_give(seed: int) -> None:
    def results(mode: str) -> list[Any]:
        with forced(mode), tf.Graph().as_default():
            values, x, v = random_flow(seed)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                return [sess.run([*values, v], {x: fed}) for fed in ([0.3, -1.2], [-2.0, 0.7])]

    expected = results("event-driven")
    for mode in ("structured", "compiled"):
        for found, wanted in zip(results(mode), expected, strict=True):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, 1e-9, 1e-9, err_msg=f"seed {seed}, {mode}")


@given(SEEDS)
@fuzz(10)
def test_branches_and_loops_may_be_scattered_too(seed: int) -> None:
    check_flow(seed)


@pytest.mark.parametrize("seed", [3280387012, 2255701793])
def test_a_dead_value_is_not_moved_and_a_constant_is_with_its_branch(seed: int) -> None:
    check_flow(seed)


def check_flow(seed: int) -> None:
    """Compares what is scattered with what is on one device."""
    fed = [np.float64([0.3, -1.2]), np.float64([-2.0, 0.7])]

    def results(devices: Any, level: int) -> list[Any]:
        with tf.Graph().as_default(), tf.device(devices):
            values, x, v = random_flow(seed)
            with session(level) as sess:
                sess.run(tf.global_variables_initializer())
                return [(sess.run(values, {x: value}), sess.run(v)) for value in fed]

    expected = results(None, INTERPRETED)
    for level in (INTERPRETED, COMPILED):
        for (a, state_a), (b, state_b) in zip(results(scatter(seed), level), expected, strict=True):
            for one, other in zip(a, b, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9, err_msg=f"seed {seed}")
            np.testing.assert_allclose(state_a, state_b, 1e-9, err_msg=f"seed {seed}")
