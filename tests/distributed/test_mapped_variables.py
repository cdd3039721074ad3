"""Tables in memory-mapped files on parameter servers."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.mapped_array import is_mapped
from tests.distributed.clusters import servers

ROWS, WIDTH = 30, 4


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=2, worker=1) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_state_left(cluster):
    yield
    for server in cluster.values():
        tf.Session.reset(server.target)


def model(folder, shards, optimizer, resource=False):
    """Ids, rows, and a training step of a table on the parameter servers."""
    ids = tf.placeholder(tf.int64, [None])
    with tf.device(tf.train.replica_device_setter(2)):
        with tf.mapped_variables(folder):
            table = tf.get_variable(
                "table",
                [ROWS, WIDTH],
                initializer=tf.constant_initializer(0.5),
                partitioner=tf.fixed_size_partitioner(shards),
                use_resource=resource,
            )
        rows = tf.nn.embedding_lookup(table, ids, "div")
        train = optimizer.minimize(tf.reduce_sum(tf.square(rows - 1)))
    return ids, rows, train


def mapped_on(server) -> dict[str, bool]:
    """For each variable of a task whether it is in a file."""
    cells = server.host.state._containers.get("", {})
    return {name: is_mapped(cell.value) for name, cell in cells.items()}


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_shards_in_files_train_as_shards_in_memory(cluster, tmp_path, resource):
    found = []
    for folder in (str(tmp_path / "tables"), None):
        with tf.Graph().as_default():
            ids, rows, train = model(folder, 2, tf.train.AdagradOptimizer(0.3), resource)
            with tf.Session(cluster["worker0"].target) as sess:
                sess.run(tf.global_variables_initializer())
                for batch in ([1, 29, 1], [15, 14], [0, 1, 2, 3]):
                    sess.run(train, {ids: batch})
                found.append(sess.run(rows, {ids: np.arange(ROWS)}))
                if folder is not None:
                    for number, name in enumerate(("ps0", "ps1")):
                        part = f"table/part_{number}"
                        where = mapped_on(cluster[name])
                        assert where == {part: True, f"{part}/Adagrad": True}
    np.testing.assert_array_equal(*found)


def test_a_checkpoint_of_shards_in_files_goes_to_other_shards(cluster, tmp_path):
    found = []
    for shards, folder in ((2, str(tmp_path / "tables")), (3, str(tmp_path / "others")), (1, None)):
        with tf.Graph().as_default():
            ids, rows, train = model(folder, shards, tf.train.AdagradOptimizer(0.3))
            saver = tf.train.Saver(sharded=True)
            with tf.Session(cluster["worker0"].target) as sess:
                if not found:
                    sess.run(tf.global_variables_initializer())
                    sess.run(train, {ids: [1, 29, 1]})
                else:
                    saver.restore(sess, str(tmp_path / "model"))
                saver.save(sess, str(tmp_path / "model"))
                found.append(sess.run(rows, {ids: np.arange(ROWS)}))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_updates_of_several_workers_are_not_lost(cluster, tmp_path):
    ids, rows, train = model(str(tmp_path / "tables"), 2, tf.train.MomentumOptimizer(1e-3, 0.0))
    count, steps = 3, 40
    with tf.Session(cluster["worker0"].target) as sess:
        init = tf.global_variables_initializer()
        with tf.device("/job:ps/task:0"), tf.mapped_variables(str(tmp_path / "tables")):
            counts = tf.get_variable("counts", [8, 2], initializer=tf.zeros_initializer())
            # Read, computed and set: an update that came between would be lost.
            count_up = tf.scatter_update(counts, [3], tf.gather(counts, [3]) + 1.0).op
        sess.run([init, counts.initializer])

        def work() -> None:
            for _ in range(steps):
                sess.run([train, count_up], {ids: [1, 2, 29]})

        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(sess.run(counts)[3], [count * steps] * 2)
