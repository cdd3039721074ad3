"""Bounded staleness as a graph: it does what the rules say, also for threads at once."""

from __future__ import annotations

import math
import random
import threading

import numpy as np
import pytest

import runnel as tf
from runnel.train import membership
from tests.train.staleness_model import LEASE, Job, random_event

WORKERS = 3


class Replicas:
    """Workers in one graph and one session, whose gradient is always -1."""

    def __init__(self, staleness: float, lease_seconds: float) -> None:
        self.step = tf.train.get_or_create_global_step()
        self.w = tf.get_variable("w", [], tf.float64, tf.zeros_initializer())
        self.optimizers = [
            tf.train.BoundedStalenessOptimizer(
                tf.train.MomentumOptimizer(1.0, 0.0), staleness, index, WORKERS, lease_seconds
            )
            for index in range(WORKERS)
        ]
        gradient = tf.constant(-1.0, tf.float64)
        self.train = [o.apply_gradients([(gradient, self.w)], self.step) for o in self.optimizers]
        self.table = self.optimizers[0]._checked_table()
        self.session = tf.Session()
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])


class GraphJob(Job):
    """The model's job, with every event also in the graph."""

    def __init__(self, replicas: Replicas, staleness: int) -> None:
        super().__init__(WORKERS, staleness)
        self.replicas = replicas
        graph = tf.get_default_graph()
        self._now = [op.inputs[0] for op in graph.get_operations() if "/now" in op.name]
        replicas.session.run(replicas.table.initializer)

    def _run(self, fetch, **feeds):
        times = dict.fromkeys(self._now, float(self.now))  # what is cast, in microseconds
        return self.replicas.session.run(fetch, {**times, **feeds.get("feed", {})})

    def _optimizer(self, worker):
        return self.replicas.optimizers[worker.index]

    def join(self, worker):
        super().join(worker)
        optimizer = self._optimizer(worker)
        self._run(optimizer._join, feed={optimizer._new_incarnation: worker.life})

    def enter(self, worker):
        given = self._run(self._optimizer(worker)._enter)
        told = super().enter(worker)  # it joins again where it was put out
        assert given == told
        return told

    def admit(self, worker):
        super().admit(worker)
        if worker.phase == "admitted":
            super().apply(worker)
        self._run(self.replicas.train[worker.index])

    def renew(self, worker):
        super().renew(worker)
        self._run(self._optimizer(worker)._renew)

    def leave(self, worker):
        super().leave(worker)
        self._run(self._optimizer(worker)._leave)

    def check(self):
        super().check()
        table = np.stack(self.members, axis=1)
        np.testing.assert_array_equal(self.replicas.session.run(self.replicas.table), table)


@pytest.mark.parametrize("staleness", [0, 2, math.inf])
def test_the_graph_decides_as_the_rules_do(staleness):
    replicas = Replicas(staleness, LEASE / 1e6)  # a microsecond is a unit of the model's time
    bound = membership.UNBOUNDED if staleness == math.inf else staleness
    with replicas.session:
        for seed in range(8):
            before = replicas.session.run([replicas.step, replicas.w])
            job, chance = GraphJob(replicas, bound), random.Random(seed)
            for worker in job.workers:
                job.join(worker)
            for _ in range(25):
                random_event(job, chance)
            job.finish()
            after = replicas.session.run([replicas.step, replicas.w])
            assert [a - b for a, b in zip(after, before, strict=True)] == [len(job.updates)] * 2


def test_threads_lose_nothing_and_keep_together():
    replicas = Replicas(1, 60.0)
    clocks = replicas.optimizers[0].clocks()
    dropped = replicas.optimizers[0].num_dropped()
    raised: list[Exception] = []
    seen: list[int] = []

    def work(index):
        try:
            optimizer, session = replicas.optimizers[index], replicas.session
            for _ in range(60):
                while session.run(optimizer._enter) != membership.GO and not raised:
                    pass
                found, _ = session.run([clocks, replicas.train[index]])
                seen.append(int(found.max() - found.min()))
        except Exception as error:  # noqa: BLE001 (raised below)
            raised.append(error)

    with replicas.session as session:
        for index, optimizer in enumerate(replicas.optimizers):
            session.run(optimizer._join, {optimizer._new_incarnation: index + 1})
        threads = [threading.Thread(target=work, args=(index,)) for index in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert raised == []
        total = 60 * WORKERS
        assert session.run([replicas.step, replicas.w]) == [total, total]
        assert session.run(dropped) == 0
    assert max(seen) <= 2  # one that has ended a step is one more ahead


def test_a_step_without_permission_changes_nothing():
    replicas = Replicas(0, 60.0)
    with replicas.session as session:
        session.run(replicas.train[0])
        assert session.run([replicas.step, replicas.w]) == [0, 0.0]
        assert session.run(replicas.optimizers[0].num_dropped()) == 1


def test_the_hook_joins_asks_and_leaves():
    replicas = Replicas(0, 60.0)
    replicas.session.close()
    optimizer, clocks = replicas.optimizers[0], replicas.optimizers[0].clocks()
    last = {}

    class Look(tf.train.SessionRunHook):
        def end(self, session):
            last["incarnation"] = session.run(replicas.table)[0, 0]

    hooks = [optimizer.make_session_run_hook(), Look()]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        for _ in range(5):
            sess.run(replicas.train[0])
        assert sess.run(clocks).tolist() == [5, 0, 0]
        assert sess.run(replicas.table)[0, 0] != membership.NOBODY
    assert last["incarnation"] == membership.NOBODY


def test_rows_of_a_table_are_updated():
    step = tf.train.get_or_create_global_step()
    table = tf.get_variable("table", [4, 2], initializer=tf.zeros_initializer())
    optimizer = tf.train.BoundedStalenessOptimizer(tf.train.GradientDescentOptimizer(1.0), 0, 0, 1)
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, [1, 1, 3])), global_step=step)
    with tf.train.MonitoredSession(hooks=[optimizer.make_session_run_hook()]) as sess:
        sess.run(train)
        assert sess.run(table)[:, 0].tolist() == [0.0, -2.0, 0.0, -1.0]


def test_what_makes_no_sense_is_said():
    w = tf.get_variable("w", [])
    inner = tf.train.GradientDescentOptimizer(1.0)
    for arguments, message in [
        ((-1, 0, 1), "staleness must be"),
        ((0.5, 0, 1), "staleness must be"),
        ((1, 2, 2), "worker_index is 2"),
        ((1, 0, 1, 0.0), "lease_seconds must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            tf.train.BoundedStalenessOptimizer(inner, *arguments)
    optimizer = tf.train.BoundedStalenessOptimizer(inner, 1, 0, 1)
    with pytest.raises(ValueError, match="after apply_gradients"):
        optimizer.make_session_run_hook().begin()
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.minimize(w * w)
