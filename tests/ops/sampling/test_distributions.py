"""The distributions against values recorded from TensorFlow, and NumPy's against XLA's."""

import base64
import json
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from runnel.ops.sampling import distributions
from runnel.ops.sampling.philox import (
    BLOCK_COUNTERS,
    PhiloxStream,
    reserved_for_multinomial,
    reserved_for_outputs,
    reserved_for_shuffle,
)

RECORDED = json.loads((Path(__file__).parent / "data" / "random.json").read_text())["cases"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
STREAM = PhiloxStream.from_seeds(87654321, 42)
SEVERAL_BLOCKS = 9 * BLOCK_COUNTERS + 3


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def recorded(op):
    return [
        pytest.param(case, id=f"{case['dtype']}-{case.get('shape', '')}")
        for case in RECORDED
        if case["op"] == op
    ]


def recorded_values(case):
    dtype = dtype_of(case["dtype"])
    return [np.frombuffer(base64.b64decode(text), dtype) for text in case["values"]]


def check_executions(case, reserved, values_at, compare=np.testing.assert_array_equal):
    """Compares each recorded execution with the values at its position of the stream."""
    stream = PhiloxStream.from_seeds(case["seed"], case["seed2"])
    for expected in recorded_values(case):
        got = values_at(stream.words())
        assert got.dtype == expected.dtype
        compare(got.reshape(-1), expected)
        stream = stream.skip(reserved)


def assert_close_normals(got, expected, ulps=4):
    """Equal but for the last digits of the logarithm and the sine; no more than rounding in 16."""
    assert got.dtype == expected.dtype
    if got.dtype == dtype_of("bfloat16"):
        np.testing.assert_allclose(got.astype("f4"), expected.astype("f4"), rtol=2.0**-7)
    else:
        np.testing.assert_array_max_ulp(got, expected, 1 if got.dtype == np.float16 else ulps)


def traced(function, *arguments):
    """The result of ``function(jnp, stream)``, compiled, with the stream as an argument."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda *args: function(jnp, *args))(STREAM.words(), *arguments))


# ---------------------------------------------------------------------- as TensorFlow has them


@pytest.mark.parametrize("case", recorded("RandomUniform"))
def test_uniform_is_tensorflow_s(case):
    shape, dtype = case["shape"], dtype_of(case["dtype"])
    reserved = reserved_for_outputs(int(np.prod(shape)))
    check_executions(case, reserved, lambda s: distributions.uniform(np, s, shape, dtype))


@pytest.mark.parametrize("case", recorded("RandomUniformInt"))
def test_uniform_int_is_tensorflow_s(case):
    shape, dtype = case["shape"], dtype_of(case["dtype"])
    limits = [np.array(case[name], dtype) for name in ("minval", "maxval")]
    reserved = reserved_for_outputs(int(np.prod(shape)))
    check_executions(
        case, reserved, lambda s: distributions.uniform_int(np, s, shape, *limits, dtype)
    )


@pytest.mark.parametrize("case", recorded("RandomStandardNormal"))
def test_normal_is_tensorflow_s(case):
    shape, dtype = case["shape"], dtype_of(case["dtype"])
    reserved = reserved_for_outputs(int(np.prod(shape)))
    check_executions(
        case, reserved, lambda s: distributions.normal(np, s, shape, dtype), assert_close_normals
    )


@pytest.mark.parametrize("case", recorded("TruncatedNormal"))
def test_truncated_normal_is_tensorflow_s(case):
    shape, dtype = case["shape"], dtype_of(case["dtype"])
    reserved = reserved_for_outputs(int(np.prod(shape)))
    check_executions(
        case,
        reserved,
        lambda s: distributions.truncated_normal(np, s, shape, dtype),
        assert_close_normals,
    )


@pytest.mark.parametrize("case", recorded("RandomShuffle"))
def test_permutation_is_tensorflow_s(case):
    size = case["size"]
    check_executions(
        case, reserved_for_shuffle(size), lambda s: distributions.permutation(np, s, size)
    )


@pytest.mark.parametrize("case", recorded("Multinomial"))
def test_multinomial_is_tensorflow_s(case):
    logits, samples = np.array(case["logits"], np.float32), case["samples"]
    check_executions(
        case,
        reserved_for_multinomial(len(logits), samples),
        lambda s: distributions.multinomial(np, s, logits, samples, np.int64),
    )


# --------------------------------------------------------------------------- NumPy's and XLA's


@pytest.mark.parametrize("name", FLOATS)
def test_traced_uniform_has_the_bits_of_numpy_s(name):
    shape, dtype = (SEVERAL_BLOCKS,), dtype_of(name)
    expected = distributions.uniform(np, STREAM.words(), shape, dtype)
    got = traced(lambda xp, stream: distributions.uniform(xp, stream, shape, dtype))
    assert got.dtype == dtype
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_traced_uniform_int_has_the_bits_of_numpy_s(dtype):
    shape = (SEVERAL_BLOCKS,)
    limits = np.array(-7, dtype), np.array(1_000_003, dtype)
    expected = distributions.uniform_int(np, STREAM.words(), shape, *limits, dtype)
    got = traced(
        lambda xp, stream, low, high: distributions.uniform_int(
            xp, stream, shape, low, high, dtype
        ),
        *limits,
    )
    assert got.dtype == dtype
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("distribution", ["normal", "truncated_normal"])
def test_traced_normals_are_numpy_s_within_rounding(distribution, name):
    shape, dtype = (SEVERAL_BLOCKS,), dtype_of(name)
    function = getattr(distributions, distribution)
    expected = function(np, STREAM.words(), shape, dtype)
    got = traced(lambda xp, stream: function(xp, stream, shape, dtype))
    assert_close_normals(got, expected, ulps=8)


def test_traced_multinomial_is_numpy_s():
    logits = np.random.default_rng(0).normal(size=(5, 30)).astype(np.float32)
    expected = distributions.multinomial(np, STREAM.words(), logits, 7, np.int32)
    got = traced(
        lambda xp, stream, logits: distributions.multinomial(xp, stream, logits, 7, np.int32),
        logits,
    )
    assert got.dtype == expected.dtype == np.int32
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 50, 3000])
def test_traced_permutation_is_numpy_s(size):
    expected = distributions.permutation(np, STREAM.words(), size)
    got = traced(lambda xp, stream: distributions.permutation(xp, stream, size))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


# ------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
def test_an_element_does_not_depend_on_how_many_follow(distribution, dtype):
    function = getattr(distributions, distribution)
    many = function(np, STREAM.words(), (SEVERAL_BLOCKS,), dtype)
    for count in (1, 5, 100):
        np.testing.assert_array_max_ulp(
            function(np, STREAM.words(), (count,), dtype), many[:count], 4
        )
    tail = many[-7:]
    assert len(np.unique(tail)) == 7


@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 3), [2, 2]])
def test_shapes(distribution, shape):
    function = getattr(distributions, distribution)
    assert function(np, STREAM.words(), shape, np.float32).shape == tuple(shape)


@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal"])
def test_traced_empty_shape(distribution):
    function = getattr(distributions, distribution)
    got = traced(lambda xp, stream: function(xp, stream, (0, 4), np.float32))
    assert got.shape == (0, 4)


def test_truncated_normal_stays_within_two():
    got = distributions.truncated_normal(np, STREAM.words(), (SEVERAL_BLOCKS,), np.float32)
    assert np.abs(got).max() < 2
    assert len(np.unique(got)) > 0.99 * got.size  # every place was filled by a draw of its own
    assert abs(got.mean()) < 0.02
    # The standard deviation of a standard normal truncated at two.
    assert got.std() == pytest.approx(0.8796, abs=0.01)


@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_permutation_holds_every_row_once(size):
    order = distributions.permutation(np, STREAM.words(), size)
    assert sorted(order.tolist()) == list(range(size))
    assert order.dtype == np.int64


def test_multinomial_never_draws_what_is_not_finite():
    logits = np.array([[np.nan, 0.0, np.inf, -np.inf, 1.0]], np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = distributions.multinomial(np, STREAM.words(), logits, 200, np.int32)
    assert set(got.ravel().tolist()) == {1, 4}
