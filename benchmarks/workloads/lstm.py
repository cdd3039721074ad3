"""A sequence classifier: an LSTM along time, its outputs averaged, a softmax over ten classes.

One program for every frontend with TensorFlow's names; how long sequences are is unknown until
they are fed. TensorFlow's cells are in tf-keras, which has to be chosen before TensorFlow is
imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 50, 64, 512, 512, 10
RATE = 0.5
CHECKED_STEPS = 5


class Weights(NamedTuple):
    """Initial values; the columns of the kernel are the gates i, j, f, o, as in TensorFlow."""

    kernel: numpy.ndarray
    bias: numpy.ndarray
    readout: numpy.ndarray


class Batch(NamedTuple):
    """Sequences, time first, and the class of each."""

    sequences: numpy.ndarray
    labels: numpy.ndarray


def initial_weights(inputs: int = INPUTS, hidden: int = HIDDEN) -> Weights:
    """The same weights for every contender; 1 is added to the forget gates' bias in use."""
    generator = numpy.random.default_rng(0)

    def normal(rows: int, columns: int) -> numpy.ndarray:
        return (generator.standard_normal((rows, columns)) / rows**0.5).astype(numpy.float32)

    kernel = normal(inputs + hidden, 4 * hidden)
    return Weights(kernel, numpy.zeros(4 * hidden, numpy.float32), normal(hidden, CLASSES))


def batch_of(number: int, steps: int = STEPS, batch: int = BATCH, inputs: int = INPUTS) -> Batch:
    """Sequences that differ from class to class in one input, and their classes."""
    generator = numpy.random.default_rng(number)
    labels = generator.integers(0, CLASSES, batch)
    sequences = generator.standard_normal((steps, batch, inputs), dtype=numpy.float32)
    sequences[:, numpy.arange(batch), labels] += 2.0
    return Batch(sequences, labels.astype(numpy.int32))


def describe(tf: Any, batch: int | None, weights: Weights) -> tuple[Any, Any, Any, Any]:
    """Build the graph: sequences, labels, the loss, the op that trains."""
    hidden = weights.readout.shape[0]
    inputs = weights.kernel.shape[0] - hidden
    sequences = tf.placeholder(tf.float32, [None, batch, inputs], "sequences")
    labels = tf.placeholder(tf.int32, [batch], "labels")
    cell = tf.nn.rnn_cell.BasicLSTMCell(hidden)
    outputs, _ = tf.nn.dynamic_rnn(cell, sequences, dtype=tf.float32, time_major=True)
    logits = tf.matmul(tf.reduce_mean(outputs, axis=0), tf.Variable(weights.readout))
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(entropy)
    return sequences, labels, loss, tf.train.GradientDescentOptimizer(RATE).minimize(loss)


def make_step(frontend: str, batch: int | None, weights: Weights) -> Callable[[Batch], float]:
    """A training step over a graph and a session of its own; it gives the loss.

    Without a ``batch`` its size, too, is unknown until it is fed.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        sequences, labels, loss, train = describe(tf, batch, weights)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        values = {"kernel": weights.kernel, "bias": weights.bias}
        for variable in tf.trainable_variables():
            value = values.get(variable.op.name.rpartition("/")[2])
            if value is not None:
                variable.load(value, session)

    def step(fed: Batch) -> float:
        feeds = {sequences: fed.sequences, labels: fed.labels}
        return float(session.run([train, loss], feeds)[1])

    return step


def repeated(step: Callable[[Batch], float], **facts: Any) -> Workload:
    """The step on one fresh batch after another, and its first losses."""
    data = [batch_of(number) for number in range(CHECKED_STEPS)]
    losses = [step(batch) for batch in data]
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            step(batch)

    return Workload(run, facts=lambda: {"losses": losses, **facts})


def training_step(frontend: str) -> Workload:
    """One training step on a batch from NumPy, with the loss brought back."""
    return repeated(make_step(frontend, BATCH, initial_weights()))
