"""Metrics of ``tf.contrib.metrics``, batch by batch."""

import importlib

import numpy as np

from tests.contrib.programs.frame import values

BATCHES = 3


def _batch(tf, *arrays):
    """The present batch of each array, and what moves on to the next."""
    number = tf.Variable(0, trainable=False, name="number")
    return [tf.gather(tf.constant(array), number) for array in arrays], number


def _gathered(tf, run, metric, number):
    """The metric's value after each batch, and what its update gives."""
    value, update = metric
    kept = tf.Variable(tf.zeros(update.shape, update.dtype), trainable=False, name="kept")
    with tf.control_dependencies([tf.assign(kept, update)]):
        step = tf.assign_add(number, 1)
    return run([value, kept], train=step, steps=BATCHES)


def _pairs(tf):
    first = values(1, BATCHES, 4) + 100.0
    return _batch(tf, first, first * 0.5 + values(2, BATCHES, 4), np.abs(values(3, BATCHES, 4)))


def covariance(tf, run):
    (x, y, _), number = _pairs(tf)
    return _gathered(tf, run, tf.contrib.metrics.streaming_covariance(x, y), number)


def weighted_covariance(tf, run):
    (x, y, weights), number = _pairs(tf)
    return _gathered(tf, run, tf.contrib.metrics.streaming_covariance(x, y, weights), number)


def pearson(tf, run):
    (x, y, _), number = _pairs(tf)
    metric = tf.contrib.metrics.streaming_pearson_correlation(x, y)
    return _gathered(tf, run, metric, number)


def weighted_pearson(tf, run):
    (x, y, weights), number = _pairs(tf)
    metric = tf.contrib.metrics.streaming_pearson_correlation(
        predictions=x, labels=y, weights=weights
    )
    return _gathered(tf, run, metric, number)


def _ranked(tf):
    labels = np.random.RandomState(5).randint(0, 5, (BATCHES, 4, 2))
    return _batch(tf, values(4, BATCHES, 4, 5), labels, np.abs(values(6, BATCHES, 4)))


def recall_at_k(tf, run):
    (scores, labels, weights), number = _ranked(tf)
    metric = tf.contrib.metrics.streaming_recall_at_k(scores, labels[:, 0], 2, weights)
    return _gathered(tf, run, metric, number)


def sparse_recall_at_k(tf, run):
    (scores, labels, weights), number = _ranked(tf)
    metric = tf.contrib.metrics.streaming_sparse_recall_at_k(scores, labels, 2, weights=weights)
    return _gathered(tf, run, metric, number)


def sparse_precision_at_k(tf, run):
    (scores, labels, _), number = _ranked(tf)
    metric = tf.contrib.metrics.streaming_sparse_precision_at_k(scores, labels, 3, class_id=2)
    return _gathered(tf, run, metric, number)


def sparse_precision_at_top_k(tf, run):
    (scores, labels, _), number = _ranked(tf)
    top = tf.cast(tf.nn.top_k(scores, 3)[1], tf.int64)
    metric = tf.contrib.metrics.streaming_sparse_precision_at_top_k(top, labels)
    return _gathered(tf, run, metric, number)


def sparse_average_precision_at_k(tf, run):
    (scores, labels, _), number = _ranked(tf)
    metric = tf.contrib.metrics.streaming_sparse_average_precision_at_k(scores, labels, 3)
    return _gathered(tf, run, metric, number)


def confusion_matrix(tf, run):
    root = "runnel" if tf.__name__ == "runnel" else "tensorflow"
    metrics_impl = importlib.import_module(root + ".python.ops.metrics_impl")
    (_, labels, weights), number = _ranked(tf)
    metric = metrics_impl._streaming_confusion_matrix(
        labels[..., 0], labels[..., 1], 5, weights=tf.cast(weights > 0.5, tf.float32)
    )
    return _gathered(tf, run, metric, number)


def concatenation(tf, run):
    number = tf.Variable(0, trainable=False, name="number")
    batch = tf.constant(values(7, 2, 6))[:, : number + 1]
    found = []
    for most in (None, 4):
        batch.set_shape([2, None])
        value, update = tf.contrib.metrics.streaming_concat(batch, axis=1, max_size=most)
        found.append((value, update))
    with tf.control_dependencies([update for _, update in found]):
        step = tf.assign_add(number, 1)
    return run([value for value, _ in found], train=step, steps=BATCHES)
