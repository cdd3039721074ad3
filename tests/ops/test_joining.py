from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def test_concat_of_unknown_sizes() -> None:
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [3, None])
    assert tf.concat([x, y], 0).dims == (None, 2)
    assert tf.concat([x, y], 1).dims == (3, None)
    feed = {x: np.ones((1, 2), np.float32), y: np.zeros((3, 2), np.float32)}
    assert run_both(tf.concat([x, y], 0), feed).shape == (4, 2)


def test_python_numbers_take_the_type_of_the_tensors() -> None:
    x = tf.placeholder(tf.float64, [])
    assert tf.concat([[1, 2], [x]], 0).dtype == tf.float64
    assert tf.stack([1, x]).dtype == tf.float64


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.concat([tf.zeros([2, 3]), tf.zeros([2, 4])], 0), "other than 0, the axis"),
        (lambda: tf.concat([tf.zeros([2]), tf.zeros([2, 4])], 0), "same rank"),
        (lambda: tf.concat([tf.zeros([]), tf.zeros([])], 0), "use tf.stack"),
        (lambda: tf.concat([tf.zeros([2]), tf.zeros([2])], 1), r"axis 1 is not in \[-1, 1\)"),
        (lambda: tf.stack([tf.zeros([2]), tf.zeros([3])]), "must have one shape"),
        (lambda: tf.stack([tf.zeros([2]), tf.zeros([2])], 2), r"axis 2 is not in"),
    ],
)
def test_mistakes_when_building(build, message) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("join", [lambda x, y: tf.concat([x, y], 0), lambda x, y: tf.stack([x, y])])
def test_mistakes_when_running(join) -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    z = join(x, y)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
            sess.run(z, {x: np.zeros((2, 3)), y: np.zeros((3, 2))})


def test_gradients() -> None:
    a, b = np.arange(4.0).reshape(2, 2), np.arange(2.0).reshape(2, 1) + 3
    assert_derivatives(lambda x, y: tf.concat([x, y, x], 1) ** 3, a, b)
    assert_derivatives(lambda x, y: tf.stack([x, y], -1) ** 3, a, a + 1)


def test_gradient_of_concat_where_sizes_are_not_known_statically() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    axis = tf.placeholder(tf.int32, [])
    for z in (tf.concat([x, y], 0), tf.concat([x, y], axis)):
        grads = tf.gradients(z * z, [x, y])
        got = run_both(grads, {x: [1.0], y: [2.0, 3.0], axis: 0})
        assert [g.tolist() for g in got] == [[2.0], [4.0, 6.0]]


def test_lists_with_tensors_are_packed() -> None:
    x = tf.placeholder(tf.float32, [])
    nested = tf.convert_to_tensor([[1.0, x], [x, 2]])
    assert nested.op.type == "Pack" and nested.dims == (2, 2)
    np.testing.assert_array_equal(run_both(nested, {x: 5.0}), [[1, 5], [5, 2]])
    assert tf.convert_to_tensor([x, 1], dtype=tf.int32).dtype == tf.int32
    assert run_both(tf.constant(1.0) + [x, 2.0], {x: 3.0}).tolist() == [4.0, 3.0]


def test_lists_without_tensors_stay_one_constant() -> None:
    tensor = tf.convert_to_tensor([[1, 2], [3, tf.Dimension(4)]])
    assert tensor.op.type == "Const" and tensor.dims == (2, 2)
    assert tf.stack([[1, 2], [3, 4]]).op.type == "Const"


def test_parallel_stack() -> None:
    x = tf.placeholder(tf.float32, [2])
    result = run_both(tf.parallel_stack([x, x + 1]), {x: [1.0, 2.0]})
    assert result.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match="not fully defined"):
        tf.parallel_stack([tf.placeholder(tf.float32, [None])])


class TestTheOldOrderOfConcat:
    """Before TensorFlow 1.0 the axis came first."""

    @pytest.mark.parametrize("axis", [0, 1])
    def test_a_number_and_tensors(self, axis):
        a, b = tf.zeros([2, 3]), tf.ones([2, 3])
        for values in ([a, b], (a, b), [tf.constant(0), tf.constant(1)]):
            with pytest.raises(ValueError, match=r"tf.concat\(values, axis\)"):
                tf.concat(axis, values)

    def test_a_number_and_a_tensor(self):
        with pytest.raises(ValueError, match="one integer"):
            tf.concat(0, tf.constant([1, 2]))
        with pytest.raises((TypeError, ValueError)):
            tf.concat(0, tf.constant([1.0, 2.0]))

    def test_one_tensor_alone_is_itself(self):
        x = tf.constant([1.0, 2.0])
        np.testing.assert_array_equal(run_both(tf.concat([x], 0)), [1, 2])
        np.testing.assert_array_equal(run_both(tf.concat(x, 0)), [1, 2])
