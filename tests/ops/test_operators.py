"""Python's operators on tensors: values, types, names, and how fast they are built."""

import operator
import time

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

BINARY = [
    *(operator.add, operator.sub, operator.mul, operator.truediv),
    *(operator.floordiv, operator.mod, operator.pow),
]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("function", BINARY + COMPARISONS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_tensors_and_numbers(function, kind):
    x = np.array([3, 5, 2], kind)
    y = np.array([2, 2, 4], kind)
    a, b = tf.constant(x), tf.constant(y)
    values = run_both(
        [function(a, b), function(a, 2), function(7, b), function(a, y), function(x, b)]
    )
    expected = [function(x, y), function(x, kind(2)), function(kind(7), y)]
    expected += [function(x, y), function(x, y)]
    for value, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)


def test_unary_and_matrix_operators():
    x = np.array([[1.0, -2.0], [3.0, -4.0]])
    t = tf.constant(x)
    values = run_both([-t, abs(t), t @ t, x @ t, t @ x])
    for value, want in zip(values, [-x, abs(x), x @ x, x @ x, x @ x], strict=True):
        np.testing.assert_allclose(value, want)


def test_logic():
    x, y = np.array([True, True, False]), np.array([True, False, False])
    a, b = tf.constant(x), tf.constant(y)
    values = run_both([a & b, a | b, a ^ b, ~a, a & True, False | b])
    for value, want in zip(values, [x & y, x | y, x ^ y, ~x, x, y], strict=True):
        np.testing.assert_array_equal(value, want)


def test_bits():
    x, y = np.array([6, -3]), np.array([3, 5])
    a, b = tf.constant(x), tf.constant(y)
    values = run_both([a & b, a | b, a ^ b, ~a])
    for value, want in zip(values, [x & y, x | y, x ^ y, ~x], strict=True):
        np.testing.assert_array_equal(value, want)


def test_equality_is_identity():
    x = tf.constant(1.0)
    assert (x == x) is True
    assert (x == tf.constant(1.0)) is False
    assert x in {x}


def test_names():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.name_scope("layer"):
        names = [(x + 1.0).op.name, (2.0 * x).op.name, (x - x).op.name, (x / x).op.name]
    assert names == ["layer/add", "layer/mul", "layer/sub", "layer/truediv"]
    made = {op.name for op in tf.get_default_graph().get_operations()}
    assert {"layer/add/y", "layer/mul/x"} <= made
    assert (x + 1.0).op.name == "add"
    assert (x + 1.0).op.name == "add_1"
    assert (x > 1.0).op.name == "Greater"


def test_the_other_operand_takes_the_tensors_type():
    x = tf.constant([1.0], tf.float64)
    for y in (x + 1, 1 + x, x * np.float32(2), x < 3, 2**x):
        assert y.op.inputs[0].dtype == y.op.inputs[1].dtype == tf.float64
    with pytest.raises(TypeError, match="int32"):
        tf.constant(1) + 1.5
    with pytest.raises((TypeError, ValueError), match="float32"):
        tf.constant(1) + tf.constant(1.5)


def test_an_operand_that_knows_better_is_asked():
    class Special:
        def __radd__(self, other):
            return "special"

    assert tf.constant(1.0) + Special() == "special"


def test_the_graph_of_the_tensor_is_used():
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0)
    with tf.Graph().as_default() as other:
        y = x + 1.0
    assert y.graph is graph
    assert not other.get_operations()


def test_tensors_of_different_graphs():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
    with pytest.raises(ValueError, match="graph"):
        x + tf.constant(1.0)


def test_the_error_of_an_operator_names_the_users_line():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    z = x + y
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(z, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})
    assert "z = x + y" in str(caught.value)


def test_building_is_fast():
    """Loose bounds that only a mistake would break: ten times what it takes on a slow machine."""
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    best = {}
    for name, build in (("tensors", lambda: x + y), ("number", lambda: x + 1.0)):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(100):
                build()
            times.append((time.perf_counter() - start) / 100)
        best[name] = min(times)
    assert best["tensors"] < 150e-6
    assert best["number"] < 300e-6
