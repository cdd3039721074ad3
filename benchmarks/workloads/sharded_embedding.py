"""A sharded embedding under a linear model, trained with Adagrad, with TensorFlow's names."""

from __future__ import annotations

from itertools import cycle

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

ROWS, UNITS, EXAMPLES, IDS = 1_000_000, 64, 4_096, 16
RATE, INITIAL_ACCUMULATOR = 0.1, 0.1
FIRST_ROW, FIRST_WEIGHT = 0.01, 0.1
CHECKED_STEPS = 3

Batch = tuple[numpy.ndarray, numpy.ndarray]


def batches(count: int = 8) -> list[Batch]:
    """Ids of rows, and what the sum of an example's rows is to give."""
    generator = numpy.random.default_rng(0)
    return [
        (
            generator.integers(0, ROWS, (EXAMPLES, IDS)),
            generator.standard_normal(EXAMPLES, dtype=numpy.float32),
        )
        for _ in range(count)
    ]


def training_step(frontend: str, shards: int) -> Workload:
    """One training step on a fresh batch from NumPy, with the loss brought back."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None, IDS])
        wanted = tf.placeholder(tf.float32, [None])
        table = tf.get_variable(
            "table",
            [ROWS, UNITS],
            initializer=tf.constant_initializer(FIRST_ROW),
            partitioner=tf.fixed_size_partitioner(shards),
        )
        weights = tf.get_variable(
            "weights", [UNITS, 1], initializer=tf.constant_initializer(FIRST_WEIGHT)
        )
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        found = tf.matmul(tf.reduce_sum(rows, 1), weights)[:, 0]
        loss = tf.reduce_mean(tf.square(found - wanted))
        train = tf.train.AdagradOptimizer(RATE, INITIAL_ACCUMULATOR).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())

    def step(batch: Batch) -> float:
        return float(session.run([loss, train], {ids: batch[0], wanted: batch[1]})[0])

    data = batches()
    losses = [step(batch) for batch in data[:CHECKED_STEPS]]
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            step(batch)

    return Workload(run, facts=lambda: {"losses": losses})
