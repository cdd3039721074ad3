"""What the soak trains on every task: a linear model, until a file says that it is enough."""

from __future__ import annotations

import json
import os
import sys

import numpy as np

import runnel as tf


class StopWhenTold(tf.train.SessionRunHook):
    """Ends the loop when a file appears."""

    def __init__(self, path: str) -> None:
        self._path = path

    def after_run(self, run_context, run_values):
        if os.path.exists(self._path):
            run_context.request_stop()


def main(folder: str, enough: str) -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, task["type"], task["index"])
    if task["type"] == "ps":
        server.join()
    worker = f"/job:worker/task:{task['index']}"
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [8, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        train = tf.train.GradientDescentOptimizer(0.02).minimize(loss, global_step=step)
    random = np.random.default_rng(os.getpid())
    truth = np.arange(8, dtype=np.float32)[:, None]
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=task["index"] == 0,
        checkpoint_dir=folder,
        save_checkpoint_secs=1,
        save_summaries_steps=None,
        log_step_count_steps=None,
        hooks=[StopWhenTold(enough)],
    ) as sess:
        while not sess.should_stop():
            batch = random.standard_normal((16, 8)).astype(np.float32)
            found = sess.run([train, loss], {x: batch, y: batch @ truth})[1]
    print(f"loss {found:.3g}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
