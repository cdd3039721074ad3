"""Losses as functions of labels and predictions that give one loss for each example."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.keras import backend
from runnel.ops.activations import softplus
from runnel.ops.arithmetic import add, maximum, minimum, multiply, subtract
from runnel.ops.array_shape import shape
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_value
from runnel.ops.comparison import equal, logical_or
from runnel.ops.division import truediv
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import log, square
from runnel.ops.fill import fill
from runnel.ops.l2 import l2_normalize
from runnel.ops.reduce_functions import reduce_all, reduce_max, reduce_mean, reduce_sum
from runnel.ops.selection import where


def _both(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    predicted = convert_to_tensor(y_pred)
    return cast(y_true, predicted.dtype), predicted


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squared differences.

    Example:
        >>> tf.keras.losses.mean_squared_error([[0.0, 0.0]], [[1.0, 3.0]])  # [5.]
    """
    true, predicted = _both(y_true, y_pred)
    return reduce_mean(square(subtract(predicted, true)), axis=-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of absolute differences."""
    true, predicted = _both(y_true, y_pred)
    return reduce_mean(absolute(subtract(predicted, true)), axis=-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of absolute differences in per cent of the labels."""
    true, predicted = _both(y_true, y_pred)
    least = maximum(absolute(true), backend.epsilon())
    parts = absolute(truediv(subtract(true, predicted), least))
    return multiply(reduce_mean(parts, axis=-1), 100.0)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squared differences of ``log(1 + x)``."""
    true, predicted = _both(y_true, y_pred)
    least = backend.epsilon()
    first, second = (log(add(maximum(x, least), 1.0)) for x in (predicted, true))
    return reduce_mean(square(subtract(first, second)), axis=-1)


def _signed(true: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
    """Labels 0 and 1 as -1 and 1; others as they are."""
    binary = reduce_all(logical_or(equal(true, 0.0), equal(true, 1.0)))
    return where(fill(shape(true), binary), subtract(multiply(true, 2.0), 1.0), true), predicted


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``max(1 - true * predicted, 0)``, of labels -1 and 1, or 0 and 1."""
    true, predicted = _signed(*_both(y_true, y_pred))
    return reduce_mean(maximum(1.0 - multiply(true, predicted), 0.0), axis=-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the squares of what :func:`hinge` takes the mean of."""
    true, predicted = _signed(*_both(y_true, y_pred))
    return reduce_mean(square(maximum(1.0 - multiply(true, predicted), 0.0)), axis=-1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """By how much the best wrong class beats the right one, less a margin of 1."""
    true, predicted = _both(y_true, y_pred)
    right = reduce_sum(multiply(true, predicted), axis=-1)
    wrong = reduce_max(multiply(1.0 - true, predicted), axis=-1)
    return maximum(add(subtract(wrong, right), 1.0), 0.0)


def logcosh(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the logarithms of the differences' hyperbolic cosines."""
    true, predicted = _both(y_true, y_pred)
    x = subtract(predicted, true)
    two = log(convert_to_tensor(2.0, x.dtype))
    return reduce_mean(subtract(add(x, softplus(multiply(x, -2.0))), two), axis=-1)


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """``true * log(true / predicted)``, summed."""
    true, predicted = (clip_by_value(x, backend.epsilon(), 1.0) for x in _both(y_true, y_pred))
    return reduce_sum(multiply(true, log(truediv(true, predicted))), axis=-1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of ``predicted - true * log(predicted)``."""
    true, predicted = _both(y_true, y_pred)
    logs = log(add(predicted, backend.epsilon()))
    return reduce_mean(subtract(predicted, multiply(true, logs)), axis=-1)


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """The cosine of the angle between labels and predictions (training with it makes it small)."""
    true, predicted = (l2_normalize(x, axis=axis) for x in _both(y_true, y_pred))
    return reduce_sum(multiply(true, predicted), axis=axis)


def _smoothed(true: Tensor, label_smoothing: float, classes: float) -> Tensor:
    if not label_smoothing:
        return true
    return add(multiply(true, 1.0 - label_smoothing), label_smoothing / classes)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Tensor:
    """The mean of the cross entropies of probabilities (or logits), each of two classes."""
    true, predicted = _both(y_true, y_pred)
    smooth = _smoothed(true, label_smoothing, 2.0)
    return reduce_mean(backend.binary_crossentropy(smooth, predicted, from_logits), axis=-1)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Tensor:
    """The cross entropy of probabilities (or logits) with labels that are one-hot."""
    true, predicted = _both(y_true, y_pred)
    smooth = _smoothed(true, label_smoothing, float((predicted.dims or (1,))[-1] or 1))
    return backend.categorical_crossentropy(smooth, predicted, from_logits)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of probabilities (or logits) with labels that are numbers of classes."""
    return backend.sparse_categorical_crossentropy(y_true, y_pred, from_logits, axis)


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Half the square of each difference up to ``delta``; larger ones count linearly."""
    true, predicted = _both(y_true, y_pred)
    distance = absolute(subtract(predicted, true))
    small = minimum(distance, delta)
    return add(multiply(square(small), 0.5), multiply(subtract(distance, small), delta))


mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence
cosine = cosine_similarity = cosine_proximity

__all__ = [
    "KLD",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "binary_crossentropy",
    "categorical_crossentropy",
    "categorical_hinge",
    "cosine",
    "cosine_proximity",
    "cosine_similarity",
    "hinge",
    "kld",
    "kullback_leibler_divergence",
    "logcosh",
    "mae",
    "mape",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "mse",
    "msle",
    "poisson",
    "sparse_categorical_crossentropy",
    "squared_hinge",
]
