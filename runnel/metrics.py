"""``tf.metrics``: how good a model is, gathered over many batches.

Each function returns the value so far, and the operation that takes another batch into account and
returns the new value. What is gathered is in local variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, bool_, float32, float64, int64
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.graph.operation import Tensor
from runnel.ops.arg_extrema import argmax, argmin
from runnel.ops.arithmetic import multiply, squared_difference, subtract
from runnel.ops.array_shape import expand_dims, reshape, shape, size, squeeze
from runnel.ops.assertions import assert_greater_equal, assert_less_equal
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater, less, logical_and, logical_not, not_equal
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.cumulative import cumsum
from runnel.ops.diagonal import matrix_diag_part
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import sqrt
from runnel.ops.fill import ones_like, zeros, zeros_like
from runnel.ops.matmul import matmul
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_mean, reduce_min, reduce_sum
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.creation import create_variable
from runnel.variables.variable_scope import variable_scope

_EPSILON = 1e-7
Metric = tuple[Tensor, Tensor]
"""The value so far, and what takes another batch into account and gives the new value."""


def metric_variable(dims: Sequence[int], dtype: DType, name: str) -> Any:
    """A local variable that begins with zeros."""
    return create_variable(
        initial_value=lambda: zeros(dims, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        name=name,
    )


def _collected(value: Tensor, update: Tensor, values: Any, updates: Any) -> Metric:
    graph = get_default_graph()
    for names, tensor in ((values, value), (updates, update)):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, tensor)
    return value, update


def _matched(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Tensors of one rank: a last dimension of 1 that only one of them has is dropped."""
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    ranks = predictions.shape.rank, labels.shape.rank
    if None not in ranks:
        if ranks[0] == ranks[1] + 1 and predictions.shape._dims[-1] in (1, None):  # type: ignore
            predictions = squeeze(predictions, [-1])
        elif ranks[1] == ranks[0] + 1 and labels.shape._dims[-1] in (1, None):  # type: ignore
            labels = squeeze(labels, [-1])
    predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = cast(convert_to_tensor(weights), float32)
    rank = predictions.shape.rank
    if rank is not None and weights.shape.rank == rank + 1:
        weights = squeeze(weights, [-1])
    return predictions, labels, weights


def _weighted(values: Tensor, weights: Tensor | None) -> Tensor:
    return values if weights is None else values * broadcast_to(weights, shape(values))


