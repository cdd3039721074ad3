"""The random kernels against TensorFlow, live: three executions of each op in one session."""

import ml_dtypes
import numpy as np
import pytest

from runnel.ops.sampling import distributions
from runnel.ops.sampling.philox import (
    PhiloxStream,
    reserved_for_multinomial,
    reserved_for_outputs,
    reserved_for_shuffle,
)

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf  # noqa: E402

EXECUTIONS = 3
SEEDS = [(0, 7), (87654321, 0), (-(1 << 62), (1 << 63) - 1), ((5 << 33) + 123, -99)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NORMALS = {"RandomStandardNormal": "normal", "TruncatedNormal": "truncated_normal"}
MANY = 40_003  # enough for TensorFlow to share the work among its threads


def executions(build):
    """The values of the op that ``build`` makes, for its first executions in a session."""
    with tf.Graph().as_default():
        values = build()
        with tf.Session() as session:
            return [session.run(values) for _ in range(EXECUTIONS)]


def positions(seeds, reserved):
    """The stream of an op with these seeds at each of its first executions."""
    start = PhiloxStream.from_seeds(*seeds)
    return [start.skip(reserved * index).words() for index in range(EXECUTIONS)]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_random_uniform(dtype, seeds):
    seed, seed2 = seeds
    shape = (MANY,)
    expected = executions(
        lambda: tf.raw_ops.RandomUniform(shape=shape, dtype=dtype, seed=seed, seed2=seed2)
    )
    for value, stream in zip(expected, positions(seeds, reserved_for_outputs(MANY))):
        got = distributions.uniform(np, stream, shape, dtype_of(dtype))
        assert got.dtype == value.dtype
        assert got.tobytes() == value.tobytes()


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("limits", [(0, 1), (-3, 1000), None])
def test_random_uniform_int(limits, dtype, seeds):
    low, high = limits or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    low, high = np.array(low, dtype), np.array(high, dtype)
    seed, seed2 = seeds
    shape = (3, 337)
    expected = executions(
        lambda: tf.raw_ops.RandomUniformInt(
            shape=shape, minval=low, maxval=high, seed=seed, seed2=seed2
        )
    )
    for value, stream in zip(expected, positions(seeds, reserved_for_outputs(3 * 337))):
        got = distributions.uniform_int(np, stream, shape, low, high, dtype)
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", NORMALS)
def test_normals(op, dtype, seeds):
    seed, seed2 = seeds
    shape = (MANY,)
    function = getattr(distributions, NORMALS[op])
    expected = executions(
        lambda: getattr(tf.raw_ops, op)(shape=shape, dtype=dtype, seed=seed, seed2=seed2)
    )
    for value, stream in zip(expected, positions(seeds, reserved_for_outputs(MANY))):
        got = function(np, stream, shape, dtype_of(dtype))
        assert got.dtype == value.dtype
        if dtype == "bfloat16":
            np.testing.assert_allclose(got.astype("f4"), value.astype("f4"), rtol=2.0**-7)
        else:
            np.testing.assert_array_max_ulp(got, value, 1 if dtype == "float16" else 4)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("shape", [(1,), (2,), (1000,), (6, 2), (5, 0)])
def test_random_shuffle(shape, seeds):
    seed, seed2 = seeds
    rows = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    expected = executions(
        lambda: tf.raw_ops.RandomShuffle(value=tf.constant(rows), seed=seed, seed2=seed2)
    )
    for value, stream in zip(expected, positions(seeds, reserved_for_shuffle(len(rows)))):
        got = rows[distributions.permutation(np, stream, len(rows))]
        np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
# TensorFlow's draws depend on how its threads share a batch: these are too small to be shared.
@pytest.mark.parametrize("batch_size, classes, samples", [(3, 4, 5), (1, 1000, 500), (2, 1, 1)])
def test_multinomial(batch_size, classes, samples, dtype, seeds):
    seed, seed2 = seeds
    logits = 3 * np.random.default_rng(1).normal(size=(batch_size, classes))
    logits = logits.astype(dtype_of(dtype))
    logits[0, classes // 2 :] = -np.inf
    logits[-1, : classes // 2] = np.nan
    expected = executions(
        lambda: tf.raw_ops.Multinomial(
            logits=tf.constant(logits), num_samples=samples, seed=seed, seed2=seed2
        )
    )
    reserved = reserved_for_multinomial(batch_size, samples)
    for value, stream in zip(expected, positions(seeds, reserved)):
        got = distributions.multinomial(np, stream, logits, samples, np.int64)
        np.testing.assert_array_equal(got, value)
