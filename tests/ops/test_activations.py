"""Activation functions: values for every type in both tiers, derivatives of every order."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

# Formulas in double precision; none is the formula of the kernel.
FORMULAS = {
    "relu": lambda x: (x + np.abs(x)) / 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.maximum(x, 0.2 * x),
    "elu": lambda x: np.maximum(x, 0) + np.minimum(np.exp(np.minimum(x, 0)) - 1, 0),
    "selu": lambda x: SELU_SCALE * (np.maximum(x, 0) + SELU_ALPHA * (np.exp(np.minimum(x, 0)) - 1)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "softsign": lambda x: np.where(x > 0, x / (1 + x), x / (1 - x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
}
# Away from the kinks.
X = np.array([[-7.5, -1.25, -0.1], [0.2, 2.5, 7.5]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FORMULAS)
def test_values(name, dtype):
    x = X.astype(dtype)
    digits = {np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2, np.float32: 1e-6}.get(dtype, 1e-12)
    if name == "leaky_relu":
        digits = max(digits, 1e-7)  # an attribute is a single: 0.2 is 0.2000000030
    y = run_both(getattr(tf.nn, name)(tf.constant(x)), rtol=digits)
    assert y.dtype == x.dtype
    expected = FORMULAS[name](x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=digits, atol=digits / 10)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_rectifiers_of_integers(dtype):
    x = np.array([0, 3, 6, 9] if np.dtype(dtype).kind == "u" else [-5, 0, 3, 9], dtype)
    y, y6 = run_both([tf.nn.relu(tf.constant(x)), tf.nn.relu6(tf.constant(x))])
    assert y.dtype == y6.dtype == dtype
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(y6, np.clip(x, 0, 6))


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives(name):
    assert_derivatives(getattr(tf.nn, name), X, order=2 if "relu" in name else 3)


def test_derivatives_of_gelu_and_log_sigmoid():
    assert_derivatives(tf.nn.gelu, X / 4)
    assert_derivatives(lambda x: tf.nn.gelu(x, approximate=True), X / 4)
    assert_derivatives(tf.log_sigmoid, X)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_in_every_type(name, dtype):
    x = tf.constant(X.astype(dtype))
    grad = run_both(tf.gradients(getattr(tf.nn, name)(x), x)[0], rtol=1e-2, atol=1e-2)
    assert grad.dtype == dtype
    step = 1e-6
    slope = (FORMULAS[name](X + step) - FORMULAS[name](X - step)) / (2 * step)
    np.testing.assert_allclose(grad.astype(np.float64), slope, rtol=2e-2, atol=2e-2)


def test_gradients_at_the_kinks():
    x = tf.constant([0.0, 6.0])
    assert run_both(tf.gradients(tf.nn.relu(x), x)[0]).tolist() == [0, 1]
    assert run_both(tf.gradients(tf.nn.relu6(x), x)[0]).tolist() == [0, 0]
    assert run_both(tf.gradients(tf.nn.elu(x), x)[0]).tolist() == [1, 1]


def test_extremes():
    x = tf.constant([-1e30, -80.0, 80.0, 1e30])
    names = ["softplus", "elu", "selu", "softsign", "swish"]
    values = run_both([getattr(tf.nn, n)(x) for n in names])
    grads = run_both([tf.gradients(getattr(tf.nn, n)(x), x)[0] for n in names])
    for y in (*values, *grads):
        assert np.isfinite(y).all()
    np.testing.assert_allclose(values[0], [0, np.exp(-80.0), 80, 1e30], rtol=1e-5)
    np.testing.assert_allclose(run_both(tf.log_sigmoid(x))[:2], [-1e30, -80])


def test_nan_passes_through():
    for name in FORMULAS:
        assert np.isnan(run_both(getattr(tf.nn, name)([np.nan]))).all(), name


def test_crelu():
    x = np.array([[-1.0, 2.0]])
    assert run_both(tf.nn.crelu(x)).tolist() == [[0, 2, 1, 0]]
    assert run_both(tf.nn.crelu(x, axis=0)).tolist() == [[0, 2], [1, 0]]
    assert_derivatives(tf.nn.crelu, X)


def test_leaky_relu_of_integers_and_other_slopes():
    assert run_both(tf.nn.leaky_relu([-5, 5])).tolist() == [-1, 5]
    assert run_both(tf.nn.leaky_relu([-1.0, 1.0], alpha=2.0)).tolist() == [-2, 1]
    assert run_both(tf.nn.leaky_relu([-1.0, 1.0], np.array(0.5))).tolist() == [-0.5, 1]
    assert_derivatives(lambda x: tf.nn.leaky_relu(x, 0.3), X)


def test_gelu():
    from math import erf, sqrt

    expected = [[x / 2 * (1 + erf(x / sqrt(2))) for x in row] for row in X]
    exact, approximate = run_both([tf.nn.gelu(X), tf.nn.gelu(X, approximate=True)])
    np.testing.assert_allclose(exact, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(approximate, expected, atol=2e-3)


def test_swish_with_beta():
    y = run_both(tf.nn.swish(tf.constant(X), beta=2.0))
    np.testing.assert_allclose(y, X / (1 + np.exp(-2 * X)), rtol=1e-12)


def test_names_and_shapes():
    x = tf.placeholder(tf.float32, [None, 3])
    for name in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"):
        function = getattr(tf.nn, "leaky_relu" if name == "LeakyRelu" else name.lower())
        y = function(x)
        assert y.name == f"{name}:0"
        assert y.shape.as_list() == [None, 3]
    assert tf.nn.relu(x, name="hidden").op.name == "hidden"
    assert tf.nn.crelu(x).shape.as_list() == [None, 6]


def test_types_that_have_no_kernel():
    with pytest.raises(TypeError, match="bool"):
        tf.nn.relu([True])
    with pytest.raises(TypeError, match="int32"):
        tf.nn.elu([1])
    with pytest.raises(ValueError, match="floating"):
        tf.nn.gelu([1])
