"""Bessel functions and running sums of exponentials, compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.side_by_side import EVERY_FLOAT, compare, compare_in  # noqa: E402

BESSEL = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"]
POINTS = np.array([-30.0, -8.5, -8.0, -2.0, -0.3, -1e-3, 1e-3, 0.5, 1.0, 7.9, 8.1, 20.0])
GRID = np.random.default_rng(2).normal(size=(3, 4, 2)) * 3


@pytest.mark.parametrize("name", BESSEL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bessel_functions_and_their_derivatives(name, dtype):
    tolerance = {"float32": 3e-5, "float64": 1e-9}[dtype]
    compare_in(
        dtype, lambda tf, x: getattr(tf.math, name)(x), POINTS, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", ["bessel_i0e", "bessel_i1e"])
def test_bessel_functions_in_half_precision(name):
    compare_in("float16", lambda tf, x: getattr(tf.math, name)(x), POINTS[3:9], order=0)


@pytest.mark.parametrize("name", ["bessel_i0e", "bessel_i1e"])
def test_bessel_functions_at_zero_at_infinity_and_of_no_number(name):
    x = np.array([0.0, -0.0])
    compare(lambda tf, x: getattr(tf.math, name)(x), x)
    ends = np.array([1e30, -1e30, np.inf, np.nan])
    compare(lambda tf, x: getattr(tf.math, name)(x), ends, order=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_exponentials(axis, exclusive, reverse):
    def build(tf: Any, x: Any) -> Any:
        return tf.math.cumulative_logsumexp(x, axis, exclusive=exclusive, reverse=reverse)

    compare(build, GRID, rtol=1e-9, atol=1e-9)
    compare(build, GRID * 300, order=0, rtol=1e-9)


@EVERY_FLOAT
def test_running_sums_in_every_type(dtype):
    compare_in(dtype, lambda tf, x: tf.math.cumulative_logsumexp(x, 1), GRID[:, :2], order=0)


def test_gradients_of_both_signs_and_none():
    def build(tf: Any, x: Any) -> Any:
        weights = tf.constant([[1.0], [-2.0], [0.0]], tf.float64)[:, :, tf.newaxis]
        return tf.math.cumulative_logsumexp(x, 1) * weights

    compare(build, GRID, rtol=1e-9, atol=1e-9)


def test_the_first_of_what_is_exclusive_is_of_no_element():
    def build(tf: Any, x: Any) -> Any:
        return tf.math.cumulative_logsumexp(x, exclusive=True)

    for kind in np.float16, np.float32, np.float64:
        compare(build, GRID[:, 0, 0].astype(kind), order=0, rtol=5e-3)
