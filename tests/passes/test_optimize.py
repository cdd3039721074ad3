"""Passes that save work: folding, simplification, common subexpressions, dead code."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.graph.constant_value import constant_value
from runnel.passes.program.checker import InvalidProgram, check_program
from runnel.passes.program.program import Node
from runnel.passes.program.prune import prune
from runnel.passes.rewrites.rewrite import optimize


def optimized(fetches, feeds=(), targets=()):
    program = optimize(prune(list(fetches), list(targets), list(feeds)))
    check_program(program, "optimize")
    return [node.op_def.name for node in program.nodes]


def same_values(fetches, feed):
    """The values with and without optimization, asserted equal."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    with (
        tf.Session(graph=fetches[0].graph) as sess,
        tf.Session(graph=fetches[0].graph, config=config) as plain,
    ):
        for _ in range(3):  # the second run is optimized
            found = sess.run(fetches, feed)
        expected = plain.run(fetches, feed)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def test_constants_are_folded():
    x = tf.placeholder(tf.float32, [3])
    y = x * (tf.constant(2.0) + tf.constant(3.0))
    assert optimized([y], [x]) == ["Const", "Mul"]
    same_values([y], {x: [1, 2, 3]})


def test_static_shapes_are_folded():
    x = tf.placeholder(tf.float32, [2, 3])
    assert optimized([tf.shape(x)], [x]) == ["Const"]
    unknown = tf.placeholder(tf.float32, [None, 3])
    assert optimized([tf.shape(unknown)], [unknown]) == ["Shape"]


def test_a_constant_that_fails_fails_when_run_with_its_op():
    y = tf.constant(1) // tf.constant(0)
    with tf.Session() as sess:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                sess.run(y)
            assert e.value.op is y.op


def test_common_subexpressions_are_computed_once():
    x = tf.placeholder(tf.float32, [3])
    a, b = tf.exp(x) * 2.0, tf.exp(x) * 2.0
    assert optimized([a + b], [x]).count("Exp") == 1
    same_values([a, b, a + b], {x: [1, 2, 3]})


def test_different_attributes_are_different_expressions():
    x = tf.placeholder(tf.float32, [2, 2])
    a, b = tf.matmul(x, x), tf.matmul(x, x, transpose_a=True)
    assert optimized([a, b], [x]).count("MatMul") == 2
    same_values([a, b], {x: [[1, 2], [3, 4]]})


def test_random_ops_and_reads_are_never_merged():
    a, b = tf.random_uniform([2], seed=1), tf.random_uniform([2], seed=1)
    assert optimized([a, b]).count("RandomUniform") == 2
    v = tf.Variable(1.0)
    first = v.read_value()
    with tf.control_dependencies([first]):
        bump = v.assign_add(1.0)
    with tf.control_dependencies([bump]):
        second = v.read_value()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            assert sess.run([first, second]) == [1.0 + step, 2.0 + step]


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda x: x * 1.0, []),
        (lambda x: x / 1.0, []),
        (lambda x: x - 0.0, []),
        (lambda x: tf.negative(tf.negative(x)), []),
        (lambda x: tf.identity(tf.identity(x)), []),
        (lambda x: tf.cast(x, tf.float32), []),
        (lambda x: x**1.0, []),
        (lambda x: tf.transpose(tf.transpose(x)), []),
        (lambda x: tf.reshape(x, [2, 2]), []),
        (lambda x: tf.stop_gradient(x), []),
    ],
)
def test_needless_operations_disappear(build, left):
    x = tf.placeholder(tf.float32, [2, 2])
    y = build(x)
    same_values([y], {x: [[1, -2], [0, np.inf]]})
    assert [t for t in optimized([y], [x]) if t != "Const"] == left


def test_a_square_is_cheaper_than_a_power():
    x = tf.placeholder(tf.float32, [2])
    assert "Square" in optimized([x**2.0], [x])
    assert "Pow" not in optimized([x**2.0], [x])


