"""Rows that belong together, combined by native code, against NumPy's ``ufunc.at``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.native.input_library import VARIABLE, carried_library
from runnel.ops.combined_rows import combined_natively
from runnel.ops.scatter_update import combine_at
from runnel.ops.segments import reduce_runs

needs_library = pytest.mark.skipif(
    carried_library() is None, reason="the package carries no native code"
)
UFUNCS = [np.add, np.multiply, np.maximum, np.minimum]
TYPES = [np.float32, np.float64, np.int32, np.int64]
COUNT, WIDTH = 5, 3
PLACES = st.lists(st.integers(0, COUNT - 1), max_size=40)
SEEDS = st.integers(0, 2**32 - 1)
NUMBERS = [0, 1, -1, 2.5, -3, 7, 1e6, np.inf, -np.inf, np.nan]


def numbers(seed, shape, dtype):
    values = np.random.default_rng(seed).choice(NUMBERS, shape)
    if dtype in TYPES[2:]:
        values = np.nan_to_num(values, posinf=9, neginf=-9)
    return values.astype(dtype)


@needs_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ufunc", UFUNCS)
@given(seed=SEEDS, places=PLACES)
def test_rows_are_combined_one_after_the_other(ufunc, dtype, seed, places):
    targets = np.array(places, np.int32)
    rows = numbers(seed, (len(places), WIDTH), dtype)
    start = numbers(seed + 1, (COUNT, WIDTH), dtype)
    expected = start.copy()
    ufunc.at(expected, targets, rows)
    out = start.copy()
    assert combined_natively(ufunc, out, targets, rows)
    np.testing.assert_array_equal(out, expected)


@needs_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ufunc", UFUNCS)
@given(seed=SEEDS, places=PLACES)
def test_segments_are_those_of_numpy(ufunc, dtype, seed, places):
    ids, rows = np.array(places, np.int64), numbers(seed, (len(places), WIDTH), dtype)
    native, interpreted = np.full((2, COUNT, WIDTH), 4, dtype)
    reduce_runs(ufunc, native, ids, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        reduce_runs(ufunc, interpreted, ids, rows)
    np.testing.assert_array_equal(native, interpreted)


@needs_library
@given(PLACES, SEEDS)
def test_weighted_rows_of_a_table_are_summed(places, seed):
    sources = np.random.default_rng(seed).integers(0, 7, len(places))
    table = np.arange(7 * WIDTH, dtype=np.float32).reshape(7, WIDTH)[:, ::-1]
    weights = np.linspace(-1, 1, len(places), dtype=np.float32)
    out = np.zeros((COUNT, WIDTH), np.float32)
    targets = np.array(places, np.int64)
    assert combined_natively(np.add, out, targets, table, sources=sources, weights=weights)
    expected = np.zeros_like(out)
    np.add.at(expected, targets, weights[:, None] * table[sources])
    np.testing.assert_array_equal(out, expected)


@needs_library
def test_places_that_do_not_exist_are_skipped():
    out = np.zeros((2, 2), np.float32)
    rows = np.ones((5, 2), np.float32)
    assert combined_natively(np.add, out, np.array([-1, 0, 2, 1, 2**40]), rows)
    np.testing.assert_array_equal(out, np.ones((2, 2)))
    assert combined_natively(np.add, out, np.array([0, 0]), rows, sources=np.array([5, -1]))
    np.testing.assert_array_equal(out, np.ones((2, 2)))


@needs_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", ["add", "subtract", "multiply", "divide", "min", "max", "set"])
@pytest.mark.parametrize("dtype", TYPES)
def test_updates_at_coordinates_are_those_of_numpy(method, dtype):
    rng = np.random.default_rng(3)
    ref = rng.integers(1, 9, (4, 5, 2)).astype(dtype)
    where = (rng.integers(0, 4, 30), rng.integers(0, 5, 30))
    updates = rng.integers(1, 4, (30, 2)).astype(dtype)
    given_ref = ref.copy()
    native = combine_at(np, ref, where, updates, method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        interpreted = combine_at(np, ref, where, updates, method)
    np.testing.assert_array_equal(native, interpreted)
    np.testing.assert_array_equal(ref, given_ref)


def test_other_types_are_left_to_numpy():
    out = np.zeros((2, 2), np.float16)
    assert not combined_natively(np.add, out, np.array([0]), np.ones((1, 2), np.float16))
    wide = np.zeros((2, 2), np.float64)
    assert not combined_natively(np.add, wide, np.array([0]), np.ones((1, 2), np.float32))
