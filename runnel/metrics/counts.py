"""Metrics that count right and wrong predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_, float32
from runnel.graph.operation import Tensor
from runnel.metrics.gathering import Metric, collected, matched, metric_variable, weighted
from runnel.ops.assign import assign_add
from runnel.ops.casting import cast
from runnel.ops.comparison import logical_and, logical_not
from runnel.ops.control import identity
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.variable_scope import variable_scope


def _counted(
    chosen: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    collections: tuple[Any, Any],
    name: str | None,
    default: str,
) -> Metric:
    with variable_scope(name, default, (predictions, labels, weights)):
        predictions = cast(convert_to_tensor(predictions), bool_)
        labels = cast(convert_to_tensor(labels), bool_)
        predictions, labels, weights = matched(predictions, labels, weights)
        count = metric_variable([], float32, "count")
        values = weighted(cast(chosen(labels, predictions), float32), weights)
        update = assign_add(count, reduce_sum(values))
        return collected(identity(count), identity(update), *collections)


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are predicted, and are."""
    return _counted(
        logical_and,
        *(labels, predictions, weights, (metrics_collections, updates_collections), name),
        "true_positives",
    )


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are predicted, and are not."""
    return _counted(
        lambda y, p: logical_and(logical_not(y), p),
        *(labels, predictions, weights, (metrics_collections, updates_collections), name),
        "false_positives",
    )


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are not predicted, and are not."""
    return _counted(
        lambda y, p: logical_and(logical_not(y), logical_not(p)),
        *(labels, predictions, weights, (metrics_collections, updates_collections), name),
        "true_negatives",
    )


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many are not predicted, and are."""
    return _counted(
        lambda y, p: logical_and(y, logical_not(p)),
        *(labels, predictions, weights, (metrics_collections, updates_collections), name),
        "false_negatives",
    )


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of those that are predicted are."""
    with variable_scope(name, "precision", (predictions, labels, weights)):
        right, more_right = true_positives(labels, predictions, weights)
        wrong, more_wrong = false_positives(labels, predictions, weights)
        value = div_no_nan(right, right + wrong, name="value")
        update = div_no_nan(more_right, more_right + more_wrong, name="update_op")
        return collected(value, update, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of those that are, are predicted."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        found, more_found = true_positives(labels, predictions, weights)
        missed, more_missed = false_negatives(labels, predictions, weights)
        value = div_no_nan(found, found + missed, name="value")
        update = div_no_nan(more_found, more_found + more_missed, name="update_op")
        return collected(value, update, metrics_collections, updates_collections)
