"""Adding biases: layouts, types, gradients, errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

TYPES = [
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128),
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    value = RNG.integers(0, 9, (2, 3, 4)).astype(dtype)
    bias = np.arange(4).astype(dtype)
    y = run_both(tf.nn.bias_add(tf.constant(value), tf.constant(bias)))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, value + bias)


@pytest.mark.parametrize(
    ("shape", "data_format", "axis"),
    [
        ((2, 3), None, 1),
        ((2, 3, 4, 5), "NHWC", 3),
        ((2, 3, 4, 5), "NCHW", 1),
        ((2, 3, 4), "NCW", 1),
        ((2, 3, 2, 2, 2), "NCDHW", 1),
        ((2, 3, 2, 2, 4), "NDHWC", 4),
    ],
)
def test_layouts(shape, data_format, axis):
    value = RNG.normal(size=shape)
    bias = RNG.normal(size=shape[axis])
    column = bias.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    y = run_both(tf.nn.bias_add(value, bias, data_format=data_format))
    np.testing.assert_allclose(y, value + column)
    assert_derivatives(
        lambda v, b: tf.square(tf.nn.bias_add(v, b, data_format=data_format)),
        *(value[:1], bias) if axis else (value, bias),
        tolerance=1e-5,
    )


def test_gradient_is_the_sum_over_positions():
    value = tf.constant(RNG.normal(size=(2, 3, 4, 5)))
    for data_format, axis in (("NHWC", 3), ("NCHW", 1)):
        bias = tf.zeros([value.shape.as_list()[axis]], tf.float64)
        y = tf.nn.bias_add(value, bias, data_format)
        weight = RNG.normal(size=(2, 3, 4, 5))
        grads = tf.gradients(y, [value, bias], grad_ys=tf.constant(weight))
        dv, db = run_both(grads)
        np.testing.assert_array_equal(dv, weight)
        others = tuple(i for i in range(4) if i != axis)
        np.testing.assert_allclose(db, weight.sum(axis=others))


def test_gradient_of_halves_is_summed_in_single_precision():
    ones = np.ones((5000, 1), np.float16)
    b = tf.constant(np.zeros(1, np.float16))
    y = tf.nn.bias_add(tf.constant(ones), b)
    # Summed in float16 one by one, this would stop at 2048.
    assert run_both(tf.gradients(y, b)[0]).tolist() == [5000]


def test_old_op():
    value, bias = RNG.normal(size=(2, 3)), RNG.normal(size=3)
    v, b = tf.constant(value), tf.constant(bias)
    y = tf.get_op_def("BiasAddV1")(v, b)
    result, dv, db = run_both([y, *tf.gradients(y, [v, b])])
    np.testing.assert_allclose(result, value + bias)
    np.testing.assert_allclose(dv, np.ones((2, 3)))
    np.testing.assert_allclose(db, [2, 2, 2])


def test_layers():
    x, w, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=4)
    linear, rectified = tf.nn.xw_plus_b(x, w, b), tf.nn.relu_layer(x, w, b)
    assert (linear.op.name, rectified.op.name) == ("xw_plus_b", "relu_layer")
    y, r = run_both([linear, rectified])
    np.testing.assert_allclose(y, x @ w + b)
    np.testing.assert_allclose(r, np.maximum(x @ w + b, 0))


def test_static_shapes():
    unknown = tf.placeholder(tf.float32)
    assert tf.nn.bias_add(unknown, [1.0]).shape.rank is None
    partly = tf.placeholder(tf.float32, [None, None])
    assert tf.nn.bias_add(partly, [1.0, 2.0]).shape.as_list() == [None, 2]
    image = tf.placeholder(tf.float32, [None, None, 4, 5])
    assert tf.nn.bias_add(image, [1.0, 2.0], "NCHW").shape.as_list() == [None, 2, 4, 5]


def test_mistakes_when_building():
    with pytest.raises(ValueError, match="2 channels .* bias has 3"):
        tf.nn.bias_add([[1.0, 2.0]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="at least rank 2"):
        tf.nn.bias_add([1.0], [1.0])
    with pytest.raises(ValueError, match="at least rank 3"):
        tf.nn.bias_add([[1.0]], [1.0], "NCHW")
    with pytest.raises(ValueError, match="vector"):
        tf.nn.bias_add([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="'XX'"):
        tf.nn.bias_add([[1.0]], [1.0], "XX")


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_mistakes_when_running(level):
    v, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    y = tf.nn.bias_add(v, b)
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="each of the 2 channels"):
            sess.run(y, {v: [[1.0, 2.0]], b: [1.0]})
        assert sess.run(y, {v: [[1.0, 2.0]], b: [1.0, 1.0]}).tolist() == [[2, 3]]