def test_multiplying_by_one_of_a_larger_shape_is_kept():
    x = tf.placeholder(tf.float32, [1, 2])
    y = x * tf.ones([3, 1])
    assert same_values([y], {x: [[1, 2]]})[0].shape == (3, 2)


def test_adding_zero_keeps_the_sign_of_zero():
    x = tf.placeholder(tf.float32, [])
    (value,) = same_values([x + 0.0], {x: np.float32(-0.0)})
    assert not np.signbit(value)


def test_a_reshape_of_a_reshape_is_one():
    x = tf.placeholder(tf.float32, [2, 6])
    y = tf.reshape(tf.reshape(x, [3, 4]), [4, 3])
    assert optimized([y], [x]).count("Reshape") == 1
    same_values([y], {x: np.arange(12).reshape(2, 6)})


def test_an_identity_that_orders_effects_stays():
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.identity(x)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for _ in range(3):
            sess.run(y, {x: 1.0})
        assert sess.run(v) == 4.0


def test_the_checker_finds_broken_programs():
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x)
    program = prune([y], [], [x])
    check_program(program, "prune")
    program.nodes.append(program.nodes[-1])
    with pytest.raises(InvalidProgram, match="defines value . again"):
        check_program(program, "a bad pass")
    (node,) = prune([y], [], [x]).nodes
    broken = prune([y], [], [x])
    broken.nodes = [Node(node.op, node.op_def, (99,), node.outputs, (), node.attrs)]
    with pytest.raises(InvalidProgram, match="before it is defined"):
        check_program(broken, "a bad pass")
    broken = prune([y], [], [x])
    broken.nodes = []
    with pytest.raises(InvalidProgram, match="never defined"):
        check_program(broken, "a bad pass")
    broken = prune([y], [], [x])
    wrong = {**node.attrs, "T": tf.float64}
    broken.nodes = [Node(node.op, node.op_def, node.inputs, node.outputs, (), wrong)]
    with pytest.raises(InvalidProgram, match="takes"):
        check_program(broken, "a bad pass")


def test_the_sign_of_zero_survives():
    x = tf.placeholder(tf.float32, [2])
    minus_zero = tf.constant(-0.0)
    found = same_values([x - 0.0, x - minus_zero, x + 0.0, x * 1.0], {x: [-0.0, 0.0]})
    for value, expected in zip(found, [[1, 0], [0, 0], [0, 0], [1, 0]], strict=True):
        np.testing.assert_array_equal(np.signbit(value), expected)


def test_a_constant_that_is_fed_is_not_constant():
    """Nor are the static shapes that were inferred from it."""
    x = tf.placeholder(tf.float32, [2, 3])
    shape = tf.constant([2, 3])
    axis = tf.constant(0)
    y = tf.reshape(x, shape)
    fetches = [y, tf.shape(y, out_type=tf.int64), tf.reduce_sum(x, axis), tf.concat([x, x], axis)]
    feed = {x: np.arange(6).reshape(2, 3), shape: [3, 2], axis: 1}
    found = same_values(fetches[:1] + fetches[2:], feed)
    assert [v.shape for v in found] == [(3, 2), (2,), (2, 6)]


def test_a_placeholder_with_a_default_is_not_constant():
    n = tf.placeholder_with_default(3, [])
    zeros = tf.zeros([n])
    assert zeros.shape.as_list() == [None]
    assert constant_value(n) is None
    with tf.Session() as sess:
        for _ in range(3):
            assert sess.run(zeros).shape == (3,)
            assert sess.run(zeros, {n: 5}).shape == (5,)


def test_large_constants_in_a_list_are_not_taken_for_equal():
    from runnel.passes.rewrites.common_subexpressions import frozen

    small, large = np.zeros(2), np.zeros(10_000)
    assert frozen([small, small]) == frozen([small.copy(), small])
    assert frozen([small, large]) is None
