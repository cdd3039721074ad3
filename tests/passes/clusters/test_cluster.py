"""Clustering: what compiles together, and where the host must step in."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.passes.clusters.cluster import cluster
from runnel.passes.program.prune import prune
from runnel.passes.program.state_access import StateAccess
from runnel.runtime.compile import compiler
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session


def segments(fetches, feeds=(), targets=()):
    program = prune(list(fetches), list(targets), list(feeds))
    return cluster(program, StateAccess(program), "CPU")


def test_a_whole_training_step_is_one_segment():
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.Variable(tf.zeros([4, 2]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    (segment,) = segments([loss], [x], [step])
    assert segment.compilable


def test_host_operations_split_the_step_and_each_side_stays_whole():
    x = tf.placeholder(tf.float32, [4])
    before = tf.exp(x) * 2.0
    middle = tf.py_func(lambda v: v, [before], tf.float32)
    middle.set_shape([4])
    after = tf.exp(middle) + before
    found = segments([after], [x])
    assert [s.compilable for s in found] == [True, False, True]
    run_both(after, {x: np.ones(4)})


def test_independent_host_operations_share_a_segment():
    x = tf.placeholder(tf.float32, [4])
    a, b = (tf.py_func(lambda v: v, [tf.exp(x)], tf.float32) for _ in range(2))
    found = segments([a + b], [x])
    assert [s.compilable for s in found] == [True, False, True]


def test_a_shape_computed_from_shapes_compiles():
    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.reshape(x, tf.stack([tf.shape(x)[0] * 2, 3]))
    (segment,) = segments([y], [x])
    assert segment.compilable and not segment.specialized
    assert run_both(y, {x: np.zeros((4, 6))}).shape == (8, 3)


def test_a_fed_shape_is_compiled_for_its_value():
    x, n = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    y = tf.reshape(x, tf.stack([n, -1])) * 2.0
    (segment,) = segments([y], [x, n])
    assert segment.compilable and len(segment.specialized) == 1
    with session(COMPILED) as sess:
        assert sess.run(y, {x: np.zeros(6), n: 2}).shape == (2, 3)
        before = compiler.compilations
        assert sess.run(y, {x: np.ones(6), n: 2}).shape == (2, 3)
        assert compiler.compilations == before
        assert sess.run(y, {x: np.zeros(6), n: 3}).shape == (3, 2)
        assert compiler.compilations == before + 1


def test_a_shape_that_depends_on_data_stays_interpreted():
    x = tf.placeholder(tf.float32, [None])
    positive = tf.boolean_mask(x, x > 0.0)
    total = tf.reduce_sum(positive)
    assert run_both(total, {x: [1.0, -2.0, 3.0]}) == 4.0
    n = tf.cast(tf.reduce_max(x), tf.int32)
    assert run_both(tf.range(n) * 2, {x: [1.0, 3.0]}).tolist() == [0, 2, 4]


def test_updates_and_reads_of_a_variable_keep_their_order_across_segments():
    v = tf.Variable(1.0)
    first = tf.identity(v)
    bump = v.assign_add(10.0)
    seen = tf.py_func(lambda x: x, [bump], tf.float32)
    with tf.control_dependencies([seen]):
        double = v.assign(v * 2.0)
    last = double + 0.0
    assert run_both([first, seen, last, v], init=v.initializer) == [1.0, 11.0, 22.0, 22.0]


def test_strings_run_on_the_host_beside_compiled_arithmetic():
    s = tf.placeholder(tf.string, [])
    x = tf.placeholder(tf.float32, [2])
    text, value = run_both([tf.identity(s), x * 2.0], {s: "hello", x: [1, 2]})
    assert text == b"hello"
    np.testing.assert_array_equal(value, [2, 4])


def test_a_constant_is_known_to_every_segment_that_uses_it():
    x = tf.placeholder(tf.float32, [None])
    shape = tf.constant([2, -1])
    before = tf.reshape(x, shape)
    middle = tf.py_func(lambda v: v * 2, [before], tf.float32)
    after = tf.reshape(tf.transpose(middle), shape)
    found = segments([after], [x])
    assert [s.compilable for s in found] == [True, False, True]
    assert not any(s.specialized for s in found)
    expected = (np.arange(6).reshape(2, 3) * 2).T.reshape(2, -1)
    np.testing.assert_array_equal(run_both(after, {x: np.arange(6)}), expected)
    run_both([shape, after], {x: np.arange(6)})


def test_an_assertion_with_a_message_compiles_with_the_step_that_it_guards():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    update = v.assign_add(x)
    check = tf.Assert(x > 0.0, ["x must be positive, not", x])
    (segment,) = segments([], [x], [update.op, check])
    assert segment.compilable
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"positive, not.*-2"):
            sess.run([update, check], {x: -2.0})
        assert sess.run(v) == 1.0


def test_a_shape_computed_from_many_numbers_compiles():
    """Too many to compute with NumPy for speed's sake; but the shape must be known."""
    x = tf.placeholder(tf.float32, [None])
    n = tf.reduce_sum(tf.ones_like(tf.range(20_000))) // 10_000
    y = tf.reshape(x, [n, -1]) * 2.0
    (segment,) = segments([y], [x])
    assert segment.compilable
    assert run_both(y, {x: np.ones(6)}).shape == (2, 3)


def test_what_the_world_sees_happens_in_the_order_of_construction():
    """Even if a later function has its inputs earlier."""
    x = tf.placeholder(tf.float32, [])
    calls = []

    def note(name):
        return lambda value: (calls.append(name), value)[1]

    deep = x
    for i in range(3):
        deep = tf.py_func(note(f"deep {i}"), [deep * 2.0], tf.float32)
    shallow = tf.py_func(note("shallow"), [x], tf.float32)
    for level in (INTERPRETED, COMPILED):
        calls.clear()
        with session(level) as sess:
            sess.run([shallow, deep], {x: 1.0})
        assert calls == ["deep 0", "deep 1", "deep 2", "shallow"]
