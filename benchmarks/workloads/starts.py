"""The first steps of training programs, each step timed, in a process that was just started.

`python -m benchmarks.workloads.starts mlp 300 default` prints what it found as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.workloads import lstm, mlp

Described = tuple[Any, Any, dict[Any, Any]]
"""The loss, the op that trains, and what a step is fed."""
UNROLLED, UNITS = 28, 64


def _mlp(tf: Any) -> Described:
    images, labels, loss, train = mlp.describe(tf)
    [batch] = mlp.batches(1)
    return loss, train, dict(zip((images, labels), batch, strict=True))


def _classified(tf: Any, features: Any, size: int, batch: int) -> tuple[Any, Any, dict[Any, Any]]:
    """Ten classes from ``features``, with Adam."""
    labels = tf.placeholder(tf.int32, [batch])
    generator = numpy.random.default_rng(2)
    readout = generator.standard_normal((size, 10), dtype=numpy.float32) / size**0.5
    logits = tf.matmul(features, tf.Variable(readout))
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(entropy)
    train = tf.train.AdamOptimizer(mlp.RATE).minimize(loss)
    return loss, train, {labels: numpy.arange(batch, dtype=numpy.int32) % 10}


def _convolutional(tf: Any) -> Described:
    generator = numpy.random.default_rng(3)
    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    value = images
    for channels, filters in ((1, 16), (16, 32)):
        shape = (5, 5, channels, filters)
        kernel = generator.standard_normal(shape, dtype=numpy.float32) / (25 * channels) ** 0.5
        value = tf.nn.conv2d(value, tf.Variable(kernel), [1, 1, 1, 1], "SAME")
        value = tf.nn.relu(value + tf.Variable(tf.zeros([filters])))
        value = tf.nn.max_pool(value, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = 7 * 7 * 32
    loss, train, feed = _classified(tf, tf.reshape(value, [-1, flat]), flat, mlp.BATCH)
    feed[images] = generator.random((mlp.BATCH, 28, 28, 1), dtype=numpy.float32)
    return loss, train, feed


def _unrolled_lstm(tf: Any) -> Described:
    inputs = tf.placeholder(tf.float32, [UNROLLED, mlp.BATCH, 28])
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(inputs), dtype=tf.float32)
    loss, train, feed = _classified(tf, outputs[-1], UNITS, mlp.BATCH)
    feed[inputs] = lstm.batch_of(0, UNROLLED, mlp.BATCH, 28).sequences
    return loss, train, feed


MODELS: dict[str, tuple[str, Callable[[Any], Described]]] = {
    "mlp": ("MLP 784-128-64-10", _mlp),
    "convolutional": ("convolutional network on 28 × 28", _convolutional),
    "unrolled_lstm": (f"LSTM of {UNITS}, {UNROLLED} steps unrolled", _unrolled_lstm),
}


def first_steps(model: str, count: int, compiled_at_once: bool) -> dict[str, Any]:
    """The times of the first ``count`` steps, and where JAX spent its part of them."""
    import jax

    import runnel as tf
    from runnel.runtime.compile import executable_cache

    spent: Counter[str] = Counter()

    def note(event: str, seconds: float, **_: Any) -> None:
        spent[event.rpartition("/")[2].removesuffix("_duration")] += seconds  # type: ignore[assignment]

    jax.monitoring.register_event_duration_secs_listener(note)
    config = tf.ConfigProto()
    if compiled_at_once:
        level = config.graph_options.optimizer_options
        level.global_jit_level = tf.OptimizerOptions.ON_1
    tf.set_random_seed(0)
    loss, train, feed = MODELS[model][1](tf)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        executable_cache.counts.clear()
        spent.clear()
        times, losses = [], []
        for _ in range(count):
            start = time.perf_counter()
            losses.append(float(session.run([train, loss], feed)[1]))
            times.append(time.perf_counter() - start)
    return {
        "first": times[0],
        "longest": max(times),
        "warm": statistics.median(times[-count // 4 :]),
        "losses": [losses[0], losses[-1]],
        # What loads an executable is to JAX what compiles it.
        "making": spent["backend_compile"],
        "tracing": spent["jaxpr_trace"] + spent["jaxpr_to_mlir_module"],
        "compiled": executable_cache.counts["compiled"],
        "loaded": executable_cache.counts["loaded"],
    }


if __name__ == "__main__":
    print(json.dumps(first_steps(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "compiled")))
