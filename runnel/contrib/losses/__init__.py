"""``tf.contrib.losses``: ``tf.losses`` with predictions before labels; embeddings."""

from __future__ import annotations

from typing import Any

from runnel import losses as _losses
from runnel.contrib.losses import metric_learning
from runnel.losses import (
    add_loss,
    compute_weighted_loss,
    get_losses,
    get_regularization_losses,
    get_total_loss,
)

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "metric_learning",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


def absolute_difference(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None
) -> Any:
    """``tf.losses.absolute_difference``."""
    return _losses.absolute_difference(labels, predictions, weights, scope)


def sigmoid_cross_entropy(
    logits: Any,
    multi_class_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: Any = None,
) -> Any:
    """``tf.losses.sigmoid_cross_entropy``."""
    return _losses.sigmoid_cross_entropy(
        multi_class_labels, logits, weights, label_smoothing, scope
    )


def softmax_cross_entropy(
    logits: Any,
    onehot_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: Any = None,
) -> Any:
    """``tf.losses.softmax_cross_entropy``."""
    return _losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(
    logits: Any, labels: Any, weights: Any = 1.0, scope: Any = None
) -> Any:
    """``tf.losses.sparse_softmax_cross_entropy``."""
    return _losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


def log_loss(
    predictions: Any,
    labels: Any = None,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: Any = None,
) -> Any:
    """``tf.losses.log_loss``."""
    return _losses.log_loss(labels, predictions, weights, epsilon, scope)


def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """The hinge losses of each element, which are also added to the collection of losses."""
    return _losses.hinge_loss(labels, logits, scope=scope, reduction=_losses.Reduction.NONE)


def mean_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None
) -> Any:
    """``tf.losses.mean_squared_error``."""
    return _losses.mean_squared_error(labels, predictions, weights, scope)


def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None
) -> Any:
    """``tf.losses.mean_pairwise_squared_error``."""
    return _losses.mean_pairwise_squared_error(labels, predictions, weights, scope)


def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: Any = None,
    dim: int | None = None,
) -> Any:
    """``tf.losses.cosine_distance``."""
    return _losses.cosine_distance(labels, predictions, axis, weights, scope, dim=dim)


def __dir__() -> list[str]:
    return __all__
