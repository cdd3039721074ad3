"""A table in a memory-mapped file, of any size, of which each step trains some rows."""

from __future__ import annotations

import tempfile
from itertools import cycle

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

UNITS, IDS = 64, 1_000
RATE = 1.0


def training_step(frontend: str, megabytes: int, mapped: bool = True) -> Workload:
    """One step of momentum on rows all over a table of zeros, with the loss brought back."""
    tf = load_frontend(frontend)
    rows = megabytes * 1_000_000 // (4 * UNITS)
    folder = tempfile.TemporaryDirectory()
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [IDS])
        with tf.mapped_variables(folder.name if mapped else None):
            table = tf.get_variable("table", [rows, UNITS], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids) - 1))
        # Its slots begin as zeros too, which are not written: no writing goes on beside the steps.
        train = tf.train.MomentumOptimizer(RATE, 0.5).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    generator = numpy.random.default_rng(0)
    batches = [generator.integers(0, rows, IDS) for _ in range(8)]
    losses: list[float] = []
    endless = cycle(batches)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            losses.append(float(session.run([loss, train], {ids: batch})[0]))

    run(2 * len(batches))  # what a row costs at first is the disk's business
    folder.cleanup()  # its files have no names
    return Workload(run, facts=lambda: {"right": losses[len(batches)] < losses[0]})
