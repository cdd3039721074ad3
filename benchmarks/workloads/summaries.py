"""Training steps that are summarized, each one, and the same without."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads.queues import perceptron

BATCH = 100


def training(frontend: str, summarized: str, hidden_units: int) -> Workload:
    """A training step, and its ``summarized`` part: "nothing", "progress" or "weights"."""
    tf = load_frontend(frontend)
    rng = numpy.random.default_rng(1)
    images = rng.normal(size=(BATCH, 784)).astype(numpy.float32)
    labels = rng.integers(0, 10, BATCH).astype(numpy.int32)
    with tf.Graph().as_default() as graph:
        loss, train = perceptron(tf, tf.constant(images), tf.constant(labels), hidden_units)
        variables = tf.trainable_variables()
        tf.summary.scalar("loss", loss)
        for variable in variables if summarized == "weights" else variables[-1:]:
            name = variable.op.name
            tf.summary.scalar(f"norm/{name}", tf.sqrt(tf.reduce_sum(tf.square(variable))))
            tf.summary.histogram(name, variable)
        fetches = [train, loss]
        if summarized != "nothing":
            fetches.append(tf.summary.merge_all())
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        writer = tf.summary.FileWriter(folder.name, graph)
    step = session.make_callable(fetches)
    number = 0

    def run(iterations: int) -> None:
        nonlocal number
        for _ in range(iterations):
            _, _, *summaries = step()
            number += 1
            for summary in summaries:
                writer.add_summary(summary, number)

    losses = [float(step()[1]) for _ in range(5)]

    def facts() -> dict[str, Any]:
        writer.flush()
        return {"losses": losses, "right": len(os.listdir(folder.name)) == 1}

    return Workload(run, facts)
