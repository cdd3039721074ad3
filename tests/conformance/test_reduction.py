"""Reductions, arguments of extrema and running sums against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_program import compare_graphs
from tests.conformance.side_by_side import compare

RNG = np.random.default_rng(5)
FLOATS = {
    "float16": (np.float16, 6e-3),
    "bfloat16": (ml_dtypes.bfloat16, 6e-2),
    "float32": (np.float32, 3e-5),
    "float64": (np.float64, 1e-10),
}
CUBE = RNG.uniform(0.5, 1.5, (2, 3, 4)) * RNG.choice([-1, 1], (2, 3, 4))
REDUCTIONS = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"]
REDUCTIONS += ["reduce_logsumexp"]
AXES = [None, 0, -1, [0, 2], [-1, 0, 1], []]


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float_type(dtype):
    kind, tolerance = FLOATS[dtype]
    compare(
        lambda tf, x: [getattr(tf, name)(x, 1) for name in REDUCTIONS],
        CUBE.astype(kind),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("known", ["known", "unknown sizes", "unknown rank"])
def test_axes(axis, known):
    shapes = {"known": None, "unknown sizes": [[None, 3, None]], "unknown rank": [None]}[known]
    names = list(REDUCTIONS)
    if known == "unknown rank" or axis == []:
        names.remove("reduce_prod")  # its gradient needs the rank; TensorFlow's fails without axes
    compare(
        lambda tf, x: [
            getattr(tf, name)(x, axis, keepdims=keep) for name in names for keep in (False, True)
        ],
        CUBE,
        shapes=shapes,
        rtol=1e-9,
    )


def test_second_derivatives():
    names = [*REDUCTIONS, "reduce_euclidean_norm", "reduce_std", "reduce_variance"]
    for axis in (None, 1):
        compare(
            lambda tf, x, axis=axis: [
                getattr(tf if hasattr(tf, name) else tf.math, name)(x, axis) for name in names
            ],
            CUBE[0],
            order=2,
            rtol=1e-8,
            atol=1e-8,
        )


def test_product_with_zeros_and_extrema_with_ties():
    x = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 4.0, 1.0]])
    compare(lambda tf, t: [tf.reduce_prod(t, 1), tf.reduce_max(t, 1), tf.reduce_min(t, 0)], x)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16"])
def test_integers(dtype):
    x = RNG.integers(0, 9, (2, 5)).astype(dtype)
    if dtype.startswith("i"):
        x = x * RNG.choice([-1, 1], x.shape).astype(dtype)
    names = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"]
    compare(lambda tf, t: [getattr(tf, n)(t, a) for n in names for a in (0, 1)], x, order=0)


def test_empty():
    x = np.zeros((0, 3), np.float32)
    names = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean"]
    compare(lambda tf, t: [getattr(tf, n)(t, 0) for n in names], x, order=0)
    names.remove("reduce_mean")
    compare(lambda tf, t: [getattr(tf, n)(t, 0) for n in names], x.astype(np.int32), order=0)


def test_special_values():
    x = np.array([[np.inf, 1], [-np.inf, 2], [np.inf, -np.inf], [-np.inf, -np.inf]])
    names = ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_logsumexp"]
    compare(lambda tf, t: [getattr(tf, n)(t, 1) for n in names], x, order=0)


def test_complex():
    def build(tf, a, b):
        z = tf.complex(a, b)
        out = [f(z, 1) for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_prod)]
        out.append(tf.math.reduce_euclidean_norm(z, 1))
        return [part(r) for r in out for part in (tf.real, tf.imag)]

    compare(build, CUBE[0], CUBE[1], order=0)

    def differentiable(tf, a, b):
        z = tf.complex(a, b)
        out = [f(z, 1) for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_prod)]
        return [part(r) for r in out for part in (tf.real, tf.imag)]

    compare(differentiable, CUBE[0], CUBE[1])


def test_logic_and_counts():
    x = np.array([[True, False, True], [True, True, True]])
    compare(
        lambda tf, t: [
            *(tf.reduce_all(t), tf.reduce_any(t, 0), tf.reduce_all(t, 1, keepdims=True)),
            *(tf.count_nonzero(t), tf.count_nonzero(t, 0), tf.count_nonzero(t, dtype=tf.int32)),
        ],
        x,
        order=0,
    )
    compare(lambda tf, t: tf.count_nonzero(t, 1, keepdims=True), CUBE.round(), order=0)
    compare(lambda tf, t: tf.count_nonzero(t), np.array([b"", b"a"], object), order=0)


def test_older_arguments():
    compare(
        lambda tf, x: [
            tf.reduce_sum(x, reduction_indices=[1], keep_dims=True),
            tf.reduce_max(x, keep_dims=True),
            tf.argmax(x, dimension=1),
        ],
        CUBE,
        order=0,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "float16", "int64"])
def test_arguments_of_extrema(dtype):
    x = RNG.integers(0, 4, (3, 4, 5)).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    compare(
        lambda tf, t: [
            *(tf.argmax(t), tf.argmin(t, 1), tf.argmax(t, -1, output_type=tf.int32)),
            *(tf.argmin(t, axis=2, output_type=tf.int32), tf.arg_max(t, 0)),
        ],
        x,
        order=0,
    )


SCANS = [(e, r) for e in (False, True) for r in (False, True)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_running_sums_and_products(dtype):
    kind, tolerance = FLOATS[dtype]
    compare(
        lambda tf, x: [
            f(x, axis, exclusive=e, reverse=r)
            for f in (tf.cumsum, tf.cumprod)
            for axis, (e, r) in zip((0, 1, -1, 2), SCANS, strict=True)
        ],
        CUBE.astype(kind),
        rtol=tolerance * 2,
        atol=tolerance * 2,
    )


def test_running_integers():
    compare(lambda tf, x: [tf.cumsum(x), tf.cumprod(x)], np.array([3, 1, 2], np.int32), order=0)


def test_bincount():
    values = np.array([1, 1, 3, 0, 7], np.int32)
    compare(
        lambda tf, t: [
            *(tf.bincount(t), tf.bincount(t, minlength=10), tf.bincount(t, maxlength=3)),
            tf.bincount(t, weights=tf.constant([0.5, 1.0, 2.0, 3.0, 4.0])),
        ],
        values,
        order=0,
    )


def test_graphs():
    def program(tf):
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        for name in ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"):
            function = getattr(tf, name)
            _ = [function(x), function(x, 0), function(x, [0, 1], keepdims=True, name="named")]
        _ = [tf.argmax(x, 1), tf.argmin(x, 0), tf.cumsum(x), tf.cumprod(x, axis=1)]
        _ = [tf.reduce_all(x > 0), tf.reduce_any(x > 0, axis=1)]
        _ = tf.cast(x, tf.int32), tf.cast(1.5, tf.float64, name="c"), tf.to_float(tf.constant(1))

    compare_graphs(program)