# Means ------------------------------------------------------------------------------------------


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
            values, _, weights = _matched(values, values, weights)
            number = reduce_sum(broadcast_to(weights, shape(values)))
            values = _weighted(values, weights)
        new_total = assign_add(total, reduce_sum(values))
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = div_no_nan(total, count, name="value")
        update = div_no_nan(new_total, new_count, name="update_op")
        return _collected(value, update, metrics_collections, updates_collections)


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
            values, _, weights = _matched(values, values, weights)
            values, number = _weighted(values, weights), _weighted(number, weights)
        new_total = assign_add(total, values)
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = div_no_nan(total, count, name="value")
        update = div_no_nan(new_total, new_count, name="update_op")
        return _collected(value, update, metrics_collections, updates_collections)


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
    predictions, labels, weights = _matched(predictions, labels, weights)
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
    predictions, labels, weights = _matched(predictions, labels, weights)
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
    return _collected(sqrt(value), sqrt(update), metrics_collections, updates_collections)


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
    predictions, labels, weights = _matched(predictions, labels, weights)
    along = reduce_sum(multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(along, weights, None, None, name or "mean_cosine_distance")
    value, update = subtract(1.0, value), subtract(1.0, update)
    return _collected(value, update, metrics_collections, updates_collections)


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


# Counts -----------------------------------------------------------------------------------------


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
        predictions, labels, weights = _matched(predictions, labels, weights)
        count = metric_variable([], float32, "count")
        values = _weighted(cast(chosen(labels, predictions), float32), weights)
        update = assign_add(count, reduce_sum(values))
        return _collected(identity(count), identity(update), *collections)


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
        return _collected(value, update, metrics_collections, updates_collections)


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
        return _collected(value, update, metrics_collections, updates_collections)


# At thresholds ----------------------------------------------------------------------------------

_KINDS = {
    "tp": ("true_positives", lambda y, p: logical_and(y, p)),
    "fn": ("false_negatives", lambda y, p: logical_and(y, logical_not(p))),
    "tn": ("true_negatives", lambda y, p: logical_and(logical_not(y), logical_not(p))),
    "fp": ("false_positives", lambda y, p: logical_and(logical_not(y), p)),
}


def _at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Counts for each threshold: what they are, and what takes another batch into account."""
    predictions = cast(convert_to_tensor(predictions), float32)
    inside = [
        assert_greater_equal(predictions, 0.0, message="predictions must be in [0, 1]"),
        assert_less_equal(predictions, 1.0, message="predictions must be in [0, 1]"),
    ]
    with control_dependencies(inside):
        labels = cast(convert_to_tensor(labels), bool_)
        predictions, labels, weights = _matched(identity(predictions), labels, weights)
    if weights is not None:
        weights = reshape(broadcast_to(weights, shape(predictions)), [1, -1])
    limits = expand_dims(constant(thresholds, float32), 1)
    positive = greater(reshape(predictions, [1, -1]), limits)
    wanted = broadcast_to(reshape(labels, [1, -1]), shape(positive))
    values, updates = {}, {}
    for kind in kinds.split():
        name, chosen = _KINDS[kind]
        counts = metric_variable([len(thresholds)], float32, name)
        found = cast(chosen(wanted, positive), float32)
        found = found if weights is None else found * weights
        updates[kind] = assign_add(counts, reduce_sum(found, 1))
        values[kind] = identity(counts)
    return values, updates


def _thresholds(count: int) -> list[float]:
    between = [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]
    return [0.0 - _EPSILON, *between, 1.0 + _EPSILON]


def _of_counts(
    formula: Callable[[dict[str, Tensor]], Tensor],
    arguments: tuple[Any, Any, Sequence[float], Any],
    kinds: str,
    collections: tuple[Any, Any],
    name: str | None,
    default: str,
) -> Metric:
    labels, predictions, thresholds, weights = arguments
    with variable_scope(name, default, (predictions, labels, weights)):
        values, updates = _at_thresholds(labels, predictions, thresholds, weights, kinds)
        return _collected(formula(values), formula(updates), *collections)


def _count_metric(kind: str) -> Callable[..., Metric]:
    title = _KINDS[kind][0]

    def metric(
        labels: Any,
        predictions: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        return _of_counts(
            lambda counts: counts[kind],
            (labels, predictions, thresholds, weights),
            *(kind, (metrics_collections, updates_collections), name, title),
        )

    metric.__name__ = f"{title}_at_thresholds"
    metric.__doc__ = f"The {title.replace('_', ' ')} for each of several thresholds."
    return metric


true_positives_at_thresholds = _count_metric("tp")
false_negatives_at_thresholds = _count_metric("fn")
true_negatives_at_thresholds = _count_metric("tn")
false_positives_at_thresholds = _count_metric("fp")


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The precision for each of several thresholds."""
    return _of_counts(
        lambda c: c["tp"] / (_EPSILON + c["tp"] + c["fp"]),
        (labels, predictions, thresholds, weights),
        *("tp fp", (metrics_collections, updates_collections), name, "precision_at_thresholds"),
    )


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The recall for each of several thresholds."""
    return _of_counts(
        lambda c: c["tp"] / (_EPSILON + c["tp"] + c["fn"]),
        (labels, predictions, thresholds, weights),
        *("tp fn", (metrics_collections, updates_collections), name, "recall_at_thresholds"),
    )


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under the curve of rates ("ROC") or of precision and recall ("PR").

    ``summation_method`` is "trapezoidal", "minoring" or "majoring".
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in ("trapezoidal", "minoring", "majoring"):
        raise ValueError(f"Invalid summation_method: {summation_method}")
    limits = _thresholds(num_thresholds)
    if thresholds is not None:
        limits = [0.0 - _EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
    small, count = 1.0e-6, len(limits)

    def area(c: dict[str, Tensor]) -> Tensor:
        rate = (c["tp"] + small) / (c["tp"] + c["fn"] + small)
        if curve == "ROC":
            x, y = c["fp"] / (c["fp"] + c["tn"] + small), rate
        else:
            x, y = rate, (c["tp"] + small) / (c["tp"] + c["fp"] + small)
        widths, one, two = x[: count - 1] - x[1:], y[: count - 1], y[1:]
        if summation_method == "trapezoidal":
            return reduce_sum(widths * (one + two) / 2.0)
        lower = less(one, two) if summation_method == "minoring" else greater(one, two)
        return reduce_sum(widths * where(lower, one, two))

    return _of_counts(
        area,
        (labels, predictions, limits, weights),
        *("tp fn tn fp", (metrics_collections, updates_collections), name, "auc"),
    )


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The recall where the rate of true negatives is ``specificity``."""
    if not 0 <= specificity <= 1:
        raise ValueError("`specificity` must be in the range [0, 1].")

    def formula(c: dict[str, Tensor]) -> Tensor:
        rates = c["tn"] / (c["tn"] + c["fp"] + _EPSILON)
        at = argmin(abs_(rates - specificity), 0)
        return c["tp"][at] / (c["tp"][at] + c["fn"][at] + _EPSILON)

    return _of_counts(
        formula,
        (labels, predictions, _thresholds(num_thresholds), weights),
        *("tp fn tn fp", (metrics_collections, updates_collections)),
        *(name, "sensitivity_at_specificity"),
    )


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The rate of true negatives where the recall is ``sensitivity``."""
    if not 0 <= sensitivity <= 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")

    def formula(c: dict[str, Tensor]) -> Tensor:
        away = abs_(c["tp"] / (c["tp"] + c["fn"] + _EPSILON) - sensitivity)
        nearest = cast(equal(away, reduce_min(away)), int64)
        at = argmax(cumsum(nearest), 0)  # the last of several
        return c["tn"][at] / (c["tn"][at] + c["fp"][at] + _EPSILON)

    return _of_counts(
        formula,
        (labels, predictions, _thresholds(num_thresholds), weights),
        *("tp fn tn fp", (metrics_collections, updates_collections)),
        *(name, "specificity_at_sensitivity"),
    )


# Classes ----------------------------------------------------------------------------------------


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """The mean over classes of the intersection of labels and predictions over their union."""
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions, labels, weights = _matched(predictions, labels, weights)
        total = metric_variable([num_classes] * 2, float64, "total_confusion_matrix")
        rows = one_hot(reshape(labels, [-1]), num_classes, dtype=float64)
        columns = one_hot(reshape(predictions, [-1]), num_classes, dtype=float64)
        if weights is not None:
            flat = reshape(broadcast_to(weights, shape(labels)), [-1, 1])
            rows = rows * cast(flat, float64)
        update = assign_add(total, matmul(rows, columns, transpose_a=True))
        matrix = identity(total)
        both = cast(matrix_diag_part(matrix), float32)
        union = cast(reduce_sum(matrix, 0) + reduce_sum(matrix, 1), float32) - both
        there = reduce_sum(cast(not_equal(union, 0.0), float32))
        union = where(greater(union, 0.0), union, ones_like(union))
        value = div_no_nan(reduce_sum(both / union), there, name="mean_iou")
        return _collected(value, update, metrics_collections, updates_collections)


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of how often those of a class are predicted to be."""
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        predictions, labels, weights = _matched(predictions, labels, weights)
        total = metric_variable([num_classes], float32, "total")
        count = metric_variable([num_classes], float32, "count")
        flat = reshape(cast(labels, int64), [-1])
        member = one_hot(flat, num_classes, dtype=float32)
        if weights is not None:
            member = member * reshape(broadcast_to(weights, shape(labels)), [-1, 1])
        right = cast(equal(flat, reshape(cast(predictions, int64), [-1])), float32)
        new_total = assign_add(total, reduce_sum(member, 0))
        new_count = assign_add(count, reduce_sum(member * expand_dims(right, 1), 0))
        value = reduce_mean(div_no_nan(count, total), name="mean_accuracy")
        update = div_no_nan(new_count, new_total, name="update_op")  # of each class
        return _collected(value, update, metrics_collections, updates_collections)


__all__ = [
    *("accuracy", "auc", "false_negatives", "false_negatives_at_thresholds"),
    *("false_positives", "false_positives_at_thresholds", "mean", "mean_absolute_error"),
    *("mean_cosine_distance", "mean_iou", "mean_per_class_accuracy", "mean_relative_error"),
    *("mean_squared_error", "mean_tensor", "percentage_below", "precision"),
    *("precision_at_thresholds", "recall", "recall_at_thresholds", "root_mean_squared_error"),
    *("sensitivity_at_specificity", "specificity_at_sensitivity", "true_negatives"),
    *("true_negatives_at_thresholds", "true_positives", "true_positives_at_thresholds"),
]


def __dir__() -> list[str]:
    return __all__
