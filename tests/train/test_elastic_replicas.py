"""Synchronous training whose workers come and go: as a graph, and on a cluster."""

from __future__ import annotations

import random
import threading
from functools import partial

import numpy as np
import pytest

import runnel as tf
from runnel.train import membership, quorum
from runnel.train.leased_table import GRAPH
from runnel.train.membership import NUMPY
from runnel.train.quorum import Givers
from tests.distributed.clusters import servers
from tests.distributed.replicas import LIMIT, monitored, replica_device, run_all
from tests.distributed.test_sync_replicas import batches, inputs, network
from tests.train.staleness_model import LEASE

pytestmark = pytest.mark.timeout(120)
WORKERS = 3


def synchronous(rate, required, index, lease_seconds, total=WORKERS):
    return tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(rate),
        required,
        total,
        worker_index=index,
        lease_seconds=lease_seconds,
    )


# The graph decides as the rules do ------------------------------------------------------------


class Replicas:
    """Workers in one graph and one session; what they wait for is not part of it."""

    def __init__(self, required: int) -> None:
        self.required = required
        self.step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        self.elastic = []
        for index in range(WORKERS):
            # A microsecond is a unit of the model's time.
            optimizer = synchronous(1.0, required, index, LEASE / 1e6)
            optimizer.apply_gradients([(tf.constant(1.0), w)], self.step)
            self.elastic.append(optimizer._elastic)
        self.at = tf.placeholder(tf.int64, [])
        one = self.elastic[0]
        table = one._table
        members, now = table.columns_now()
        self.told = (
            quorum.suffices(GRAPH, members, self.at, required, now),
            quorum.waiting(GRAPH, members, self.at),
            one.num_members(),
        )
        self.give = [e._give(self.at) for e in self.elastic]
        self.table = table.variable
        graph = tf.get_default_graph()
        self.now = [
            op.inputs[0]
            for op in graph.get_operations()
            if op.name.split("/")[-1].split("_")[0] == "now" and graph.is_feedable(op.inputs[0])
        ]


@pytest.mark.parametrize("required", [2, 3])
def test_the_graph_decides_as_the_rules_do(required):
    replicas = Replicas(required)
    rows = [np.arange(WORKERS) == index for index in range(WORKERS)]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for seed in range(8):
            chance = random.Random(seed)
            session.run(replicas.table.initializer)
            givers = Givers(*(np.zeros(WORKERS, np.int64) for _ in Givers._fields))
            lives, now, step = [0] * WORKERS, 100, 0
            for number in range(30):
                now += chance.choice((0, 1, 4, LEASE))
                step += chance.random() < 0.2
                row = chance.randrange(WORKERS) if number >= WORKERS else number
                mine, elastic = rows[row], replicas.elastic[row]
                feeds = {**dict.fromkeys(replicas.now, float(now)), replicas.at: step}
                event = chance.choice(("join", "give", "give", "give", "renew", "leave"))
                event = event if number >= WORKERS else "join"
                if event == "join":
                    lives[row] = chance.randrange(1, 1000)
                    givers = quorum.join(NUMPY, givers, mine, lives[row], now, LEASE)
                    session.run(elastic._join, {**feeds, elastic._new_life: lives[row]})
                elif event == "give":
                    givers = quorum.give(NUMPY, givers, mine, lives[row], step, now, LEASE)
                    session.run(replicas.give[row], feeds)
                elif event == "renew":
                    givers = membership.renew(NUMPY, givers, mine, lives[row], now, LEASE)
                    session.run(elastic._renew, feeds)
                else:
                    givers = membership.leave(NUMPY, givers, mine, lives[row])
                    session.run(elastic._leave, feeds)
                np.testing.assert_array_equal(session.run(replicas.table), np.stack(givers, axis=1))
                enough, waiting, members = session.run(replicas.told, feeds)
                assert enough == quorum.suffices(NUMPY, givers, step, required, now)
                assert waiting.tolist() == quorum.waiting(NUMPY, givers, step).tolist()
                assert members == quorum.living(NUMPY, givers, now).sum()


# On a cluster ---------------------------------------------------------------------------------


class Worker:
    """A worker whose gradient is fed, in a session of its own."""

    def __init__(self, cluster, index, required=WORKERS, lease_seconds=60.0):
        self.graph = tf.Graph()
        with self.graph.as_default():
            with replica_device(cluster["ps0"].server_def.cluster, index):
                self.step = tf.train.get_or_create_global_step()
                self.w = tf.get_variable("w", [], tf.float64, tf.zeros_initializer())
                self.gradient = tf.placeholder(tf.float64, [])
                optimizer = synchronous(1.0, required, index, lease_seconds)
                self.train = optimizer.apply_gradients([(self.gradient, self.w)], self.step)
                self.state = self.step, self.w, optimizer.num_members()
            hook = optimizer.make_session_run_hook(index == 0)
            self.session = monitored(cluster[f"worker{index}"].target, index == 0, hook)

    def begin(self, gradient):
        thread = threading.Thread(target=self.run, args=(gradient,))
        thread.start()
        return thread

    def run(self, gradient):
        with self.graph.as_default():
            self.session.run(self.train, {self.gradient: gradient})

    def look(self):
        with self.graph.as_default():
            return tuple(float(v) for v in self.session.run(self.state))

    def close(self):
        with self.graph.as_default():
            self.session.close()

    def die(self):
        """No farewell: what it has in the table stays there, and is not renewed."""
        self.session._coord.request_stop()


def step_of(*given):
    """One step of some workers at once."""
    threads = [worker.begin(gradient) for worker, gradient in given]
    for thread in threads:
        thread.join(LIMIT)
    assert not any(thread.is_alive() for thread in threads)


