"""Values at the edges: NaN, infinities, two zeros, wrapping integers, powers of complex zero.

Both tiers give what TensorFlow gives, and the same sign of a zero where they say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tensorflow

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, session

tensorflow.disable_v2_behavior()

NAN, INF = float("nan"), float("inf")


def values_of(build: Callable[..., Any], *arrays: np.ndarray) -> dict[str, list[np.ndarray]]:
    """What ``build(tf, *tensors)`` gives in TensorFlow and in each of our tiers."""
    found = {}
    for name, tf, open_session in (
        ("TensorFlow", tensorflow, lambda: tensorflow.Session()),
        ("interpreted", runnel, lambda: session(INTERPRETED)),
        ("compiled", runnel, lambda: session(COMPILED)),
    ):
        with tf.Graph().as_default(), np.errstate(all="ignore"):
            inputs = [tf.placeholder(a.dtype, a.shape) for a in arrays]
            fetches = build(tf, *inputs)
            fetches = list(fetches) if isinstance(fetches, list | tuple) else [fetches]
            with open_session() as sess:
                fed = dict(zip(inputs, arrays, strict=True))
                found[name] = [np.asarray(v) for v in sess.run(fetches, fed)]
    return found


def parts(value: np.ndarray) -> list[np.ndarray]:
    """Real numbers: the parts of a complex one."""
    if value.dtype.kind == "c":
        return [value.real, value.imag]
    return [value if value.dtype.kind in "biu" else value.astype(np.float64)]


def compare_corners(build: Callable[..., Any], *arrays: np.ndarray, zeros: bool = False) -> None:
    """Asserts that all give the same; with ``zeros``, the signs of zeros too."""
    found = values_of(build, *arrays)
    for tier in ("interpreted", "compiled"):
        for ours, theirs in zip(found[tier], found["TensorFlow"], strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            for a, b in zip(parts(ours), parts(theirs), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=tier)
                if zeros:
                    np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=tier)


FLOATS = ["float16", "bfloat16", "float32", "float64"]
WITH_NANS = {
    "in the middle": [1, NAN, 3],
    "first": [NAN, 1, 2],
    "last": [1, 2, NAN],
    "all": [NAN, NAN],
    "beside infinities": [-INF, NAN, INF],
    "before the least": [NAN, -INF],
    "before the greatest": [NAN, INF],
    "no NaN": [2, 5, 5, -1],
    "least alone": [-INF, -INF],
    "greatest alone": [INF, INF],
    "long": [1, NAN, 3, -0.0, 0.0, NAN, 7, 2] * 9,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("values", WITH_NANS.values(), ids=WITH_NANS)
class TestNaN:
    def test_the_index_of_an_extremum_passes_over_it(self, values, dtype):
        x = np.array(values, np.float32)

        def build(tf, x):
            x = tf.cast(x, dtype)
            return [tf.argmax(x, 0), tf.argmin(x, 0)]

        compare_corners(build, x)

    def test_a_reduction_keeps_it(self, values, dtype):
        x = np.array(values, np.float32)

        def build(tf, x):
            x = tf.cast(x, dtype)
            reduced = [tf.reduce_max(x), tf.reduce_min(x), tf.reduce_sum(x), tf.reduce_mean(x)]
            return [tf.cast(y, tf.float32) for y in reduced]

        compare_corners(build, x)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_index_of_an_extremum_along_an_axis_passes_over_nan(axis):
    x = np.array([[1, NAN], [NAN, NAN], [2, 3]], np.float32)
    compare_corners(lambda tf, x: [tf.argmax(x, axis), tf.argmin(x, axis)], x)


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [1, -0.0, 0.0, -0.0, -1, 0.0]])
def test_sorting_keeps_the_order_of_zeros_of_either_sign(values, direction):
    def build(tf, x):
        return [
            tf.sort(x, direction=direction),
            tf.argsort(x, direction=direction, stable=True),
            *tf.nn.top_k(x, 2),
        ]

    compare_corners(build, np.array(values, np.float32), zeros=True)


def test_the_sign_of_a_zero_is_zero():
    compare_corners(lambda tf, x: tf.sign(x), np.array([0.0, -0.0, NAN], np.float32), zeros=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "function", ["pow", "maximum", "minimum", "truediv", "floordiv", "mod", "div_no_nan"]
)
def test_pairs_of_special_values(function, dtype):
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, INF, -INF, NAN]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(special, special))
    compare_corners(lambda tf, x, y: getattr(tf, function)(x, y), x, y)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("function", ["pow", "truediv", "div_no_nan"])
def test_pairs_of_complex_numbers(function, dtype):
    special = [0, 1, -1, 2, 1j, -1j, 1 + 2j, -1 - 2j, 0.5, -0.5 + 1j, complex(-0.0, 0.0)]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(special, special))
    compare_corners(lambda tf, x, y: getattr(tf, function)(x, y), x, y)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    "function",
    [
        "sqrt",
        "rsqrt",
        "log",
        "exp",
        "expm1",
        "tanh",
        "sin",
        "cos",
        "tan",
        "sigmoid",
        "square",
        "reciprocal",
        "abs",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "sinh",
        "cosh",
    ],
)
def test_functions_of_complex_numbers(function, dtype):
    x = np.array([0, 1, -1, 2, 1j, -1j, 1 + 2j, -1 - 2j, 0.5, -0.5, -0.5 + 1j, 3j], dtype)
    compare_corners(lambda tf, x: getattr(tf, function)(x), x)


INTEGERS = [np.int8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap(dtype):
    bounds = np.iinfo(dtype)
    bases = [0, 1, 2, 3, 7, -1, -2, -3, bounds.min, bounds.max]
    x, y = np.meshgrid(bases, [0, 1, 2, 3, 5, 31, 63, 64, 65, 100, 127])
    x, y = x.ravel().astype(dtype), y.ravel().astype(dtype)
    compare_corners(lambda tf, x, y: tf.pow(x, y), x, y)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.uint8, np.uint16])
def test_a_mean_of_integers_does_not_wrap(dtype):
    greatest = np.iinfo(dtype).max
    if dtype is np.int64:
        greatest = 2**61
    x = np.array([[greatest, greatest, 1], [7, greatest, greatest]], dtype)
    compare_corners(lambda tf, x: [tf.reduce_mean(x), tf.reduce_mean(x, 1)], x)


def test_extrema_of_segments_without_a_finite_value():
    def build(tf, x):
        ids = [0, 0, 2]
        return [tf.unsorted_segment_max(x, ids, 3), tf.unsorted_segment_min(x, ids, 3)]

    for x in ([-INF, -INF, 1], [INF, INF, 1]):
        compare_corners(build, np.array(x, np.float32))
