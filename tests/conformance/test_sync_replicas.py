"""``tf.train.SyncReplicasOptimizer``: the same two workers under both systems."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

LIMIT = 60.0


def trained(lib) -> list[np.ndarray]:
    """What the variables are after each of some updates of two workers' gradients."""
    with lib.Graph().as_default():
        step = lib.train.get_or_create_global_step()
        dense = lib.Variable(np.ones((2, 3)), name="dense")
        table = lib.Variable(np.ones((4, 3)), name="table")
        workers = []
        for rows in ([0, 1], [1, 3]):  # each once: TensorFlow keeps those that are twice apart
            used = lib.gather(table, rows)
            loss = lib.reduce_sum(lib.square(lib.matmul(used, dense, transpose_b=True) - 0.5))
            optimizer = lib.train.SyncReplicasOptimizer(lib.train.MomentumOptimizer(0.01, 0.5), 2)
            train = optimizer.minimize(loss, global_step=step, var_list=[dense, table])
            workers.append((optimizer, train))
        chief = workers[0][0]
        names = chief.get_slot_names()
        [update] = chief.get_chief_queue_runner().enqueue_ops
        start = chief.get_init_tokens_op(0)
        found: list[np.ndarray] = [np.array(names)]
        with lib.Session() as sess:
            sess.run(lib.global_variables_initializer())
            missing = sess.run(chief.ready_for_local_init_op)
            found.append(missing)
            sess.run([chief.chief_init_op, workers[1][0].local_step_init_op])
            sess.run(start)
            for _ in range(4):
                threads = [threading.Thread(target=sess.run, args=(t,)) for _, t in workers]
                for thread in threads:
                    thread.start()
                sess.run(update)
                for thread in threads:
                    thread.join(LIMIT)
                found += sess.run([step, dense, table])
    return found


def test_two_workers_train_as_tensorflows_do():
    for ours, theirs in zip(trained(tf), trained(reference), strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        else:
            assert ours.tolist() == theirs.tolist()
