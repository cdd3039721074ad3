"""Summing the rows of a sparse gradient that have the same index."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.train.row_totals import row_totals, unique_rows
from tests.both_tiers import run_both

ROWS = np.random.RandomState(0).uniform(-1, 1, (7, 2)).astype(np.float32)
PLACES = np.array([5, 0, 5, 2, 0, 5, 9])


def _placeholders(dtype, rows=ROWS):
    return tf.placeholder(tf.float32, [None, *rows.shape[1:]]), tf.placeholder(dtype, [None])


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_every_row_holds_the_total_of_its_index(dtype):
    values, indices = _placeholders(dtype)
    totals = row_totals(tf.IndexedSlices(values, indices))
    found, places = run_both([totals.values, totals.indices], {values: ROWS, indices: PLACES})
    assert sorted(places) == sorted(PLACES)
    for row, place in zip(found, places):
        np.testing.assert_allclose(row, ROWS[place == PLACES].sum(0), rtol=1e-5)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_unique_rows_hold_each_index_once(dtype):
    values, indices = _placeholders(dtype)
    totals = unique_rows(tf.IndexedSlices(values, indices))
    found, places = run_both([totals.values, totals.indices], {values: ROWS, indices: PLACES})
    assert places.tolist() == [5, 0, 2, 9]
    for row, place in zip(found, places):
        np.testing.assert_allclose(row, ROWS[place == PLACES].sum(0), rtol=1e-5)


@pytest.mark.parametrize("total", [row_totals, unique_rows])
@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(total, count):
    values, indices = _placeholders(tf.int32)
    totals = total(tf.IndexedSlices(values, indices))
    feed = {values: ROWS[:count], indices: PLACES[:count]}
    found, places = run_both([totals.values, totals.indices], feed)
    np.testing.assert_array_equal(found, ROWS[:count])
    np.testing.assert_array_equal(places, PLACES[:count])


def test_rows_may_be_scalars_or_matrices():
    for shape in [(3,), (3, 2, 2)]:
        values, indices = tf.placeholder(tf.float32, shape), tf.placeholder(tf.int32, [3])
        rows = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        totals = row_totals(tf.IndexedSlices(values, indices))
        found = run_both(totals.values, {values: rows, indices: [1, 0, 1]})
        np.testing.assert_array_equal(found, [rows[1], rows[0] + rows[2], rows[0] + rows[2]])
