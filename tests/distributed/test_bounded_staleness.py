"""Bounded staleness on a cluster: workers keep together, die, and come back."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import servers
from tests.distributed.replicas import monitored, replica_device, run_all

pytestmark = pytest.mark.timeout(120)

WORKERS = 3


class Killed(Exception):
    """Ends a worker as a signal would: it does not say that it leaves."""


def work(cluster, index, steps, staleness, lease, seen, dies=False):
    """Makes ``steps`` steps with a gradient of -1, and notes the clocks of members after each."""
    with replica_device(cluster["ps0"].server_def.cluster, index):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], tf.float64, tf.zeros_initializer())
        optimizer = tf.train.BoundedStalenessOptimizer(
            tf.train.GradientDescentOptimizer(1.0), staleness, index, WORKERS, lease
        )
        train = optimizer.apply_gradients([(tf.constant([-1.0, -1.0], tf.float64), w)], step)
        dropped = optimizer.num_dropped()
        members = optimizer._members.variable
    hook = optimizer.make_session_run_hook()
    with monitored(cluster[f"worker{index}"].target, index == 0, hook) as sess:
        for _ in range(steps):
            table, _ = sess.run([members, train])
            seen.append({worker: row[1] for worker, row in enumerate(table) if row[0]})
        if dies:
            raise Killed
        seen.append(sess.run([step, w, dropped]))


def test_nobody_runs_away_and_every_step_counts():
    seen = [[] for _ in range(WORKERS)]
    with servers(ps=2, worker=WORKERS) as cluster:
        # The first one makes fewer steps, and leaves: the others do not wait for it.
        steps = [10, 40, 40]
        run_all(*(partial(work, cluster, i, steps[i], 1, 60.0, seen[i]) for i in range(WORKERS)))
    ends = [history.pop() for history in seen]
    step, w, dropped = max(ends, key=lambda end: end[0])
    assert (step, w.tolist(), dropped) == (sum(steps), [sum(steps)] * 2, 0)
    for clocks in sum(seen, []):
        assert np.ptp(list(clocks.values())) <= 2  # the one that has just ended a step is one more


def test_a_dead_worker_stops_nobody_and_comes_back_beside_the_slowest():
    seen, again = [[] for _ in range(WORKERS)], []

    def dies(cluster):
        with pytest.raises(Killed):
            work(cluster, 2, 5, 1, 0.5, seen[2], dies=True)
        # Its next life begins where the others are by then.
        with tf.Graph().as_default():
            work(cluster, 2, 5, 1, 0.5, again)

    with servers(ps=1, worker=WORKERS) as cluster:
        others = [partial(work, cluster, i, 150, 1, 0.5, seen[i]) for i in range(2)]
        run_all(*others, partial(dies, cluster))
    # What the last one saw: others may have been in the middle of a step before.
    ends = [seen[0].pop(), seen[1].pop(), again.pop()]
    step, w, _ = max(ends, key=lambda end: end[0])
    assert w.tolist() == [step] * 2
    assert len(seen[0]) == 150  # it went on, whoever had died
    for clocks in seen[0] + again:
        assert np.ptp(list(clocks.values())) <= 2
