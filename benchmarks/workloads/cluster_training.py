"""Training on one parameter server by several workers, asynchronous and synchronous.

The process of the contender is worker 0; the others run as many steps, at the same time.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.frontends import load_frontend
from benchmarks.workload import Facts, Workload
from benchmarks.workloads.cluster import Cluster, end_with_parent

WORKERS = 3
RATE = 0.01
LAYERS = [(784, 128), (128, 64), (64, 10)]
ROWS, UNITS, IDS = 200_000, 32, 8
BATCH = {"mlp": 100, "embedding": 256}
BATCHES = 8
ALIKE = 40
"""After so many steps contenders must have come to one loss."""

Batch = list[np.ndarray]


def batches(model: str, worker: int) -> list[Batch]:
    """What a worker trains on: images and labels, or ids of rows and what they should give."""
    rng = np.random.default_rng(worker)
    size = BATCH[model]
    if model == "mlp":
        return [
            [rng.normal(size=(size, 784)).astype(np.float32), rng.integers(0, 10, size)]
            for _ in range(BATCHES)
        ]
    return [
        [rng.integers(0, ROWS, (size, IDS)), rng.normal(size=size).astype(np.float32)]
        for _ in range(BATCHES)
    ]


def initial_values(model: str) -> list[np.ndarray]:
    """The parameters before the first step."""
    rng = np.random.default_rng(0)
    if model == "mlp":
        weights = [rng.normal(size=pair, scale=0.1).astype(np.float32) for pair in LAYERS]
        return [value for w in weights for value in (w, np.zeros(w.shape[1], np.float32))]
    return [np.full((ROWS, UNITS), 0.01, np.float32), np.full((UNITS, 1), 0.1, np.float32)]


def _perceptron(tf: Any) -> tuple[list[Any], Any]:
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int64, [None])
    values = [
        tf.get_variable(f"p{i}", initializer=value) for i, value in enumerate(initial_values("mlp"))
    ]
    hidden = images
    for layer in range(len(LAYERS)):
        hidden = tf.matmul(hidden, values[2 * layer]) + values[2 * layer + 1]
        if layer < len(LAYERS) - 1:
            hidden = tf.nn.relu(hidden)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
    return [images, labels], tf.reduce_mean(losses)


def _embedding(tf: Any) -> tuple[list[Any], Any]:
    ids = tf.placeholder(tf.int64, [None, IDS])
    wanted = tf.placeholder(tf.float32, [None])
    table = tf.get_variable("table", [ROWS, UNITS], initializer=tf.constant_initializer(0.01))
    weights = tf.get_variable("weights", [UNITS, 1], initializer=tf.constant_initializer(0.1))
    rows = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)
    found = tf.matmul(rows, weights)[:, 0]
    return [ids, wanted], tf.reduce_mean(tf.square(found - wanted))


MODELS = {"mlp": _perceptron, "embedding": _embedding}


class Worker:
    """A worker of the job, with its session."""

    def __init__(
        self, frontend: str, spec: dict[str, list[str]], index: int, model: str, synchronous: bool
    ) -> None:
        tf = load_frontend(frontend)
        cluster = tf.train.ClusterSpec(spec)
        server = tf.train.Server(cluster, "worker", index)
        place = tf.train.replica_device_setter(
            cluster=cluster, worker_device=f"/job:worker/task:{index}"
        )
        hooks = []
        with tf.Graph().as_default():
            with tf.device(place):
                self._feeds, self._loss = MODELS[model](tf)
                optimizer = tf.train.GradientDescentOptimizer(RATE)
                if synchronous:
                    optimizer = tf.train.SyncReplicasOptimizer(optimizer, WORKERS, WORKERS)
                    # Without tokens at the start no worker is ahead, so no gradient is dropped: as
                    # many steps of each worker are as many updates, and none waits at the end.
                    hooks = [optimizer.make_session_run_hook(index == 0, num_tokens=0)]
                step = tf.train.get_or_create_global_step()
                self._train = optimizer.minimize(self._loss, global_step=step)
            self._session = tf.train.MonitoredTrainingSession(
                server.target,
                is_chief=index == 0,
                hooks=hooks,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                log_step_count_steps=None,
            )
        self._data = batches(model, index)
        self._next = 0
        self.losses: list[float] = []
        """Of the last step of each run."""

    def run(self, steps: int) -> None:
        """Trains for so many steps."""
        for _ in range(steps):
            batch = self._data[self._next % BATCHES]
            self._next += 1
            fed = dict(zip(self._feeds, batch, strict=True))
            loss = float(self._session.run([self._loss, self._train], fed)[0])
        self.losses.append(loss)


def training(frontend: str, model: str, synchronous: bool) -> Workload:
    """A step of each worker."""
    program = {"model": model, "synchronous": synchronous}
    cluster = Cluster(frontend, 1, WORKERS, program, __name__)
    worker = Worker(frontend, cluster.spec, 0, **program)

    def run(iterations: int) -> None:
        cluster.begin(iterations)
        worker.run(iterations)
        cluster.await_end()

    return Workload(run, facts=trained_alike(run, worker.losses))


def trained_alike(run: Callable[[int], None], losses: list[float]) -> Callable[[], Facts]:
    """Trains for a number of steps; gives the loss afterwards, which contenders must agree on.

    `losses` are those of worker 0 in the last steps of the runs. That of the step after `ALIKE`
    steps of each worker has seen all of their updates.
    """
    run(ALIKE)
    run(1)
    after = losses[-1]
    return lambda: {"losses": [after], "right": all(map(math.isfinite, losses))}


def main() -> None:
    """Another task of the job."""
    task = json.loads(sys.argv[1])
    end_with_parent()
    if task["job"] == "ps":
        tf = load_frontend(task["frontend"])
        tf.train.Server(tf.train.ClusterSpec(task["spec"]), "ps", task["index"]).join()
        return
    worker = Worker(task["frontend"], task["spec"], task["index"], **task["program"])
    for line in sys.stdin:
        worker.run(int(line))
        print("done", flush=True)


if __name__ == "__main__":
    main()
