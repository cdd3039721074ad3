"""Accumulators: what is summed, what is stale, who waits."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.queues.accumulator import DenseAccumulator, SparseAccumulator
from tests.queues.told import start


def dense(dims=(2,), averages=True):
    return DenseAccumulator("a", tf.float32, dims, averages)


def sparse(dims=None, averages=True):
    return SparseAccumulator("s", tf.float32, dims, averages)


def array(*values):
    return np.array(values, np.float32)


def test_the_mean_is_there_when_enough_have_come():
    accumulator = dense()
    first, second = start(accumulator.take, 2), start(accumulator.take, 1)
    accumulator.apply(0, array(1, 2))
    assert first.result() is None and second.result() is None
    accumulator.apply(0, array(3, 6))
    assert first.result() == ("done", ([2.0, 4.0],))
    assert (accumulator.step, accumulator.count) == (1, 0)
    accumulator.apply(0, array(9, 9))  # stale: the accumulator is at step 1
    assert second.result() is None and accumulator.dropped == 1
    accumulator.apply(1, array(5, 5))
    assert second.result() == ("done", ([5.0, 5.0],))


def test_a_sum_and_an_array_that_the_caller_changes():
    accumulator = dense(averages=False)
    mine = array(1, 2)
    accumulator.apply(0, mine)
    mine[:] = 100
    accumulator.apply(0, array(1, 1))
    assert start(accumulator.take, 1).result() == ("done", ([2.0, 3.0],))


def test_the_step_can_be_set():
    accumulator = dense()
    accumulator.set_step(5)
    accumulator.apply(4, array(1, 1))
    assert accumulator.count == 0
    accumulator.apply(5, array(1, 1))
    assert accumulator.count == 1


def test_who_comes_to_an_abandoned_accumulator_does_not_wait():
    """It found the accumulator a moment before that was cleared: nobody would ever tell it."""
    accumulator = dense()
    accumulator.abandon(tf.errors.CancelledError(None, None, "gone"))
    assert start(accumulator.take, 1).result() == ("failed", tf.errors.CancelledError)


def test_cancelling_and_abandoning():
    accumulator = dense()
    first, second = start(accumulator.take, 2), start(accumulator.take, 1)
    accumulator.apply(0, array(1, 1))
    assert accumulator.cancel(first)
    assert second.result() == ("done", ([1.0, 1.0],))
    third = start(accumulator.take, 1)
    accumulator.abandon(tf.errors.CancelledError(None, None, "gone"))
    assert third.result() == ("failed", tf.errors.CancelledError)


def test_shapes_are_checked():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expects \(2,\), got \(3,\)"):
        dense().apply(0, array(1, 2, 3))
    free = dense(dims=None)
    free.apply(0, array(1, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        free.apply(0, array(1, 2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        free.take(0, None)


def test_rows_are_averaged_over_those_who_had_them():
    accumulator = sparse()
    none = np.zeros(0, np.int64)
    accumulator.apply(0, np.array([0, 2]), array([1, 2], [3, 4]), none)
    accumulator.apply(0, np.array([2]), array([5, 6]), none)
    indices, values, shape = start(accumulator.take, 2).result()[1]
    assert (indices, values, shape) == ([0, 2], [[1.0, 2.0], [4.0, 5.0]], [-1, 2])


def test_a_sparse_sum_and_its_shape():
    accumulator = sparse(dims=(4, 2), averages=False)
    shape = np.array([4, 2])
    accumulator.apply(0, np.array([1, 3]), array([1, 2], [3, 4]), shape)
    accumulator.apply(0, np.array([1]), array([10, 20]), shape)
    indices, values, given = start(accumulator.take, 1).result()[1]
    assert (indices, values, given) == ([1, 3], [[11.0, 22.0], [3.0, 4.0]], [4, 2])
    for bad in (
        (np.array([[0]]), array([1, 2]), shape),
        (np.array([0, 1]), array([1, 2]), shape),
        (np.array([4]), array([1, 2]), shape),
        (np.array([0]), array([1, 2, 3]), shape),
        (np.array([0]), array([1, 2]), np.array([5, 2])),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            accumulator.apply(0, *bad)


@pytest.mark.parametrize("averages", [True, False])
@pytest.mark.parametrize("rows", [3, 40, 10_000])
def test_sparse_gradients_give_what_a_loop_over_their_rows_gives(averages, rows):
    rng = np.random.default_rng(rows)
    accumulator = sparse(dims=(rows, 2), averages=averages)
    sums, counts = {}, {}
    for _ in range(4):
        indices = rng.integers(0, rows, 30)
        values = rng.normal(size=(30, 2)).astype(np.float32)
        accumulator.apply(0, indices, values, np.array([rows, 2]))
        for row in set(indices.tolist()):
            counts[row] = counts.get(row, 0) + 1
            sums[row] = sums.get(row, 0.0) + values[indices == row].sum(0, np.float64)
    indices, values, shape = map(np.asarray, start(accumulator.take, 4).result()[1])
    assert indices.tolist() == sorted(sums)
    assert shape.tolist() == [rows, 2]
    expected = [sums[row] / (counts[row] if averages else 1) for row in sorted(sums)]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
