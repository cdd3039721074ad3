"""The first steps of a program's life: networks that are trained from a standing start.

One program for every frontend with TensorFlow's names. TensorFlow's cells are in tf-keras, which
has to be chosen before TensorFlow is imported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload
from benchmarks.workloads import mlp

CLASSES = 10
CHECKED_STEPS = 5
AFTER = 100
"""Steps after which a program has found its pace."""
LAYERS, WIDTH = 2_000, 16


def first_steps(frontend: str, model: str, steps: int) -> Workload:
    """One unit of work is the first ``steps`` steps of ``model``; a process does it once.

    The facts are how long the first step took, the longest of the others, a typical one at the
    beginning (``early``), after ``AFTER`` and at the end (``late``), and the first losses.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        images, labels, loss, train = MODELS[model](tf)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        generator = numpy.random.default_rng(2)
        for variable in tf.trainable_variables():
            # Both start from the same weights, in whatever order they make them.
            value = generator.standard_normal(variable.shape.as_list()).astype(numpy.float32)
            fan_in = numpy.prod(value.shape[:-1]) if value.ndim > 1 else 100
            variable.load(value / fan_in**0.5, session)
    shape = [BATCHES[model], *images.shape.as_list()[1:]]
    data = [
        (generator.random(shape, dtype=numpy.float32), generator.integers(0, CLASSES, shape[0]))
        for _ in range(20)
    ]
    seconds: list[float] = []
    losses: list[float] = []

    def run(iterations: int) -> None:
        if iterations != 1 or seconds:
            raise ValueError("the first steps are measured once in a process")
        for x, y in islice(cycle(data), steps):
            started = time.perf_counter()
            value = session.run([train, loss], {images: x, labels: y})[1]
            seconds.append(time.perf_counter() - started)
            losses.append(float(value))

    def facts() -> dict[str, Any]:
        later = seconds[1:]
        return {
            "first": seconds[0],
            "longest": max(later),
            "early": float(numpy.median(later[:10])),
            "after": float(numpy.median(seconds[AFTER:])) if steps > AFTER else 0.0,
            "late": float(numpy.median(later[-50:])),
            "losses": losses[:CHECKED_STEPS],
        }

    return Workload(run, facts)


def _trained(tf: Any, logits: Any, labels: Any, optimizer: Any) -> tuple[Any, Any]:
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(entropy)
    return loss, optimizer.minimize(loss)


def _weight(tf: Any, *shape: int) -> Any:
    return tf.Variable(tf.zeros(shape))


def convolutional(tf: Any) -> tuple[Any, Any, Any, Any]:
    """Two convolutions with max-pooling and two dense layers over 28 × 28 images, with Adam."""
    images = tf.placeholder(tf.float32, [None, 28, 28, 1])
    labels = tf.placeholder(tf.int32, [None])
    value, channels = images, 1
    for filters in (32, 64):
        value = tf.nn.conv2d(value, _weight(tf, 5, 5, channels, filters), 1, "SAME")
        value = tf.nn.relu(tf.nn.bias_add(value, _weight(tf, filters)))
        value, channels = tf.nn.max_pool(value, 2, 2, "SAME"), filters
    value = tf.reshape(value, [-1, 7 * 7 * 64])
    value = tf.nn.relu(tf.matmul(value, _weight(tf, 7 * 7 * 64, 256)) + _weight(tf, 256))
    logits = tf.matmul(value, _weight(tf, 256, CLASSES)) + _weight(tf, CLASSES)
    return images, labels, *_trained(tf, logits, labels, tf.train.AdamOptimizer(1e-3))


