"""Tables in memory-mapped files on parameter servers."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from runnel.mapped_array import is_mapped
from tests.distributed.clusters import Process, cluster_of, servers

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


EXAMPLES = (
    # For each worker: which example has which id, and how much it counts.
    ([(0, 1), (0, 7), (1, 29), (1, 1), (2, 7)], [1.0, 0.5, 2.0, 1.0, 0.25]),
    ([(0, 3), (1, 20), (1, 3), (1, 16)], [0.5, 1.0, 1.5, 1.0]),
)
"""No row is trained by both, so the order of their steps does not matter."""
RATE = 0.25  # exact in 32 bits too: a rate given as a number is a tensor of those


class Trained:
    """The table and Adagrad's sums as NumPy computes them."""

    def __init__(self) -> None:
        self.table, self.sums = np.full((ROWS, WIDTH), 0.5), np.full((ROWS, WIDTH), 0.1)

    def step(self, worker: int) -> None:
        places, weights = EXAMPLES[worker]
        mixed = np.zeros((1 + max(example for example, _ in places), WIDTH))
        for (example, row), weight in zip(places, weights, strict=True):
            mixed[example] += weight * self.table[row]
        grad = np.zeros_like(self.table)
        for (example, row), weight in zip(places, weights, strict=True):
            grad[row] += weight * 2 * (mixed[example] - 1)
        self.sums += grad**2
        self.table -= np.where(grad == 0, 0, RATE * grad / np.sqrt(self.sums))


class Worker:
    """A worker that trains its rows by sparse ids, in a session of its own."""

    def __init__(self, server, index, folder, shards):
        self.graph, places, weights = tf.Graph(), *EXAMPLES[index]
        setter = tf.train.replica_device_setter(2, worker_device=f"/job:worker/task:{index}")
        with self.graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            with tf.mapped_variables(folder):
                table = tf.get_variable(
                    "table",
                    [ROWS, WIDTH],
                    tf.float64,
                    tf.constant_initializer(0.5),
                    partitioner=tf.fixed_size_partitioner(shards),
                )
            numbers = [(example, k) for k, (example, _) in enumerate(places)]
            shape = [1 + max(example for example, _ in places), len(places)]
            ids = tf.SparseTensor(numbers, [row for _, row in places], shape)
            weights = tf.SparseTensor(numbers, tf.constant(weights, tf.float64), shape)
            rows = tf.nn.embedding_lookup_sparse(table, ids, weights, "div", combiner="sum")
            loss = tf.reduce_sum(tf.square(rows - 1))
            self.train = tf.train.AdagradOptimizer(RATE).minimize(loss, step)
            self.table, self.step = tf.convert_to_tensor(table), step
            self.initialize = tf.global_variables_initializer()
            self.saver = tf.train.Saver(sharded=True)
        self.session = tf.Session(server.target, graph=self.graph)

    def steps(self, count):
        for _ in range(count):
            self.session.run(self.train)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.timeout(180)
def test_two_workers_train_a_table_in_files_whose_servers_are_killed(tmp_path):
    spec, folder = cluster_of(ps=2, worker=2), str(tmp_path / "tables")
    tasks = [Process(spec, "ps", index) for index in range(2)]
    workers = [tf.train.Server(spec, "worker", index) for index in range(2)]
    expected, model_path = Trained(), str(tmp_path / "model")

    def train(shards, begin):
        trainers = [Worker(workers[index], index, folder, shards) for index in range(2)]
        try:
            begin(trainers[0])
            for task in tasks:
                assert folder in Path(f"/proc/{task.pid}/maps").read_text()
            threads = [threading.Thread(target=t.steps, args=(7,)) for t in trainers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            for index in (0, 1):
                for _ in range(7):
                    expected.step(index)
            chief = trainers[0]
            chief.saver.save(chief.session, model_path, chief.step)
            return chief.session.run([chief.table, chief.step])
        finally:
            for trainer in trainers:
                trainer.session.close()

    try:
        table, steps = train(2, lambda chief: chief.session.run(chief.initialize))
        np.testing.assert_allclose(table, expected.table, rtol=1e-12)
        for number, shards in enumerate((2, 3), 1):  # the same shards, and others
            for index, task in enumerate(tasks):
                task.kill()
                tasks[index] = Process(spec, "ps", index)
            newest = tf.train.latest_checkpoint(str(tmp_path))
            table, steps = train(shards, lambda c, path=newest: c.saver.restore(c.session, path))
            np.testing.assert_allclose(table, expected.table, rtol=1e-12)
            assert steps == 14 * (number + 1)
        newest = tf.train.latest_checkpoint(str(tmp_path))
        np.testing.assert_allclose(
            tf.train.load_variable(newest, "table/Adagrad"), expected.sums, rtol=1e-12
        )
    finally:
        for worker in workers:
            worker.stop()
        for task in tasks:
            task.kill()
