"""``tf.contrib.metrics``: ``tf.metrics`` with predictions before labels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from runnel import metrics as _metrics
from runnel.contrib.metrics.correlation import streaming_covariance as streaming_covariance
from runnel.contrib.metrics.correlation import (
    streaming_pearson_correlation as streaming_pearson_correlation,
)
from runnel.contrib.metrics.kept_values import streaming_concat as streaming_concat
from runnel.graph.dtypes import float32
from runnel.graph.graph import name_scope
from runnel.ops.casting import cast
from runnel.ops.comparison import equal
from runnel.ops.histogram import confusion_matrix
from runnel.ops.reduce_functions import reduce_mean, reduce_sum
from runnel.ops.sparse.sets import set_difference, set_intersection, set_size, set_union
from runnel.ops.top_k import in_top_k
from runnel.ops.zero_safe import div_no_nan

Metric = Callable[..., tuple[Any, Any]]


def _predictions_first(metric: Metric) -> Metric:
    """``metric(labels, predictions, ...)`` with the first two arguments swapped."""

    @wraps(metric)
    def swapped(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        return metric(labels, predictions, *args, **kwargs)

    given = inspect.signature(metric)
    labels, predictions, *others = given.parameters.values()
    swapped.__signature__ = given.replace(  # type: ignore[attr-defined]
        parameters=[predictions, labels, *others]
    )
    return swapped


streaming_accuracy = _predictions_first(_metrics.accuracy)
streaming_auc = _predictions_first(_metrics.auc)
streaming_false_negatives = _predictions_first(_metrics.false_negatives)
streaming_false_positives = _predictions_first(_metrics.false_positives)
streaming_mean = _metrics.mean
streaming_mean_absolute_error = _predictions_first(_metrics.mean_absolute_error)
streaming_mean_iou = _predictions_first(_metrics.mean_iou)
streaming_mean_squared_error = _predictions_first(_metrics.mean_squared_error)
streaming_mean_tensor = _metrics.mean_tensor
streaming_percentage_less = _metrics.percentage_below
streaming_precision = _predictions_first(_metrics.precision)
streaming_precision_at_thresholds = _predictions_first(_metrics.precision_at_thresholds)
streaming_recall = _predictions_first(_metrics.recall)
streaming_recall_at_thresholds = _predictions_first(_metrics.recall_at_thresholds)
streaming_root_mean_squared_error = _predictions_first(_metrics.root_mean_squared_error)
streaming_sensitivity_at_specificity = _predictions_first(_metrics.sensitivity_at_specificity)
streaming_specificity_at_sensitivity = _predictions_first(_metrics.specificity_at_sensitivity)
streaming_true_negatives = _predictions_first(_metrics.true_negatives)
streaming_true_positives = _predictions_first(_metrics.true_positives)


streaming_sparse_average_precision_at_k = _predictions_first(_metrics.average_precision_at_k)
streaming_sparse_precision_at_k = _predictions_first(_metrics.precision_at_k)
streaming_sparse_recall_at_k = _predictions_first(_metrics.recall_at_k)


def streaming_recall_at_k(predictions: Any, labels: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """How often the label, one for each row, is among the ``k`` likeliest classes."""
    right = cast(in_top_k(predictions, labels, k), float32)
    kwargs.setdefault("name", f"recall_at_{k}")
    return _metrics.mean(right, *args, **kwargs)


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any, labels: Any, *args: Any, **kwargs: Any
) -> Any:
    """How many of the classes ``top_k_predictions`` [..., k] are labels."""
    return _metrics.precision_at_top_k(labels, top_k_predictions, None, *args, **kwargs)


def sparse_recall_at_top_k(labels: Any, top_k_predictions: Any, *args: Any, **kwargs: Any) -> Any:
    """How many of the labels are among the classes ``top_k_predictions`` [..., k]."""
    return _metrics.recall_at_top_k(labels, top_k_predictions, None, *args, **kwargs)


def streaming_mean_relative_error(
    predictions: Any, labels: Any, normalizer: Any, *args: Any, **kwargs: Any
) -> Any:
    """``tf.metrics.mean_relative_error``."""
    return _metrics.mean_relative_error(labels, predictions, normalizer, *args, **kwargs)


def streaming_mean_cosine_distance(
    predictions: Any, labels: Any, dim: int, *args: Any, **kwargs: Any
) -> Any:
    """``tf.metrics.mean_cosine_distance``."""
    return _metrics.mean_cosine_distance(labels, predictions, dim, *args, **kwargs)


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """How often predictions are labels, of this batch alone."""
    with name_scope(name, "accuracy", [predictions, labels]):
        right = cast(equal(predictions, labels), float32)
        if weights is None:
            return reduce_mean(right)
        weights = cast(weights, float32)
        return div_no_nan(reduce_sum(right * weights), reduce_sum(right * 0.0 + weights))


def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values, and the updates, of several metrics."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(
    names_to_tuples: dict[str, tuple[Any, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values, and the updates, of several metrics by their names."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}


__all__ = [
    "accuracy",
    "aggregate_metric_map",
    "aggregate_metrics",
    "confusion_matrix",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "sparse_recall_at_top_k",
    *sorted(name for name in globals() if name.startswith("streaming_")),
]


def __dir__() -> list[str]:
    return __all__
