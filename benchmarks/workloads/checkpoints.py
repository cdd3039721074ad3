"""Saving and restoring variables, and training while a checkpoint is being written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads.queues import perceptron

VARIABLES = 64
BATCH = 100
STEPS_PER_SAVE = 20


def _memory(field: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at most since :func:`_forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise ValueError(f"the system does not tell {field}")


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def saving_or_restoring(frontend: str, what: str, megabytes: int) -> Workload:
    """Saves ("save") or restores ("restore") variables of some megabytes, each time.

    The fact "extra" is the memory that the first time takes over that of the variables.
    """
    tf = load_frontend(frontend)
    rows = (megabytes << 20) // (VARIABLES * 4096 * 4)
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    path = os.path.join(folder.name, "model")
    with tf.Graph().as_default():
        variables = [
            tf.get_variable(f"v{i}", [rows, 4096], initializer=tf.ones_initializer())
            for i in range(VARIABLES)
        ]
        grown = tf.group(
            *[v.assign_add(tf.fill([rows, 4096], float(i))) for i, v in enumerate(variables)]
        )
        saver = tf.train.Saver(max_to_keep=1)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        session.run(grown)
        size = VARIABLES * rows * 4096 * 4
        if what == "restore":
            saver.save(session, path, write_meta_graph=False)
            session.close()  # what is restored comes into an empty session
            session = tf.Session()
    _forget_peak()
    before = _memory("VmRSS")
    extra: list[float] = []

    def run(iterations: int) -> None:
        for _ in range(iterations):
            if what == "save":
                saver.save(session, path, write_meta_graph=False)
            else:
                saver.restore(session, path)
            if not extra:
                grown = _memory("VmHWM") - before
                extra.append((grown - (size if what == "restore" else 0)) / size)

    def facts() -> dict[str, Any]:
        last = session.run(variables[-1][0, :2])
        assert os.path.exists(folder.name)
        return {"extra": extra[0], "right": last.tolist() == [float(VARIABLES)] * 2}

    return Workload(run, facts)


def training(frontend: str, saving: str, hidden_units: int) -> Workload:
    """Training steps of a perceptron, with a checkpoint being written all the time, or none.

    ``saving`` is "nothing" or "background". A new checkpoint begins when the last is complete.
    """
    tf = load_frontend(frontend)
    rng = numpy.random.default_rng(1)
    images = rng.normal(size=(BATCH, 784)).astype(numpy.float32)
    labels = rng.integers(0, 10, BATCH).astype(numpy.int32)
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with tf.Graph().as_default() as graph:
        loss, train = perceptron(tf, tf.constant(images), tf.constant(labels), hidden_units)
        saver = tf.train.Saver(max_to_keep=2)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        graph.finalize()
    step = session.make_callable([train, loss])
    writing: list[Any] = []
    number = 0

    def run(iterations: int) -> None:
        nonlocal number
        for _ in range(iterations):
            step()
            number += 1
            if saving == "background" and number % STEPS_PER_SAVE == 0:
                writing[:] = [
                    saver.save_in_background(session, os.path.join(folder.name, "m"), number)
                ]

    def facts() -> dict[str, Any]:
        if writing:
            writing[0].wait()
        there = tf.train.latest_checkpoint(folder.name)
        return {"right": (there is not None) == (saving == "background")}

    return Workload(run, facts)
