"""Known values: what a compiled segment can know while it is built, and what compiles for it."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.passes.clusters.known_values import FEW_ITERATIONS, KnownValues
from runnel.passes.program.prune import prune
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.step_resources import StepResources
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import structure_of
from tests.both_tiers import COMPILED, INTERPRETED, session


class Visited:
    """A program gone through: which of its nodes compile, and what they need to know."""

    def __init__(self, fetches, feeds=(), device="CPU", fixed=None, on_host=()):
        program = raise_control_flow(prune(fetches, [], feeds))
        assert program is not None
        self.program = program
        resources = StepResources(program)
        hosted = [v for t in on_host for v in self.node(t).outputs]
        fixed = None if fixed is None else [program.feeds[t] for t in fixed]
        self.known = KnownValues(program, resources, hosted, fixed)
        state = StateAccess(program)
        self.compiles = {n: self.known.visit(n, state, device) for n in program.nodes}

    def node(self, thing):
        op = getattr(thing, "op", thing)
        (node,) = [node for node in self.program.nodes if node.op is op]
        return node

    def compiled(self, thing):
        return self.compiles[self.node(thing)]

    def structured(self):
        """Whether the loops and conditionals of the step compile, in their order."""
        return [ok for node, ok in self.compiles.items() if structure_of(node) is not None]

    def needed(self):
        """The fed tensors whose values must be known."""
        needed = self.known.needed(list(self.program.nodes))
        return {t for t, number in self.program.feeds.items() if number in needed}


def vector(name=None):
    return tf.placeholder(tf.float32, [None], name=name)


# What is known ----------------------------------------------------------------------------------


def test_constants_and_what_comes_from_shapes_are_known_for_nothing():
    x = vector()
    y = tf.reshape(x, tf.stack([tf.shape(x)[0] // 2, 2]))
    visited = Visited([y], [x])
    assert visited.compiled(y)
    assert not visited.needed()


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_a_small_integer_that_is_fed_can_be_known_and_is_then_needed(dtype):
    x, n, unused = vector(), tf.placeholder(dtype, []), tf.placeholder(dtype, [])
    y = tf.reshape(x, tf.stack([n * 2, -1]))
    visited = Visited([y, unused + 1], [x, n, unused])
    assert visited.compiled(y)
    assert visited.needed() == {n}


@pytest.mark.parametrize(
    "shape",
    [tf.placeholder_with_default, "matrix", "unknown rank", "float"],
    ids=["default", "matrix", "unknown rank", "float"],
)
def test_only_small_integers_can_be(shape):
    x = vector()
    if shape == "matrix":
        n = tf.placeholder(tf.int32, [1, 2])
        target = tf.reshape(n, [2])
    elif shape == "unknown rank":
        n = tf.placeholder(tf.int32)
        target = tf.reshape(n, [2])
    elif shape == "float":
        n = tf.placeholder(tf.float32, [2])
        target = tf.cast(n, tf.int32)
    else:
        n = tf.placeholder_with_default([1, 2], [2])
        target = n
    y = tf.reshape(x, target)
    visited = Visited([y], [x, n])
    assert visited.compiled(y) == (shape is tf.placeholder_with_default)


def test_only_values_that_are_fixed_can_be_where_they_are_named():
    x, n, i = vector(), tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    fixed, varying = tf.reshape(x, tf.stack([n, -1])), tf.reshape(x, tf.stack([i, -1]))
    visited = Visited([fixed, varying], [x, n, i], fixed=[n])
    assert visited.compiled(fixed)
    assert not visited.compiled(varying)


def test_what_the_host_computes_is_known_to_what_follows_unless_it_may_change():
    x = vector()
    n = tf.py_func(lambda v: np.int32(2), [x], tf.int32)
    n.set_shape([])
    y = tf.reshape(x, tf.stack([n, -1]))
    visited = Visited([y], [x])
    assert not visited.compiled(n)
    assert visited.compiled(y)
    inside_a_loop = Visited([y], [x], fixed=[])
    assert not inside_a_loop.compiled(y)


def test_what_comes_from_data_is_not_known():
    x = vector()
    y = tf.zeros(tf.stack([tf.cast(tf.reduce_sum(x), tf.int32)]))
    assert not Visited([y], [x]).compiled(y)


def test_a_random_number_is_not_known_though_all_that_it_takes_is():
    drawn = tf.random_uniform([], 1, 5, tf.int32, seed=1)
    y = tf.zeros(tf.stack([drawn]))
    assert not Visited([y]).compiled(y)


def test_a_constant_that_waits_is_no_constant():
    first = tf.constant(1.0)
    with tf.control_dependencies([first]):
        second = tf.constant(2.0)
    visited = Visited([second])
    assert visited.known.is_constant(visited.node(first))
    assert not visited.known.is_constant(visited.node(second))


def test_strings_are_the_hosts_unless_they_explain_a_failure():
    x = tf.placeholder(tf.float32, [])
    text = tf.constant("too small")
    check = tf.Assert(x > 0, [text, x])
    with tf.control_dependencies([check]):
        y = tf.identity(x)
    joined = tf.identity(text)
    visited = Visited([y, joined], [x])
    asserts = [ok for node, ok in visited.compiles.items() if node.op_def.name == "Assert"]
    assert all(asserts)
    assert not visited.compiled(joined)


def test_every_position_of_a_list_of_static_inputs_is_needed():
    x, n, m = (
        tf.placeholder(tf.float32, [None, None]),
        *(tf.placeholder(tf.int32, []) for _ in "nm"),
    )
    y = tf.slice(x, tf.stack([0, n]), tf.stack([m, 1]))
    z = tf.split(tf.sin(x), [1, 2], axis=n)[0]
    assert Visited([y], [x, n, m]).needed() <= {n, m}
    assert n in Visited([z], [x, n]).needed()


# Loops and conditionals -------------------------------------------------------------------------


def test_a_shape_that_a_loop_uses_is_known_inside_and_one_that_varies_is_not():
    x, n = vector(), tf.placeholder(tf.int32, [])

    def total(i):
        return tf.reduce_sum(tf.reshape(x, tf.stack([i, -1])))

    same = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + total(n)), [0, 0.0])[1]
    visited = Visited([same], [x, n])
    assert visited.structured() == [True]
    assert visited.needed() == {n}
    varying = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + total(i)), [1, 0.0])[1]
    assert Visited([varying], [x]).structured() == [False]


def test_a_shape_in_either_branch_is_needed():
    x, p = vector(), tf.placeholder(tf.bool, [])
    n, m = (tf.placeholder(tf.int32, []) for _ in range(2))
    y = tf.cond(
        p,
        lambda: tf.reduce_sum(tf.reshape(x, tf.stack([n, -1]))),
        lambda: tf.reduce_prod(tf.reshape(x, tf.stack([m, -1]))),
    )
    visited = Visited([y], [x, p, n, m])
    assert visited.structured() == [True]
    assert visited.needed() == {n, m}


def test_what_the_host_must_do_inside_keeps_the_whole_on_the_host():
    x = tf.placeholder(tf.float32, [])

    def on_host(s):
        return tf.py_func(lambda v: v, [s], tf.float32)

    def body(i, s):
        result = tf.cond(s > 0, lambda: on_host(s), lambda: s)
        result.set_shape([])
        return i + 1, result

    y = tf.while_loop(lambda i, s: i < 3, body, [0, x])[1]
    assert Visited([y], [x]).structured() == [False]


def test_a_string_that_goes_through_a_loop_keeps_it_on_the_host():
    y = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s), [0, tf.constant("a")])[1]
    assert Visited([y]).structured() == [False]


def test_the_last_value_of_a_counter_is_known_where_the_number_of_iterations_is():
    x, n = vector(), tf.placeholder(tf.int32, [])

    def last(limit):
        return tf.while_loop(lambda i: i < limit, lambda i: i + 2, [0])

    y = tf.zeros(tf.stack([last(n)]))
    visited = Visited([y], [n])
    assert visited.compiled(y)
    assert visited.needed() == {n}
    by_data = tf.zeros(tf.stack([last(tf.cast(tf.reduce_sum(x), tf.int32))]))
    assert not Visited([by_data], [x]).compiled(by_data)
    with session(COMPILED) as sess:
        assert sess.run(y, {n: 5}).shape == (6,)


# What grows -----------------------------------------------------------------------------------


def gradient_of_a_loop(limit, also=None):
    x = tf.constant(1.5)

    def goes_on(i, s):
        within = i < limit
        return within if also is None else tf.logical_and(within, also(s))

    y = tf.while_loop(goes_on, lambda i, s: (i + 1, tf.sin(s) * x), [0, x])[1]
    return tf.gradients(y, x)[0]


def test_a_loop_with_a_gradient_compiles_if_its_iterations_have_a_known_limit():
    n, values = tf.placeholder(tf.int32, []), vector()
    data = tf.cast(tf.reduce_sum(values), tf.int32)
    assert Visited([gradient_of_a_loop(5)]).structured() == [True, True]
    fed = Visited([gradient_of_a_loop(n)], [n])
    assert fed.structured() == [True, True] and fed.needed() == {n}
    pushes, _ = Visited([gradient_of_a_loop(data)], [values]).structured()
    assert not pushes


def test_of_two_limits_the_known_one_is_enough_for_the_smaller_and_both_are_for_the_larger():
    n, values = tf.placeholder(tf.int32, []), vector()
    data = tf.cast(tf.reduce_sum(values), tf.int32)
    smaller = Visited([gradient_of_a_loop(tf.minimum(n, data))], [n, values])
    assert smaller.structured() == [True, True] and smaller.needed() == {n}
    larger = Visited([gradient_of_a_loop(tf.maximum(n, data))], [n, values])
    pushes, _ = larger.structured()
    assert not pushes
    nested = tf.maximum(tf.minimum(n, data), tf.identity(tf.minimum(data, 7)))
    assert Visited([gradient_of_a_loop(nested)], [n, values]).structured() == [True, True]


@pytest.mark.parametrize(
    ("limit", "compiles"), [(FEW_ITERATIONS, True), (FEW_ITERATIONS + 1, False)]
)
def test_room_for_iterations_that_may_not_run_is_made_only_for_few(limit, compiles):
    gradient = gradient_of_a_loop(limit, also=lambda s: s < 1.0)
    pushes, _ = Visited([gradient]).structured()
    assert pushes == compiles


def array_of(limit, index=lambda i: i, write_if=None):
    """The numbers below ``limit``, written by a loop to an array that grows."""
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[])

    def body(i, a):
        def written():
            return a.write(index(i), tf.cast(i, tf.float32)).flow

        flow = written() if write_if is None else tf.cond(write_if, written, lambda: a.flow)
        return i + 1, tf.TensorArray(tf.float32, handle=a.handle, flow=flow)

    return tf.while_loop(lambda i, _: i < limit, body, [0, array])[1].stack()


def test_an_array_may_grow_at_the_counter_of_a_loop_whose_iterations_are_known():
    n, values = tf.placeholder(tf.int32, []), vector()
    visited = Visited([array_of(n)], [n])
    assert visited.structured() == [True] and visited.needed() == {n}
    data = tf.cast(tf.reduce_sum(values), tf.int32)
    assert Visited([array_of(data)], [values]).structured() == [False]
    elsewhere = array_of(n, index=lambda i: i + data)
    assert Visited([elsewhere], [n, values]).structured() == [False]
    perhaps = array_of(n, write_if=data > 3)
    assert Visited([perhaps], [n, values]).structured() == [False]


def test_an_array_that_the_host_keeps_is_not_compiled():
    array = tf.TensorArray(tf.float32, 3, element_shape=[])
    value = array.write(0, 1.0).read(0)
    assert Visited([value]).compiled(value)
    (maker,) = [op for op in tf.get_default_graph().get_operations() if op.type == "TensorArrayV3"]
    assert not Visited([value], on_host=[maker]).compiled(value)


def test_an_array_of_strings_is_the_hosts():
    array = tf.TensorArray(tf.string, 1, element_shape=[])
    value = array.write(0, "a").read(0)
    assert not Visited([value]).compiled(value)


# Against a plain reading ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_a_computed_shape_needs_the_fed_integers_that_lead_to_it(seed):
    """What leads to it, but for what only its shape is looked at; and the values are right."""
    rng = np.random.default_rng(seed)
    x = vector()
    fed = [tf.placeholder(tf.int32, []) for _ in range(3)]
    leads = {t: {t} for t in fed}
    numbers = [*fed]

    def add(tensor, *sources):
        leads[tensor] = set().union(*(leads[s] for s in sources))
        numbers.append(tensor)

    add(tf.shape(x)[0])
    add(tf.constant(2))
    for _ in range(8):
        one, other = (numbers[i] for i in rng.integers(len(numbers), size=2))
        kind = rng.integers(4)
        if kind == 0:
            add(one + other, one, other)
        elif kind == 1:
            add(tf.maximum(one, other), one, other)
        elif kind == 2:
            add(tf.size(tf.stack([one, other])))  # looks at no value
        else:
            add(tf.identity(one), one)
    length = numbers[-1]
    y = tf.fill(tf.stack([length]), 1.0)
    visited = Visited([y], [x, *fed])
    assert visited.compiled(y)
    assert visited.needed() == leads[length]
    values = {t: int(n) for t, n in zip(fed, rng.integers(1, 4, 3))}
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            found, expected = sess.run([y, length], {x: np.zeros(3), **values})
            assert found.shape == (expected,)