def residual(tf: Any) -> tuple[Any, Any, Any, Any]:
    """ResNet-18 at a quarter of its width over 32 × 32 images: batch normalisation, momentum."""
    images = tf.placeholder(tf.float32, [None, 32, 32, 3])
    labels = tf.placeholder(tf.int32, [None])

    def conv(value: Any, filters: int, stride: int, size: int = 3, relu: bool = True) -> Any:
        kernel = _weight(tf, size, size, value.shape.as_list()[-1], filters)
        value = tf.nn.conv2d(value, kernel, stride, "SAME")
        scale, offset = tf.Variable(tf.ones([filters])), _weight(tf, filters)
        value, _, _ = tf.nn.fused_batch_norm(value, scale, offset, epsilon=1e-3)
        return tf.nn.relu(value) if relu else value

    value = conv(images, 16, 1)
    for stage, filters in enumerate((16, 32, 64, 128)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            shortcut = conv(value, filters, stride, 1, False) if stride == 2 else value
            path = conv(conv(value, filters, stride), filters, 1, 3, False)
            value = tf.nn.relu(path + shortcut)
    logits = tf.matmul(tf.reduce_mean(value, [1, 2]), _weight(tf, 128, CLASSES))
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    return images, labels, *_trained(tf, logits, labels, optimizer)


def equal_layers(tf: Any) -> tuple[Any, Any, Any, Any]:
    """2,000 dense layers of 16, each with its own weights, with gradient descent."""
    inputs = tf.placeholder(tf.float32, [None, WIDTH])
    labels = tf.placeholder(tf.int32, [None])
    value = inputs
    for _ in range(LAYERS):
        value = tf.nn.tanh(tf.matmul(value, _weight(tf, WIDTH, WIDTH)) + _weight(tf, WIDTH))
    logits = tf.matmul(value, _weight(tf, WIDTH, CLASSES))
    optimizer = tf.train.GradientDescentOptimizer(1e-3)
    return inputs, labels, *_trained(tf, logits, labels, optimizer)


def unrolled_lstm(tf: Any, steps: int = 28) -> tuple[Any, Any, Any, Any]:
    """An LSTM of 128, unrolled along the rows of an image, with Adam."""
    images = tf.placeholder(tf.float32, [None, steps, 28])
    labels = tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.BasicLSTMCell(128)
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(images, steps, 1), dtype=tf.float32)
    logits = tf.matmul(outputs[-1], _weight(tf, 128, CLASSES)) + _weight(tf, CLASSES)
    return images, labels, *_trained(tf, logits, labels, tf.train.AdamOptimizer(1e-3))


def encoder(tf: Any) -> tuple[Any, Any, Any, Any]:
    """Twelve layers of attention over 16 places, 64 wide, with dropout and Adam."""
    heads, places, wide = 4, 16, 64
    inputs = tf.placeholder(tf.float32, [None, places, wide])
    labels = tf.placeholder(tf.int32, [None])
    seeds = iter(range(1, 1_000))

    def dense(value: Any, inner: int, outer: int) -> Any:
        flat = tf.matmul(tf.reshape(value, [-1, inner]), _weight(tf, inner, outer))
        return tf.reshape(flat + _weight(tf, outer), [-1, places, outer])

    def normed(value: Any) -> Any:
        mean, variance = tf.nn.moments(value, [-1], keepdims=True)
        return (value - mean) * tf.math.rsqrt(variance + 1e-6) * (1 + _weight(tf, wide))

    def dropped(value: Any) -> Any:
        return tf.nn.dropout(value, rate=0.1, seed=next(seeds))

    value = inputs
    for _ in range(12):
        query, key, taken = (
            tf.transpose(
                tf.reshape(dense(value, wide, wide), [-1, places, heads, wide // heads]),
                [0, 2, 1, 3],
            )
            for _ in range(3)
        )
        weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * 0.25)
        mixed = tf.transpose(tf.matmul(dropped(weights), taken), [0, 2, 1, 3])
        mixed = tf.reshape(mixed, [-1, places, wide])
        value = normed(value + dropped(dense(mixed, wide, wide)))
        inner = dense(value, wide, 4 * wide)
        inner = inner * 0.5 * (1.0 + tf.math.erf(inner * 0.5**0.5))
        value = normed(value + dropped(dense(inner, 4 * wide, wide)))
    logits = tf.matmul(tf.reduce_mean(value, 1), _weight(tf, wide, CLASSES))
    return inputs, labels, *_trained(tf, logits, labels, tf.train.AdamOptimizer(1e-3))


MODELS: dict[str, Callable[[Any], tuple[Any, Any, Any, Any]]] = {
    "mlp": mlp.describe,
    "convolutional": convolutional,
    "residual": residual,
    "unrolled_lstm": unrolled_lstm,
    "long_lstm": partial(unrolled_lstm, steps=200),
    "equal_layers": equal_layers,
    "encoder": encoder,
}
BATCHES = {
    "mlp": mlp.BATCH,
    "convolutional": 50,
    "residual": 16,
    "unrolled_lstm": 64,
    "long_lstm": 64,
    "equal_layers": 32,
    "encoder": 8,
}