def test_an_update_waits_for_those_that_are_there():
    with servers(ps=1, worker=3) as cluster:
        first, second, third = (Worker(cluster, index) for index in range(3))
        assert first.look() == (0, 0.0, 3)
        step_of((first, 1.0), (second, 2.0), (third, 6.0))
        assert first.look() == (1, -3.0, 3)
        # It leaves while the others wait for it.
        waiting = [first.begin(2.0), second.begin(4.0)]
        third.close()
        for thread in waiting:
            thread.join(LIMIT)
        assert first.look() == (2, -6.0, 2)
        step_of((first, 1.0), (second, 1.0))
        # Back again: it is waited for at once.
        third = Worker(cluster, 2)
        assert first.look() == (3, -7.0, 3)
        step_of((third, 1.0), (second, 2.0), (first, 0.0))
        assert first.look() == (4, -8.0, 3)
        for worker in (third, second, first):
            worker.close()


def test_a_dead_worker_is_waited_for_as_long_as_its_lease():
    with servers(ps=1, worker=3) as cluster:
        first, second, third = (Worker(cluster, index, lease_seconds=1.0) for index in range(3))
        step_of((first, 1.0), (second, 2.0), (third, 6.0))
        third.die()
        step_of((first, 2.0), (second, 4.0))
        assert first.look() == (2, -6.0, 2)
        third = Worker(cluster, 2, lease_seconds=1.0)
        step_of((first, 3.0), (second, 3.0), (third, 3.0))
        assert first.look() == (3, -9.0, 3)
        for worker in (third, second, first):
            worker.close()


def test_with_a_backup_the_first_gradients_count_and_fewer_where_there_are_fewer():
    with servers(ps=1, worker=3) as cluster:
        first, second, third = (Worker(cluster, index, required=2) for index in range(3))
        step_of((first, 1.0), (second, 3.0))
        assert first.look() == (1, -2.0, 3)
        third.run(1000.0)  # computed at step 0, which is over
        assert first.look() == (1, -2.0, 3)
        for gone in (third, second):
            gone.close()
        first.run(5.0)
        assert first.look() == (2, -7.0, 1)
        first.close()


def test_a_chief_that_comes_back_forgets_what_was_collected():
    with servers(ps=1, worker=3) as cluster:
        chief, second = Worker(cluster, 0), Worker(cluster, 1)
        step_of((chief, 1.0), (second, 3.0))
        enough = threading.Event()

        def work():
            while not enough.is_set():
                second.run(4.0)

        thread = threading.Thread(target=work)  # it may wait for an update when the chief dies
        thread.start()
        chief.die()
        chief = Worker(cluster, 0)
        while chief.look()[2] < 2:  # until the other has its row again, nobody waits for it
            chief.run(4.0)
        chief.run(4.0)
        before = chief.look()
        chief.run(2.0)
        after = chief.look()
        assert (after[0] - before[0], after[1] - before[1], after[2]) == (1, -3.0, 2)
        enough.set()
        chief.close()  # nobody waits for its updates any more
        thread.join(LIMIT)
        assert not thread.is_alive()
        second.close()


def test_while_all_are_there_they_are_one_large_batch():
    count, steps = 3, 60
    found = {}
    together = threading.Barrier(count)

    def work(index, cluster):
        with replica_device(cluster["ps0"].server_def.cluster, index):
            step = tf.train.get_or_create_global_step()
            x, y = inputs()
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.MomentumOptimizer(0.05, 0.9), count, worker_index=index
            )
            train = optimizer.minimize(network(x, y), global_step=step)
            dropped = optimizer.num_dropped()
        hook = optimizer.make_session_run_hook(index == 0)
        with monitored(cluster[f"worker{index}"].target, index == 0, hook) as sess:
            together.wait(LIMIT)  # no step before all have joined
            for rows, values in batches(index, steps):
                sess.run(train, {x: rows, y: values})
            together.wait(LIMIT)
            if index == 0:
                found["w"] = sess.run(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES))
                found["told"] = tuple(sess.run([step, dropped]))
            together.wait(LIMIT)

    with servers(ps=2, worker=count) as cluster:
        run_all(*(partial(work, index, cluster) for index in range(count)))

    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = inputs()
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(network(x, y))
        sess.run(tf.global_variables_initializer())
        for parts in zip(*(batches(index, steps) for index in range(count)), strict=True):
            rows, values = (np.concatenate(part) for part in zip(*parts, strict=True))
            sess.run(train, {x: rows, y: values})
        expected = sess.run(tf.trainable_variables())
    for got, wanted in zip(found["w"], expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert found["told"] == (steps, 0)


def test_rows_of_a_table_are_updated():
    step = tf.train.get_or_create_global_step()
    table = tf.get_variable("table", [4, 2], initializer=tf.zeros_initializer())
    optimizer = synchronous(1.0, 1, 0, 10.0, total=1)
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, [1, 1, 3])), global_step=step)
    saved = {variable.op.name for variable in tf.global_variables()}
    assert saved == {"global_step", "table"}  # a checkpoint is as without worker_index
    with monitored("", True, optimizer.make_session_run_hook(True)) as sess:
        sess.run(train)
        assert sess.run(table)[:, 0].tolist() == [0.0, -2.0, 0.0, -1.0]


def test_what_makes_no_sense_is_said():
    with pytest.raises(ValueError, match="worker_index is 3.*total_num_replicas is the most"):
        synchronous(1.0, 3, 3, 10.0)
    with pytest.raises(ValueError, match="lease_seconds must be"):
        synchronous(1.0, 3, 0, 0.0)
    with pytest.raises(ValueError, match="num_members.* needs worker_index"):
        tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2).num_members()
