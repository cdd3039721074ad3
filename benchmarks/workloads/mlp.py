"""The MLP 784-128-64-10 with Adam: one program for every frontend with TensorFlow's names.

`python -m benchmarks.workloads.mlp runnel` builds it and runs one step: the whole-process row.
"""

from __future__ import annotations

import sys
from itertools import cycle
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

SIZES = (784, 128, 64, 10)
BATCH = 100
RATE = 1e-3
CHECKED_STEPS = 5

Batch = tuple[numpy.ndarray, numpy.ndarray]


def initial_weights() -> list[numpy.ndarray]:
    """The same weights for every contender; the biases start at zero."""
    generator = numpy.random.default_rng(0)
    return [
        (generator.standard_normal((fan_in, fan_out)) / fan_in**0.5).astype(numpy.float32)
        for fan_in, fan_out in zip(SIZES, SIZES[1:], strict=False)
    ]


def batches(count: int = 20, label_type: type = numpy.int32) -> list[Batch]:
    """Images and labels as NumPy arrays, as an input pipeline would hand them over."""
    generator = numpy.random.default_rng(1)
    return [
        (
            generator.random((BATCH, SIZES[0]), dtype=numpy.float32),
            generator.integers(0, SIZES[-1], BATCH).astype(label_type),
        )
        for _ in range(count)
    ]


def describe(tf: Any) -> tuple[Any, Any, Any, Any]:
    """Build the graph: images, labels, the loss, the op that trains."""
    images = tf.placeholder(tf.float32, [None, SIZES[0]])
    labels = tf.placeholder(tf.int32, [None])
    value = images
    weights = initial_weights()
    for layer, initial in enumerate(weights):
        bias = tf.Variable(tf.zeros([initial.shape[1]]))
        value = tf.matmul(value, tf.Variable(initial)) + bias
        if layer < len(weights) - 1:
            value = tf.nn.relu(value)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=value)
    loss = tf.reduce_mean(entropy)
    return images, labels, loss, tf.train.AdamOptimizer(RATE).minimize(loss)


def training_step(frontend: str) -> Workload:
    """One training step on a fresh batch from NumPy, with the loss brought back."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        images, labels, loss, train = describe(tf)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    data = batches()

    def step(batch: Batch) -> float:
        return session.run([train, loss], feed_dict={images: batch[0], labels: batch[1]})[1]

    losses = [float(step(batch)) for batch in data[:CHECKED_STEPS]]
    endless = cycle(data)

    def run(iterations: int) -> None:
        for _, batch in zip(range(iterations), endless, strict=False):
            step(batch)

    return Workload(run, facts=lambda: {"losses": losses})


def run_once(frontend: str) -> float:
    """Build the graph and run a single step, as a short script does."""
    tf = load_frontend(frontend)
    images, labels, loss, train = describe(tf)
    [batch] = batches(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {images: batch[0], labels: batch[1]}
        return float(session.run([train, loss], feed_dict=feeds)[1])


if __name__ == "__main__":
    print(run_once(sys.argv[1]))
