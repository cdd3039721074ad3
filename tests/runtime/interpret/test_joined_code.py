"""Instructions that are joined: the same results as one by one, the same errors, and they apply."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.interpret import row_blocks, run_totals
from runnel.train.row_totals import row_totals
from tests.both_tiers import INTERPRETED, assert_same, session

ROWS, WIDTH = 5_000, 32
OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "lazy adam": lambda: tf.contrib.opt.LazyAdamOptimizer(0.1),
}


@pytest.fixture
def applied(monkeypatch):
    """How often each way of computing has applied."""
    counts: dict[str, int] = {}
    for kind in (row_blocks._RowBlocks, run_totals._RunTotals):

        def compute(self, given, kind=kind, usual=kind.compute):
            found = usual(self, given)
            counts[kind.__name__] = counts.get(kind.__name__, 0) + (found is not None)
            return found

        monkeypatch.setattr(kind, "compute", compute)
    return counts


def trained(level, optimizer, shards, resource, batches):
    """The losses of some steps, and the table after them."""
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        table = tf.get_variable(
            "table",
            [ROWS, WIDTH],
            initializer=tf.constant_initializer(0.3),
            partitioner=tf.fixed_size_partitioner(shards) if shards > 1 else None,
            use_resource=resource,
        )
        rows = tf.nn.embedding_lookup(table, ids, "div")
        loss = tf.reduce_sum(tf.square(rows - 0.5) * tf.cast(ids % 7, tf.float32)[:, None])
        train = optimizer().minimize(loss)
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, train], {ids: batch})[0] for batch in batches]
            return losses, sess.run(tf.convert_to_tensor(table))


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_joined_updates_are_those_of_one_after_another(
    name, shards, resource, applied, monkeypatch
):
    rng = np.random.default_rng(0)
    batches = [rng.integers(0, ROWS // 4, 15_000 + 7 * i) for i in range(3)]  # with duplicates
    batches += [np.arange(40), np.arange(0)]  # so few rows are computed as a whole
    ours = trained(INTERPRETED, OPTIMIZERS[name], shards, resource, batches)
    joined = {"_RowBlocks", "_RunTotals"} if name != "descent" else set()
    assert {kind for kind, count in applied.items() if count} >= joined
    for kind in (row_blocks._RowBlocks, run_totals._RunTotals):
        monkeypatch.setattr(kind, "compute", lambda self, given: None)
    theirs = trained(INTERPRETED, OPTIMIZERS[name], 1, resource, batches)
    assert_same(list(ours), list(theirs), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_totals_are_exact_also_of_zeros_with_a_sign(dtype, applied):
    rng = np.random.default_rng(1)
    values = rng.integers(-3, 4, (200, 5)).astype(dtype)
    if dtype != np.int32:
        values[values == 0] = -0.0
    where = rng.integers(0, 50, 200)
    with tf.Graph().as_default():
        table = tf.get_variable("table", initializer=np.zeros((50, 5), dtype))
        given = tf.placeholder(values.dtype, [None, 5])
        ids = tf.placeholder(tf.int64, [None])
        slices = tf.IndexedSlices(given, ids)
        totals = row_totals(slices)
        update = tf.scatter_update(table, totals.indices, totals.values)
        with session(INTERPRETED) as sess:
            sess.run(tf.global_variables_initializer())
            found, order, _ = sess.run(
                [totals.values, totals.indices, update.op], {given: values, ids: where}
            )
    wanted = np.zeros((50, 5), dtype)
    np.add.at(wanted, where, values)
    assert applied == {"_RunTotals": 1}
    assert order.tolist() == sorted(where.tolist())
    np.testing.assert_array_equal(found, wanted[order])
    if dtype != np.int32:
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted[order]))


def test_an_error_inside_names_the_operation_and_changes_nothing():
    with tf.Graph().as_default():
        table = tf.get_variable("table", initializer=np.ones((ROWS, WIDTH), np.float32))
        ids = tf.placeholder(tf.int64, [None])
        rows = tf.gather(table, ids, name="looked_up")
        new = tf.sqrt(tf.square(rows) + 3.0)
        update = tf.scatter_update(table, ids % ROWS, new)
        many = np.arange(20_000) % ROWS
        with session(INTERPRETED) as sess:
            sess.run(tf.global_variables_initializer())
            wrong = many.copy()
            wrong[-3] = ROWS
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=rf"indices\[19997\] = {ROWS} (.|\n)*looked_up"
            ):
                sess.run(update.op, {ids: wrong})
            assert (sess.run(table) == 1).all()
            sess.run(update.op, {ids: many})
            assert (sess.run(table) == 2).all()
