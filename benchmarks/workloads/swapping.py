"""A recurrent network over long sequences, whose gradient keeps much of every step of time."""

from __future__ import annotations

from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

BATCH, INPUTS, HIDDEN = 256, 64, 1024
RATE = 0.01
CHECKED_STEPS = 3


def training_step(frontend: str, swap_memory: bool, steps: int) -> Workload:
    """One training step of an LSTM; the sequences are on the device.

    The facts are the first losses and the most memory that was in use on the device.
    """
    tf = load_frontend(frontend)
    generator = numpy.random.default_rng(0)
    sequences = generator.standard_normal((steps, BATCH, INPUTS), dtype=numpy.float32)
    kernel = generator.standard_normal((INPUTS + HIDDEN, 4 * HIDDEN), dtype=numpy.float32)
    with tf.Graph().as_default():
        given = tf.Variable(sequences, trainable=False)
        cell = tf.nn.rnn_cell.BasicLSTMCell(HIDDEN)
        _, state = tf.nn.dynamic_rnn(
            cell, given, dtype=tf.float32, time_major=True, swap_memory=swap_memory
        )
        loss = tf.reduce_mean(tf.square(state.h - 0.5))
        train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        cell.variables[0].load(kernel / (INPUTS + HIDDEN) ** 0.5, session)

    def step() -> float:
        return float(session.run([train, loss])[1])

    losses = [step() for _ in range(CHECKED_STEPS)]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step()

    def facts() -> dict[str, Any]:
        return {"losses": losses, "bytes": _peak_bytes()}

    return Workload(run, facts)


def _peak_bytes() -> int:
    """The most memory of the device that has ever been in use."""
    import jax

    statistics = jax.local_devices()[0].memory_stats() or {}
    return int(statistics.get("peak_bytes_in_use", 0))
