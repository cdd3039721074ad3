"""A detector of boxes in pictures: its layers keep their shapes, but not the number of boxes.

One program for every frontend with TensorFlow's names.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

PICTURES, SIZE, KINDS = 4, 96, 5
MOST_BOXES = 14
FILTERS = (16, 32, 64, 64)
CELLS = SIZE >> len(FILTERS)
ANCHORS = 3 * CELLS * CELLS
CHECKED_STEPS = 20

Batch = tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]


def batches(count: int = 50) -> list[Batch]:
    """Pictures, the boxes in them, and the kind of each."""
    generator = numpy.random.default_rng(3)
    found = []
    for number in range(count):
        boxes = 1 + 5 * number % MOST_BOXES
        corner = generator.random((boxes, 2)) * 0.6
        found.append(
            (
                generator.random((PICTURES, SIZE, SIZE, 3), dtype=numpy.float32),
                numpy.concatenate([corner, corner + 0.15 + 0.2 * generator.random((boxes, 2))], 1),
                generator.integers(1, KINDS, boxes),
            )
        )
    return found


def describe(tf: Any) -> tuple[list[Any], Any, Any]:
    """What is fed, the loss, and what trains."""
    pictures = tf.placeholder(tf.float32, [None, SIZE, SIZE, 3])
    boxes = tf.placeholder(tf.float32, [None, 4])
    kinds = tf.placeholder(tf.int32, [None])
    generator = numpy.random.default_rng(4)

    def convolved(value: Any, filters: int) -> Any:
        shape = [3, 3, value.shape.as_list()[-1], filters]
        weights = generator.standard_normal(shape) / numpy.prod(shape[:3]) ** 0.5
        window = tf.Variable(weights.astype(numpy.float32))
        offset = tf.Variable(tf.zeros([filters]))
        return tf.nn.bias_add(tf.nn.conv2d(value, window, [1, 1, 1, 1], "SAME"), offset)

    value = pictures
    for filters in FILTERS:
        value = tf.nn.relu(convolved(value, filters))
        value = tf.nn.max_pool(value, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    scores = tf.reshape(convolved(value, 3 * KINDS), [-1, ANCHORS, KINDS])
    places = tf.reshape(convolved(value, 3 * 4), [-1, ANCHORS, 4])

    corner = generator.random((ANCHORS, 2)).astype(numpy.float32) * 0.7
    anchors = tf.constant(numpy.concatenate([corner, corner + numpy.float32(0.3)], 1))
    overlap = _overlap(tf, anchors, boxes)
    best, is_near = tf.argmax(overlap, 1), tf.reduce_max(overlap, 1) > 0.1
    wanted = tf.where(is_near, tf.gather(kinds, best), tf.zeros([ANCHORS], tf.int32))
    count = tf.maximum(tf.reduce_sum(tf.cast(is_near, tf.float32)), 1.0)
    moved = tf.boolean_mask(places, is_near, axis=1)
    goal = tf.boolean_mask(tf.gather(boxes, best), is_near)
    distance = tf.reduce_sum(tf.abs(moved - goal[None])) / count
    labels = tf.tile(wanted[None], [tf.shape(scores)[0], 1])
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    loss = distance + tf.reduce_mean(entropy)
    train = tf.train.MomentumOptimizer(1e-3, 0.9).minimize(loss)
    return [pictures, boxes, kinds], loss, train


def _overlap(tf: Any, some: Any, others: Any) -> Any:
    """Of each two boxes, the area that both have over the area that either has."""
    low = tf.maximum(some[:, None, :2], others[None, :, :2])
    high = tf.minimum(some[:, None, 2:], others[None, :, 2:])
    both = tf.reduce_prod(tf.maximum(high - low, 0.0), 2)

    def area(of: Any) -> Any:
        return tf.reduce_prod(of[:, 2:] - of[:, :2], 1)

    return both / (area(some)[:, None] + area(others)[None] - both)


def training(frontend: str, steps: int) -> Workload:
    """One unit of work is the first ``steps`` steps; a process does it once."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        given, loss, train = describe(tf)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    data = batches()
    losses: list[float] = []

    def run(iterations: int) -> None:
        if iterations != 1 or losses:
            raise ValueError("the first steps are measured once in a process")
        for batch in islice(cycle(data), steps):
            feeds = dict(zip(given, batch, strict=True))
            losses.append(float(session.run([train, loss], feeds)[1]))

    return Workload(run, lambda: {"losses": losses[:CHECKED_STEPS]})
