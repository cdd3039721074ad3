"""A step in parts, each written to bytes and read back, does what the whole does."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED
from tests.runtime.parts import Step, Tasks
from tests.runtime.program_generator import random_program
from tests.runtime.test_fuzz import SEEDS, assert_equal, fuzz
from tests.runtime.test_random_placement import FedByQueues, random_flow, scatter, session
from tests.sleepers import await_sleepers

TWO = {0: "worker", 1: "ps", 2: "worker"}
THREE = {0: "a", 1: "b", 2: "c"}


def tasks(names: dict[int, str], level: int) -> Tasks:
    return Tasks(lambda device: names[device.index], level)


def check_program_in_parts(seed: int, names: dict[int, str], level: int, queued: bool) -> int:
    """Compares every fetch and every variable with NumPy; returns how many parts there were."""
    program = random_program(seed, max_steps=20)
    fetches = list(range(len(program.steps)))
    with tf.Graph().as_default(), tf.device(scatter(seed)):
        described = FedByQueues() if queued else tf
        tensors, variables = program.build(described)
        init = tf.global_variables_initializer()
        feeds = {tensors[number]: value for number, value in program.feeds.items()}
        fill = []
        if isinstance(described, FedByQueues):
            fill = [described.queues[t].enqueue(value) for t, value in feeds.items()]
            feeds = {}
        cluster = tasks(names, level)
        state = list(program.initial)
        cluster.run([init])
        for number in range(2):
            expected = program.compute(fetches, state)
            if fill:
                cluster.run(fill)
            found = cluster.run([tensors[f] for f in fetches], feeds)
            where = f"seed {seed}, level {level}, run {number}"
            for f, a, b in zip(fetches, found, expected, strict=True):
                assert_equal(a, b, f"{where}: step {f} {program.steps[f]}")
            for a, b in zip(cluster.run(variables), state, strict=True):
                assert_equal(a, b, f"{where}: a variable")
    return len(cluster.tasks)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@given(seed=SEEDS)
@fuzz(4)
def test_a_random_program_in_two_and_three_parts_gives_what_numpy_gives(
    level: int, queued: bool, seed: int
) -> None:
    assert check_program_in_parts(seed, TWO, level, queued) == 2
    assert check_program_in_parts(seed, THREE, level, queued) == 3


# With branches and loops that are cut ------------------------------------------------------------


def flow_in_parts(seed: int, names: dict[int, str], level: int, updates: bool = True) -> None:
    fed = [np.float64([0.3, -1.2]), np.float64([-2.0, 0.7])]
    with tf.Graph().as_default(), session(INTERPRETED) as sess:
        with tf.device(scatter(seed)):
            values, x, v = random_flow(seed, updates)
            init = tf.global_variables_initializer()
        sess.run(init)
        expected = [(sess.run(values, {x: value}), sess.run(v)) for value in fed]
        cluster = tasks(names, level)
        cluster.run([init])
        for value, (wanted, state) in zip(fed, expected, strict=True):
            found = cluster.run(values, {x: value})
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9, err_msg=f"seed {seed}")
            np.testing.assert_allclose(cluster.run([v])[0], state, 1e-9, err_msg=f"seed {seed}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@given(seed=SEEDS)
@fuzz(4)
def test_loops_and_conditionals_may_be_cut_anywhere(level: int, seed: int) -> None:
    flow_in_parts(seed, TWO, level)
    flow_in_parts(seed, THREE, level)


# Effects of two branches that alternate; what enters a loop and is updated in it, elsewhere; a
# branch that reads a variable after an update that had to wait.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1930549411, 403123852, 1992583342, 1241417136])
def test_neither_can_parts_wait_for_each_other_for_ever(seed: int) -> None:
    flow_in_parts(seed, TWO, INTERPRETED)


def test_a_value_and_its_deadness_come_in_every_iteration():
    def body(i, total):
        with tf.device("/cpu:1"):
            odd = tf.equal(tf.floormod(i, 2), 1)
        with tf.device("/cpu:0"):
            add = tf.cond(odd, lambda: on_second(i), lambda: tf.constant(0))
        return i + 1, total + add

    def on_second(i):
        with tf.device("/cpu:1"):
            return tf.multiply(i, 10)

    with tf.device("/cpu:0"):
        total = tf.while_loop(lambda i, t: i < 6, body, (tf.constant(0), tf.constant(0)))[1]
    with tf.device("/cpu:1"):
        after = tf.negative(total)
    for level in (INTERPRETED, COMPILED):
        assert tasks(THREE, level).run([total, after]) == [90, -90]


# Failure -----------------------------------------------------------------------------------------


def failing(x: tf.Tensor) -> tf.Tensor:
    return tf.check_numerics(x, "not a number", name="checked")  # the culprit


@pytest.mark.timeout(120)
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_part_that_fails_ends_the_others_with_the_first_cause(level):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0, name="v")
        checked = failing(x)
    with tf.device("/cpu:1"):
        queue = tf.FIFOQueue(1, tf.float32, [()])
        never = queue.dequeue(name="never")
        double = tf.multiply(checked, 2.0, name="double")
    with tf.device("/cpu:2"):
        third = tf.add(double, 1.0, name="third")
    with tf.device("/cpu:0"):
        update = v.assign_add(third)
    cluster = tasks(THREE, level)
    cluster.run([v.initializer])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        cluster.run([update, third, never], {x: np.float32("nan")})
    assert "Failed operation: 'checked' (CheckNumerics)" in str(caught.value)
    assert f"{__file__}:" in str(caught.value) and "# the culprit" in str(caught.value)
    assert cluster.run([v]) == [1.0], "nothing that depends on it has happened"
    cluster.run([queue.enqueue(7.0)])
    assert cluster.run([third, never], {x: np.float32(2.0)}) == [5.0, 7.0]


@pytest.mark.timeout(120)
def test_what_waits_for_ever_is_ended_by_its_own_name():
    with tf.device("/cpu:0"):
        queue = tf.FIFOQueue(1, tf.float32, [()])
        element = queue.dequeue(name="element")
    with tf.device("/cpu:1"):
        doubled = tf.multiply(element, 2.0, name="doubled")
    cluster = tasks(THREE, INTERPRETED)
    _, parts = cluster.prepare((doubled,), (), ())
    step = Step(parts)
    runs = threading.Thread(target=step.run_parts, args=({}, {}))
    runs.start()
    for task in cluster.tasks.values():
        assert await_sleepers(task.steps, 1, 30)
    step.rendezvous.abort(tf.errors.UnavailableError(None, None, "the other task is gone"))
    runs.join(30)
    errors = {type(error).__name__: str(error) for error in step.errors.values()}
    assert set(errors) == {"UnavailableError", "CancelledError"}
    assert "Failed operation: 'doubled' (_Recv)" in errors["UnavailableError"]
    assert "'element'" in errors["CancelledError"]


def test_a_send_outside_of_a_step_in_parts_says_so():
    with tf.device("/cpu:0"):
        a = tf.square(tf.constant(2.0), name="a")
    with tf.device("/cpu:1"):
        b = tf.negative(a, name="b")
    cluster = tasks(THREE, INTERPRETED)
    _, parts = cluster.prepare((b,), (), ())
    part = parts[0]
    with pytest.raises(tf.errors.FailedPreconditionError, match="join the parts of one step"):
        part.plan.run([], part.task.steps.begin())
