"""A linear model for tests, and the same in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import runnel as tf

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = (X @ np.float32([1.0, -2.0, 0.5]) + 0.25).astype(np.float32)
RATE = 0.1


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """Least squares by gradient descent."""
    w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    predicted = tf.reduce_sum(features["x"] * w, axis=1) + b
    predictions = {"y": predicted, "twice": 2.0 * predicted}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)
    loss = tf.reduce_mean(tf.square(predicted - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"error": tf.metrics.mean_absolute_error(labels, predicted)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)


def estimator(folder: Path, **config: Any) -> Any:
    """An Estimator of the linear model."""
    run = tf.estimator.RunConfig(tf_random_seed=1, **config)
    return tf.estimator.Estimator(model_fn, folder, run, params={"rate": RATE})


def all_rows(epochs: int | None = 1, batch_size: int = 40) -> Any:
    """An ``input_fn`` with every row in order."""
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size, epochs, shuffle=False)


def descended(steps: int) -> tuple[np.ndarray, float]:
    """Weights and bias after so many steps on all rows."""
    w, b = np.zeros(3), 0.0
    for _ in range(steps):
        error = X @ w + b - Y
        w, b = w - RATE * 2 * error @ X / len(X), b - RATE * 2 * error.mean()
    return w, b
