"""Counters: how often a loop runs, where that follows from what its condition compares."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.prune import prune
from runnel.passes.structure.counters import Bound, counters_of
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import Loop, structure_of

RELATIONS = {
    "Less": (operator.lt, tf.less),
    "LessEqual": (operator.le, tf.less_equal),
    "Greater": (operator.gt, tf.greater),
    "GreaterEqual": (operator.ge, tf.greater_equal),
}
MIRRORED = {
    "Less": "Greater",
    "LessEqual": "GreaterEqual",
    "Greater": "Less",
    "GreaterEqual": "LessEqual",
}


def the_loop(fetches, feeds=()) -> Loop:
    program = raise_control_flow(prune(fetches, [], feeds))
    assert program is not None
    (loop,) = [s for node in program.nodes if isinstance(s := structure_of(node), Loop)]
    return loop


def counters(condition, body, variables, feeds=()):
    results = tf.while_loop(condition, body, variables, return_same_structure=True)
    return counters_of(the_loop(results, feeds))


def constant(loop: Loop, value: int) -> int:
    return int(loop.condition.producers()[value].attrs["value"])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("step", [-3, -2, -1, 0, 1, 2, 3])
def test_the_number_of_iterations_is_that_of_running_the_loop(relation, step):
    compare, _ = RELATIONS[relation]
    for first in range(-6, 7):
        for limit in range(-6, 7):
            i, count = first, 0
            while compare(i, limit) and count < 100:
                i, count = i + step, count + 1
            found = Bound(0, step, relation, 0).iterations(first, limit)
            assert found == (None if count == 100 else count), (first, limit)


def test_a_counter_is_found_among_other_variables():
    found = counters(lambda s, i: i < 5, lambda s, i: (s * 2.0, i + 2), [1.0, 0])
    assert found.exact
    assert found.steps == {1: 2}
    (bound,) = found.bounds
    assert (bound.variable, bound.step, bound.relation) == (1, 2, "Less")


@pytest.mark.parametrize(
    ("body", "step"),
    [
        (lambda i: i + 3, 3),
        (lambda i: 3 + i, 3),
        (lambda i: i - 3, -3),
        (lambda i: tf.add(i, tf.identity(3)), 3),
        (lambda i: tf.identity(tf.identity(i) + 3), 3),
        (lambda i: 3 - i, None),
        (lambda i: i * 2, None),
        (lambda i: i + i, None),
        (lambda i: i, None),
        (lambda i: i + 1 + 1, None),
    ],
)
def test_a_variable_grows_by_a_constant_or_is_no_counter(body, step):
    found = counters(lambda i: i < 100, body, [1])
    assert found.steps == ({} if step is None else {0: step})
    assert found.exact == (step is not None)
    assert len(found.bounds) == (step is not None)


@pytest.mark.parametrize(
    "start",
    [1.0, np.array([1], np.int32)],
    ids=["a float", "a vector"],
)
def test_only_single_integers_count(start):
    x = tf.constant(start)
    found = counters(lambda i: tf.reduce_sum(i) < 10, lambda i: i + 1, [x])
    assert not found.bounds and not found.steps and not found.exact


def test_a_step_that_comes_from_outside_the_loop_is_not_known():
    n = tf.placeholder(tf.int32, [])
    found = counters(lambda i: i < 10, lambda i: i + n, [0], [n])
    assert not found.steps and not found.bounds


# Limits ---------------------------------------------------------------------------------------


def test_a_limit_may_come_from_outside_and_be_computed_in_the_condition():
    n = tf.placeholder(tf.int32, [])
    for limit in (lambda: n, lambda: n * 2, lambda: tf.identity(n), lambda: tf.minimum(n, 7)):
        found = counters(lambda i, limit=limit: i < limit(), lambda i: i + 1, [0], [n])
        assert found.exact and len(found.bounds) == 1


def test_a_limit_that_may_change_is_none():
    bounds = counters(lambda i, n: i < n, lambda i, n: (i + 1, n - 1), [0, 10])
    assert not bounds.bounds and not bounds.exact
    assert bounds.steps == {0: 1, 1: -1}
    of_itself = counters(lambda i: i < i * 2, lambda i: i + 1, [1])
    assert not of_itself.bounds


def test_a_limit_that_is_drawn_at_random_is_none():
    def condition(i):
        return i < tf.random_uniform([], 5, 10, tf.int32, seed=1)

    assert not counters(condition, lambda i: i + 1, [0]).bounds


def test_a_limit_that_a_variable_holds_is_none():
    v = tf.Variable(5, use_resource=True)

    def body(i):
        with tf.control_dependencies([v.assign_sub(1)]):
            return i + 1

    assert not counters(lambda i: i < v, body, [0]).bounds


def test_a_loop_variable_that_never_changes_is_taken_for_one_that_may():
    """Nothing is claimed of it, so nothing can be wrong."""
    found = counters(lambda i, n: i < n, lambda i, n: (i + 1, n), [0, 10])
    assert not found.exact


# Conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        lambda i: tf.not_equal(i, 5),
        lambda i: tf.logical_not(i >= 5),
        lambda i: tf.logical_or(i < 5, i < 3),
        lambda i: tf.constant(False),
    ],
    ids=["not equal", "not", "or", "constant"],
)
def test_a_condition_of_another_form_bounds_nothing(condition):
    found = counters(condition, lambda i: i + 1, [0])
    assert not found.bounds and not found.exact


def test_several_comparisons_bound_together_and_anything_else_makes_them_inexact():
    def both(i, j, s):
        return tf.logical_and(tf.logical_and(i < 9, tf.identity(j > 0)), i <= 6)

    def body(i, j, s):
        return i + 1, j - 2, s * 2.0

    exact = counters(both, body, [0, 10, 1.0])
    assert exact.exact
    found = {(b.variable, b.step, b.relation) for b in exact.bounds}
    assert found == {(0, 1, "Less"), (1, -2, "Greater"), (0, 1, "LessEqual")}

    def data_too(i, j, s):
        return tf.logical_and(both(i, j, s), s < 20.0)

    inexact = counters(data_too, body, [0, 10, 1.0])
    assert not inexact.exact and len(inexact.bounds) == 3


def test_a_loop_in_a_branch_and_one_in_a_loop_have_counters_of_their_own():
    p = tf.placeholder(tf.bool, [])

    def inner(n):
        return tf.while_loop(lambda i: i < n, lambda i: i + 2, [0])

    in_branch = tf.cond(p, lambda: inner(9), lambda: 0)
    program = raise_control_flow(prune([in_branch], [], [p]))
    (conditional,) = [s for n in program.nodes if (s := structure_of(n)) is not None]
    found = [
        counters_of(s)
        for branch in conditional.programs
        for n in branch.nodes
        if isinstance(s := structure_of(n), Loop)
    ]
    assert [(c.exact, c.steps) for c in found] == [(True, {0: 2})]

    outer = tf.while_loop(lambda j, s: j < 3, lambda j, s: (j + 1, s + inner(j)), [0, 0])[1]
    loop = the_loop([outer])
    (nested,) = [s for n in loop.body.nodes if isinstance(s := structure_of(n), Loop)]
    assert counters_of(loop).exact and counters_of(nested).exact, "j stays as it is inside"


@pytest.mark.parametrize("seed", range(30))
def test_random_conditions_run_as_often_as_the_counters_say(seed):
    """Against the loop in plain Python: exact counters give its number, others at least it."""
    rng = np.random.default_rng(seed)
    starts = [int(n) for n in rng.integers(-5, 6, 2)]
    steps = [int(rng.choice([-2, -1, 1, 2])) for _ in range(2)]
    terms = []
    for _ in range(rng.integers(1, 4)):
        which = int(rng.integers(2))
        name = rng.choice(
            ["Less", "LessEqual"] if steps[which] > 0 else ["Greater", "GreaterEqual"]
        )
        terms.append((which, str(name), int(rng.integers(-10, 11)), bool(rng.integers(2))))
    with_data = bool(rng.integers(2))

    def condition(i, j, s):
        found = []
        for which, name, limit, mirrored in terms:
            one, relation = (i, j)[which], RELATIONS[name][1]
            turned = RELATIONS[MIRRORED[name]][1]
            found.append(turned(limit, one) if mirrored else relation(one, limit))
        if with_data:
            found.append(s < 3.0)
        while len(found) > 1:
            found.append(tf.logical_and(found.pop(0), found.pop(0)))
        return found[0]

    def body(i, j, s):
        return i + steps[0], j + steps[1], s + 1.0

    loop = the_loop(tf.while_loop(condition, body, [*starts, 0.0]))
    found = counters_of(loop)
    assert found.exact == (not with_data)
    state, count = list(starts), 0
    while all(RELATIONS[name][0](state[which], limit) for which, name, limit, _ in terms) and not (
        with_data and count >= 3
    ):
        state, count = [n + step for n, step in zip(state, steps)], count + 1
    limits = [b.iterations(starts[b.variable], constant(loop, b.limit)) for b in found.bounds]
    if found.exact:
        assert min(limits) == count
    else:
        assert min(limits) >= count
