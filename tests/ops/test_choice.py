"""Choosing by bits gives what NumPy's own choice gives, bit for bit."""

import ml_dtypes
import numpy as np
import pytest

from runnel.ops.choice import choose

SHAPES = [(7,), (3, 5), (4096,), (40, 80), (2, 64, 33)]
TYPES = [
    *("float16", "float32", "float64", "complex64", "complex128", "bool", "int8", "int16", "int32"),
    *("int64", "uint8", "uint16", "uint32", "uint64", ml_dtypes.bfloat16),
]


def values(rng, dtype, shape):
    """Arrays with every kind of bits: NaNs, infinities, both zeros."""
    if dtype is bool or np.dtype(dtype) == bool:
        return rng.random(shape) < 0.5
    found = np.asarray(rng.normal(size=shape) * 100).astype(dtype)
    if np.dtype(dtype).kind in "fcV" and found.ndim:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(dtype)
        places = rng.random(shape) < 0.2
        found[places] = rng.choice(odd, int(places.sum()))
    return found


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_and_single_values(dtype, shape):
    rng = np.random.default_rng(0)
    condition = rng.random(shape) < 0.5
    arrays = values(rng, dtype, shape), values(rng, dtype, shape)
    single = np.dtype(dtype).type(3), np.zeros((), dtype), np.asarray(-0.0).astype(dtype)
    pairs = [arrays, *((arrays[0], s) for s in single), *((s, arrays[1]) for s in single)]
    for t, e in [*pairs, single[:2]]:
        expected = np.where(condition, t, e)
        got = choose(np, condition, t, e)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "int64", "object"])
def test_arrays_that_lie_otherwise_or_have_other_shapes(dtype):
    rng = np.random.default_rng(1)
    full = rng.normal(size=(80, 60)).astype(dtype)
    condition = rng.random((80, 60)) < 0.5
    for c, t, e in [
        (condition, full[:, ::-1], full),
        (condition.T, full.T, full[::-1].T),
        (condition[:, :1], full, full * 2),
        (condition, full[:1], full[:, :1]),
        (condition[::2], full[::2], full[1::2]),
    ]:
        np.testing.assert_array_equal(choose(np, c, t, e), np.where(c, t, e))
    mixed = choose(np, condition, full, rng.integers(0, 9, (80, 60)).astype(np.int32))
    assert mixed.shape == (80, 60)
