"""Metrics that are means over all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.graph import control_dependencies
from runnel.graph.operation import Tensor
from runnel.metrics.gathering import Metric, collected, matched, metric_variable, weighted
from runnel.ops.arithmetic import multiply, squared_difference, subtract
from runnel.ops.array_shape import shape, size
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, less
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import sqrt
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.variable_scope import variable_scope


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of all values, weighted.

    Example:
        >>> loss_so_far, update = tf.metrics.mean(loss)
        >>> sess.run(tf.local_variables_initializer())
        >>> sess.run(update)
    """
    with variable_scope(name, "mean", (values, weights)):
        values = cast(convert_to_tensor(values), float32)
        total = metric_variable([], float32, "total")
        count = metric_variable([], float32, "count")
        if weights is None:
            number = cast(size(values), float32)
        else:
            values, _, weights = matched(values, values, weights)
            number = reduce_sum(broadcast_to(weights, shape(values)))
            values = weighted(values, weights)
        new_total = assign_add(total, reduce_sum(values))
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = div_no_nan(total, count, name="value")
        update = div_no_nan(new_total, new_count, name="update_op")
        return collected(value, update, metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of each element."""
    with variable_scope(name, "mean", (values, weights)):
        values = cast(convert_to_tensor(values), float32)
        dims = values.shape.as_list()
        total = metric_variable(dims, float32, "total_tensor")
        count = metric_variable(dims, float32, "count_tensor")
        number = ones_like(values)
        if weights is not None:
            values, _, weights = matched(values, values, weights)
            values, number = weighted(values, weights), weighted(number, weights)
        new_total = assign_add(total, values)
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = div_no_nan(total, count, name="value")
        update = div_no_nan(new_total, new_count, name="update_op")
        return collected(value, update, metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often predictions are labels.

    Example:
        >>> value, update = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    """
    predictions, labels, weights = matched(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = cast(predictions, labels.dtype)
    right = cast(equal(predictions, labels), float32)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def _mean_of(
    formula: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    collections: tuple[Any, Any],
    name: str,
) -> Metric:
    predictions, labels, weights = matched(predictions, labels, weights)
    return mean(formula(labels, predictions), weights, *collections, name)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How far predictions are from labels, in the mean."""
    return _mean_of(
        lambda y, p: abs_(subtract(p, y)),
        *(labels, predictions, weights, (metrics_collections, updates_collections)),
        name or "mean_absolute_error",
    )


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square of how far predictions are from labels, in the mean."""
    return _mean_of(
        squared_difference,
        *(labels, predictions, weights, (metrics_collections, updates_collections)),
        name or "mean_squared_error",
    )


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The root of the mean of squared errors."""
    value, update = mean_squared_error(
        labels, predictions, weights, None, None, name or "root_mean_squared_error"
    )
    return collected(sqrt(value), sqrt(update), metrics_collections, updates_collections)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How far predictions are from labels, over ``normalizer``, in the mean."""
    scale = convert_to_tensor(normalizer)

    def formula(y: Tensor, p: Tensor) -> Tensor:
        return where(equal(scale, 0.0), zeros_like(y), abs_(y - p) / scale)

    return _mean_of(
        formula,
        *(labels, predictions, weights, (metrics_collections, updates_collections)),
        name or "mean_relative_error",
    )


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """One less the cosine between vectors of length 1, in the mean."""
    predictions, labels, weights = matched(predictions, labels, weights)
    along = reduce_sum(multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(along, weights, None, None, name or "mean_cosine_distance")
    value, update = subtract(1.0, value), subtract(1.0, update)
    return collected(value, update, metrics_collections, updates_collections)


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the values are below ``threshold``, as a part of 1."""
    below = cast(less(values, threshold), float32)
    name = name or "percentage_below_threshold"
    return mean(below, weights, metrics_collections, updates_collections, name)
