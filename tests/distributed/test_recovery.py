"""A job goes on after a parameter server was killed and started anew, from its checkpoint."""

from __future__ import annotations

import pytest

import runnel as tf
from tests.distributed.clusters import Process, cluster_of

pytestmark = pytest.mark.timeout(180)


def test_a_monitored_session_goes_on_from_the_newest_checkpoint(tmp_path):
    spec = cluster_of(ps=1, worker=1)
    ps = Process(spec, "ps", 0)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        with tf.device(tf.train.replica_device_setter(cluster=spec)):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            train = tf.train.GradientDescentOptimizer(0.1).minimize(
                tf.square(w - 1.0), global_step=step
            )
        seen = []
        killed = False
        with tf.train.MonitoredTrainingSession(
            worker.target,
            checkpoint_dir=str(tmp_path),
            hooks=[tf.train.StopAtStepHook(last_step=30)],
            save_checkpoint_secs=None,
            save_checkpoint_steps=5,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as sess:
            while not sess.should_stop():
                _, number, value = sess.run([train, step, w])
                seen.append((int(number), float(value)))
                if number == 12 and not killed:
                    killed = True
                    ps.kill()
                    ps = Process(spec, "ps", 0)
        numbers = [number for number, _ in seen]
        assert numbers[-1] == 30
        lost = numbers.index(12) + 1
        assert 10 <= numbers[lost] <= 13  # from the checkpoint of step 10
        # No step is counted twice: each number has one value of w, before and after.
        values: dict[int, float] = {}
        for number, value in seen:
            assert values.setdefault(number, value) == pytest.approx(value, abs=1e-6)
    finally:
        tf.summary.FileWriterCache.clear()  # the hook that saves also writes events
        worker.stop()
        ps.kill()
