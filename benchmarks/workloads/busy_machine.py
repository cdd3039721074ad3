"""The MLP, interpreted, while other processes want the cores too."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from benchmarks.frontends import load_frontend
from benchmarks.results import cores
from benchmarks.workload import Workload
from benchmarks.workloads import mlp

# Works from one byte to the next, and ends with its input: also when whoever started it is killed.
_BUSY = """
import select, sys
source = sys.stdin.buffer.raw
while source.read(1):
    while not select.select([source], [], [], 0)[0]:
        for _ in range(10_000):
            pass
    source.read(1)
"""


class _BusyProcesses(AbstractContextManager[None]):
    """A process for each core that computes within the block, and sleeps outside of it."""

    def __init__(self) -> None:
        self._processes = [
            subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE)
            for _ in range(cores())
        ]

    def _tell(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b".")
            process.stdin.flush()

    def __enter__(self) -> None:
        self._tell()

    def __exit__(self, *exception: Any) -> None:
        self._tell()


def training_step(frontend: str, beside: str) -> Workload:
    """Training steps that are never compiled.

    `beside` is what has the cores meanwhile: "nothing", "nothing, one core" of which the process
    keeps to itself, or "busy processes", one a core.
    """
    tf = load_frontend(frontend)
    if beside == "nothing, one core":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    others: AbstractContextManager[None] = nullcontext()
    if beside == "busy processes":
        others = _BusyProcesses()
    config = tf.ConfigProto()
    if frontend != "tensorflow":  # which does not compile by itself
        config.graph_options.optimizer_options.global_jit_level = -1
    with tf.Graph().as_default():
        images, labels, loss, train = mlp.describe(tf)
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
    data = mlp.batches()
    feeds = [{images: batch[0], labels: batch[1]} for batch in data]
    losses = [float(session.run([train, loss], feed)[1]) for feed in feeds[:5]]

    def run(iterations: int) -> None:
        with others:
            for iteration in range(iterations):
                session.run([train, loss], feeds[iteration % len(feeds)])

    return Workload(run, facts=lambda: {"losses": losses})
