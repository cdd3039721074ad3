"""Tables on a parameter server that several workers train at once: rows change, nothing is copied.

Everything that may be compiled is, as soon as it can be, and is kept: a table stays where it is by
rule, not because a trial found that faster.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.interpret import row_updates
from runnel.runtime.segment import tier_choice, tier_trial
from tests.both_tiers import await_compilations
from tests.distributed.clusters import servers

pytestmark = pytest.mark.timeout(120)

ROWS, WIDTH, WORKERS, STEPS = 20_000, 16, 3, 30
IDS = [np.array([worker, 7, 7, ROWS - 1 - worker]) for worker in range(WORKERS)]

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(1.0),
    "adagrad": lambda: tf.train.AdagradOptimizer(1.0),
    "momentum": lambda: tf.train.MomentumOptimizer(1.0, 0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(1.0),
}


@pytest.fixture(autouse=True)
def everything_is_hot(monkeypatch):
    monkeypatch.setattr(tier_choice, "_SHARE", 0.0)
    monkeypatch.setattr(tier_choice, "_STALL_SECONDS", 0.0)
    monkeypatch.setattr(tier_choice, "_DISPATCH_SECONDS", 0.0)
    monkeypatch.setattr(tier_choice, "_DISPATCH_SECONDS_PER_ARRAY", 0.0)
    monkeypatch.setattr(tier_trial, "SLOWER", float("inf"))
    # A reader is waited for however long it takes: a copy is no way out.
    monkeypatch.setattr(row_updates, "COPIED_PER_SECOND", 1e3)


def built(worker, optimizer):
    """A worker's loss and step; the gradient of a looked-up row is 1 in every place."""
    with tf.device(tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{worker}")):
        ids = tf.placeholder(tf.int64, [None])
        table = tf.get_variable("table", initializer=np.zeros((ROWS, WIDTH), np.float32))
        seen = tf.get_variable("seen", initializer=np.zeros(3, np.float32))
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
        with tf.control_dependencies([OPTIMIZERS[optimizer]().minimize(loss)]):
            step = tf.assign_add(seen, [1.0, 0.0, 2.0]).op
    return ids, table, seen, loss, step


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_rows_change_where_they_are_however_many_workers_train(optimizer):
    with servers(ps=1, worker=WORKERS) as tasks:
        state = tasks["ps0"].host.state
        ready = threading.Barrier(WORKERS + 1)
        found: dict[str, np.ndarray] = {}
        failures: list[BaseException] = []

        def train(worker):
            try:
                with tf.Graph().as_default():
                    ids, table, seen, loss, step = built(worker, optimizer)
                    with tf.Session(tasks[f"worker{worker}"].target) as sess:
                        if worker == 0:
                            sess.run(tf.global_variables_initializer())
                        ready.wait(60)
                        for number in range(STEPS):
                            sess.run([loss, step], {ids: IDS[worker]})
                            if number == 5:
                                ready.wait(60)  # now it is seen where the table is
                                ready.wait(60)
                        ready.wait(60)
                        if worker == 0:
                            found["table"], found["seen"] = sess.run([table, seen])
            except BaseException as error:  # noqa: BLE001 (raised below)
                failures.append(error)
                ready.abort()

        threads = [threading.Thread(target=train, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        with tf.Graph().as_default():
            cell = state.cell(built(0, optimizer)[1].op)
        try:
            ready.wait(60)
            ready.wait(60)
            await_compilations()
            before = cell.value.ctypes.data
            ready.wait(60)
            ready.wait(60)
            assert cell.value.ctypes.data == before
        finally:
            for thread in threads:
                thread.join(60)
            if failures:
                raise failures[0]
    np.testing.assert_array_equal(found["seen"], WORKERS * STEPS * np.array([1, 0, 2]))
    touched = np.unique(np.concatenate(IDS))
    untouched = np.setdiff1d(np.arange(ROWS), touched)
    assert not found["table"][untouched].any() and (found["table"][touched] < 0).all()
    if optimizer == "descent":
        expected = np.zeros(ROWS)
        for ids in IDS:
            np.subtract.at(expected, ids, STEPS)
        np.testing.assert_array_equal(found["table"], np.repeat(expected[:, None], WIDTH, 1))
