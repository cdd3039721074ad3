"""Functions for types of operations: ``tf.raw_ops``, and those that TensorFlow generates."""

from __future__ import annotations

import numpy as np
import pytest
from runnel.python.ops import gen_array_ops, gen_math_ops, gen_nn_ops

import runnel as tf


def test_operations_by_their_types_take_arguments_by_name():
    y = tf.raw_ops.AddV2(x=[1.0], y=[2.0], name="sum")
    assert (y.op.type, y.op.name) == ("AddV2", "sum")
    with pytest.raises(TypeError):
        tf.raw_ops.AddV2([1.0], [2.0])
    with pytest.raises(TypeError, match=r"AddV2\(x, y, name=None\): .*'y'"):
        tf.raw_ops.AddV2(x=[1.0])
    assert "AddV2" in dir(tf.raw_ops)
    with pytest.raises(AttributeError, match="NoSuchOp"):
        tf.raw_ops.NoSuchOp  # noqa: B018


@pytest.mark.parametrize("name", ["relu_grad", "_relu_grad"])
def test_a_gradient_of_a_programs_own_uses_the_one_that_it_replaces(name):
    """Guided backpropagation, as it is found in many repositories."""

    @tf.RegisterGradient(f"Guided{name}")
    def guided(op, grad):
        gate = tf.cast(grad > 0.0, grad.dtype)
        return gate * getattr(gen_nn_ops, name)(grad, op.outputs[0])

    x = tf.constant([-1.0, 2.0, 3.0])
    with tf.get_default_graph().gradient_override_map({"Relu": f"Guided{name}"}):
        y = tf.nn.relu(x)
    (dx,) = tf.gradients(y, x, grad_ys=[tf.constant([1.0, -1.0, 5.0])])
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(dx), [0, 0, 5])


def test_attributes_are_counted_as_in_tensorflow_1():
    x = tf.placeholder(tf.float32, [1, 4, 4, 2])
    y = gen_nn_ops.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID", "NHWC")
    dx = gen_nn_ops.max_pool_grad(x, y, y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID", "NHWC")
    (expected,) = tf.gradients(y, x, grad_ys=[y])
    value = np.random.default_rng(3).standard_normal((1, 4, 4, 2))
    with tf.Session() as sess:
        np.testing.assert_array_equal(*sess.run([dx, expected], {x: value}))


def test_several_outputs_have_names():
    found = gen_nn_ops.top_kv2([3.0, 9.0, 5.0], 2)
    parts = gen_array_ops.split(0, [1, 2, 3, 4], 2)
    with tf.Session() as sess:
        assert sess.run(found.indices).tolist() == [1, 2]
        assert sess.run(found)[0].tolist() == [9, 5]
        assert [part.tolist() for part in sess.run(parts)] == [[1, 2], [3, 4]]
        assert sess.run(gen_math_ops._sum([[1, 2], [3, 4]], axis=0)).tolist() == [4, 6]


def test_an_attribute_that_is_none_has_its_default():
    y = gen_math_ops.mat_mul([[1.0]], [[2.0]], transpose_a=None, transpose_b=True)
    assert not y.op.get_attr("transpose_a") and y.op.get_attr("transpose_b")


def test_operations_of_programs_have_functions_too():
    op = tf.register_op("MyOwnNegative", inputs="x: T", outputs="y: T", attrs="T: type")
    op.kernel(lambda xp, x: -x)
    with tf.Session() as sess:
        assert sess.run(tf.raw_ops.MyOwnNegative(x=3.0)) == -3
        assert sess.run(gen_math_ops.my_own_negative(4.0)) == -4
