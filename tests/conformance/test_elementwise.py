"""Functions of one tensor against TensorFlow: values, types, shapes and gradients."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_program import compare_graphs
from tests.conformance.side_by_side import compare

RNG = np.random.default_rng(4)
FLOATS = {
    "float16": (np.float16, 4e-3),
    "bfloat16": (ml_dtypes.bfloat16, 4e-2),
    "float32": (np.float32, 3e-5),
    "float64": (np.float64, 1e-9),
}
ANY = RNG.uniform(-2, 2, (3, 5))
UNIT = RNG.uniform(-0.9, 0.9, (3, 5))
POSITIVE = RNG.uniform(0.2, 3, (3, 5))
ABOVE_ONE = RNG.uniform(1.2, 4, (3, 5))
DOMAINS = {
    "abs": ANY,
    "acos": UNIT,
    "acosh": ABOVE_ONE,
    "asin": UNIT,
    "asinh": ANY,
    "atan": ANY,
    "atanh": UNIT,
    "ceil": ANY,
    "cos": ANY,
    "cosh": ANY,
    "digamma": POSITIVE,
    "erf": ANY,
    "erfc": ANY,
    "exp": ANY,
    "expm1": ANY,
    "floor": ANY,
    "is_finite": ANY,
    "is_inf": ANY,
    "is_nan": ANY,
    "lgamma": POSITIVE,
    "log": POSITIVE,
    "log1p": UNIT,
    "negative": ANY,
    "reciprocal": ABOVE_ONE,
    "rint": ANY,
    "round": ANY,
    "rsqrt": POSITIVE,
    "sigmoid": ANY,
    "sign": ANY,
    "sin": ANY,
    "sinh": ANY,
    "sqrt": POSITIVE,
    "square": ANY,
    "tan": UNIT,
    "tanh": ANY,
}
# What TensorFlow cannot run on a CPU.
NO_KERNEL = {"float16": ("digamma", "rint"), "bfloat16": ("digamma", "lgamma", "rint")}
FLAT = {"ceil", "floor", "is_finite", "is_inf", "is_nan", "rint", "round", "sign"}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", range(3))
def test_values_and_gradients_in_every_float_type(dtype, group):
    kind, tolerance = FLOATS[dtype]
    chosen = [n for n in DOMAINS if n not in NO_KERNEL.get(dtype, ())][group::3]
    compare(
        lambda tf, *xs: [getattr(tf, n)(x) for n, x in zip(chosen, xs, strict=True)],
        *(DOMAINS[name].astype(kind) for name in chosen),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("group", range(3))
def test_second_derivatives(group):
    names = [n for n in DOMAINS if n not in FLAT][group::3]
    compare(
        lambda tf, *xs: [getattr(tf, n)(x) for n, x in zip(names, xs, strict=True)],
        *(DOMAINS[name] for name in names),
        order=2,
        rtol=1e-8,
        atol=1e-8,
    )


SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -0.5, -2.5, 100, -100, np.inf, -np.inf, np.nan]
)
# lgamma and digamma at their poles, where TensorFlow's own kernels differ by device; erf and erfc
# at infinity, where its float64 kernels give NaN.
ELSEWHERE = {"lgamma", "digamma", "erf", "erfc"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype):
    names = [n for n in DOMAINS if n not in ELSEWHERE]
    compare(
        lambda tf, x: [getattr(tf, n)(x) for n in names],
        SPECIAL.astype(dtype),
        order=0,
        rtol=1e-5 if dtype == "float32" else 1e-12,
        atol=1e-37,  # TensorFlow flushes denormal numbers to zero
    )


def test_special_functions_over_a_wide_range():
    x = np.concatenate([np.linspace(-5, 5, 101), [0.001, 8.0, 8.5, 30.0, 1e5]])
    compare(lambda tf, t: [tf.erf(t), tf.erfc(t)], x, order=0, rtol=1e-12, atol=0)
    x = x[(x > 0) | (x != np.floor(x))]
    compare(lambda tf, t: [tf.lgamma(t), tf.digamma(t)], x, order=0, rtol=1e-9, atol=1e-12)


def test_polygamma_and_zeta():
    n = np.array([1.0, 2.0, 3.0, 5.0])
    x = np.array([0.3, 1.0, 4.5, 20.0])
    compare(lambda tf, a, b: tf.polygamma(a, b), n, x, rtol=1e-9)
    compare(lambda tf, a, b: tf.zeta(a + 1.0, b), n, x, rtol=1e-9)
    compare(lambda tf, a: tf.math.lbeta(a), POSITIVE, rtol=1e-9)


def test_incomplete_gamma_and_beta_functions():
    a = np.array([[0.3, 1.0, 4.5, 20.0]])
    x = np.array([[0.2], [2.0], [19.0]])
    compare(lambda tf, a, x: [tf.igamma(a, x), tf.igammac(a, x)], a, x, rtol=1e-6, atol=1e-9)
    single = a.astype(np.float32), x.astype(np.float32)
    compare(lambda tf, a, x: [tf.math.igamma(a, x)], *single, rtol=2e-4, atol=1e-5)
    b, y = np.full([4], 2.5), np.array([0.1, 0.5, 0.75, 0.99])
    compare(lambda tf, y: tf.betainc(a[0], b, y), y, rtol=1e-9)


COMPLEX = [
    *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    *("cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "sqrt", "rsqrt", "square", "sign"),
    *("negative", "reciprocal", "conj"),
]


def test_complex_values_and_gradients():
    def build(tf, a, b):
        z = tf.complex(a, b)
        results = [getattr(tf, name)(z) for name in COMPLEX]
        return [part(r) for r in results for part in (tf.real, tf.imag)]

    compare(build, ANY[0], UNIT[0], rtol=1e-8, atol=1e-8)


def test_parts_of_complex_numbers():
    compare(
        lambda tf, a, b: [f(tf.complex(a, b)) for f in (tf.real, tf.imag, tf.abs, tf.angle)],
        ANY,
        UNIT,
        order=2,
    )
    compare(lambda tf, a, b: tf.real(tf.complex(a, b)), ANY.astype("float32"), np.float32(0.5))
    compare(lambda tf, x: [tf.real(x), tf.conj(x)], ANY)
    x = np.array([1.5, -0.0, np.inf, np.nan])
    compare(lambda tf, a, b: [tf.real(tf.complex(a, b)), tf.imag(tf.complex(a, b))], x, x[::-1])


def test_integers_are_their_own_rounding():
    compare(lambda tf, x: [tf.round(x), tf.abs(x), tf.sign(x), -x], np.arange(-3, 3), order=0)


def test_graphs_of_functions():
    def program(tf):
        x = tf.placeholder(tf.float32, [2], name="x")
        z = tf.placeholder(tf.complex64, [2], name="z")
        for name in DOMAINS:
            getattr(tf, name)(x)
            getattr(tf, name)(x, name=f"my_{name}")
        for function in (tf.real, tf.imag, tf.angle, tf.conj, tf.abs, tf.complex):
            if function is tf.complex:
                function(x, x)
                function(x, 1.0)
            else:
                function(z)
                function(z, name="named")

    compare_graphs(program)
