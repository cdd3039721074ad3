"""Functions of one tensor, in both tiers, against NumPy and finite differences."""

import math

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(1)
ANY = RNG.uniform(-2, 2, (2, 3))
UNIT = RNG.uniform(-0.8, 0.8, (2, 3))
POSITIVE = RNG.uniform(0.3, 3, (2, 3))
ABOVE_ONE = RNG.uniform(1.3, 4, (2, 3))


def each(function):
    return np.vectorize(function)


ORACLES = {
    tf.abs: (np.abs, ANY),
    tf.acos: (np.arccos, UNIT),
    tf.acosh: (np.arccosh, ABOVE_ONE),
    tf.asin: (np.arcsin, UNIT),
    tf.asinh: (np.arcsinh, ANY),
    tf.atan: (np.arctan, ANY),
    tf.atanh: (np.arctanh, UNIT),
    tf.cos: (np.cos, ANY),
    tf.cosh: (np.cosh, ANY),
    tf.erf: (each(math.erf), ANY),
    tf.erfc: (each(math.erfc), ANY),
    tf.exp: (np.exp, ANY),
    tf.expm1: (np.expm1, ANY),
    tf.lgamma: (each(math.lgamma), POSITIVE),
    tf.log: (np.log, POSITIVE),
    tf.log1p: (np.log1p, UNIT),
    tf.negative: (np.negative, ANY),
    tf.reciprocal: (np.reciprocal, ABOVE_ONE),
    tf.rsqrt: (lambda x: 1 / np.sqrt(x), POSITIVE),
    tf.sigmoid: (lambda x: 1 / (1 + np.exp(-x)), ANY),
    tf.sin: (np.sin, ANY),
    tf.sinh: (np.sinh, ANY),
    tf.sqrt: (np.sqrt, POSITIVE),
    tf.square: (np.square, ANY),
    tf.tan: (np.tan, UNIT),
    tf.tanh: (np.tanh, ANY),
}
STEPS = {
    tf.ceil: np.ceil,
    tf.floor: np.floor,
    tf.rint: np.rint,
    tf.round: np.round,
    tf.sign: np.sign,
}


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_values_and_types(kind):
    tensors = [f(tf.constant(domain.astype(kind))) for f, (_, domain) in ORACLES.items()]
    tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-12}[np.dtype(kind).itemsize]
    values = run_both(tensors, rtol=tolerance, atol=tolerance)
    for (oracle, domain), value in zip(ORACLES.values(), values, strict=True):
        assert value.dtype == kind
        expected = oracle(domain.astype(kind).astype(np.float64))
        np.testing.assert_allclose(value.astype(np.float64), expected, tolerance, tolerance)


@pytest.mark.parametrize("function", ORACLES, ids=lambda f: f.__name__)
def test_derivatives(function):
    domain = ORACLES[function][1]
    assert_derivatives(lambda x: tf.square(function(x)), domain, order=2, tolerance=2e-4)


def test_steps():
    x = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 3.7])
    values = run_both([f(tf.constant(x)) for f in STEPS])
    for oracle, value in zip(STEPS.values(), values, strict=True):
        np.testing.assert_array_equal(value, oracle(x))
    t = tf.constant(x)
    assert tf.gradients(tf.floor(t), t) == [None]
    assert tf.gradients(tf.round(t), t) == [None]


def test_tests_of_numbers():
    x = np.array([1.0, np.inf, -np.inf, np.nan], np.float32)
    nan, inf, finite = run_both([f(tf.constant(x)) for f in (tf.is_nan, tf.is_inf, tf.is_finite)])
    np.testing.assert_array_equal(nan, np.isnan(x))
    np.testing.assert_array_equal(inf, np.isinf(x))
    np.testing.assert_array_equal(finite, np.isfinite(x))


def test_extremes_of_sigmoid():
    x = np.array([-1000, -100, -20, 20, 100, 1000], np.float32)
    value = run_both(tf.sigmoid(tf.constant(x)))
    np.testing.assert_allclose(value, [0, 0, 2.0611537e-09, 1, 1, 1], rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_reciprocal_of_integers(level):
    x = tf.placeholder(tf.int32, [None])
    with session(level) as sess:
        value = sess.run(tf.reciprocal(x), {x: [1, -1, 2, -5]})
        np.testing.assert_array_equal(value, [1, -1, 0, 0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
            sess.run(tf.reciprocal(x), {x: [1, 0]})


def test_polygamma_by_differences_of_digamma():
    x = POSITIVE
    assert_derivatives(tf.digamma, x, order=3, tolerance=1e-3)
    np.testing.assert_allclose(
        run_both(tf.polygamma(np.float64(0), x)), run_both(tf.digamma(x)), rtol=1e-12
    )
    # The trigamma function at 1 is the sum of the inverse squares.
    np.testing.assert_allclose(run_both(tf.polygamma(1.0, [1.0])), [math.pi**2 / 6], rtol=1e-6)
    np.testing.assert_allclose(run_both(tf.zeta(2.0, [1.0])), [math.pi**2 / 6], rtol=1e-6)
    np.testing.assert_allclose(run_both(tf.digamma(1.0)), -0.5772156649, rtol=1e-6)


# Complex numbers --------------------------------------------------------------------------------


def test_complex_values():
    z = np.array([1 + 2j, -0.5 + 0.1j, -3 - 1j])
    names = ["exp", "log", "sin", "cos", "tanh", "sqrt", "square"]
    values = run_both([getattr(tf, n)(tf.constant(z)) for n in names])
    for name, value in zip(names, values, strict=True):
        np.testing.assert_allclose(value, getattr(np, name)(z), rtol=1e-12)
        assert value.dtype == np.complex128


@pytest.mark.parametrize("part", [tf.real, tf.imag, tf.abs, tf.angle])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "sigmoid", "tanh", "sqrt", "sign", "rsqrt"])
def test_complex_derivatives(part, name):
    function = getattr(tf, name)
    assert_derivatives(
        lambda a, b: part(function(tf.complex(a, b))),
        ANY[0],
        POSITIVE[0],
        order=2,
        tolerance=1e-4,
    )


def test_parts():
    z = np.array([1 + 2j, -3 - 4j, 0j], np.complex64)
    t = tf.constant(z)
    values = run_both([tf.real(t), tf.imag(t), tf.conj(t), tf.abs(t), tf.angle(t)])
    expected = [z.real, z.imag, z.conj(), np.abs(z), np.angle(z)]
    for value, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)
        assert value.dtype == want.dtype
    x = tf.constant([1.0])
    assert tf.real(x) is x and tf.conj(x) is x
    whole = run_both(tf.complex(tf.constant([1.0, np.inf]), tf.constant([np.inf, 0.0])))
    np.testing.assert_array_equal(whole.real, [1.0, np.inf])
    with pytest.raises(TypeError, match="float32 or both float64"):
        tf.complex(tf.constant(1), tf.constant(2))
