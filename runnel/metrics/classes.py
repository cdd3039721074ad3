"""Metrics of classes, from a matrix of confusions."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, float64, int64
from runnel.graph.operation import Tensor
from runnel.metrics.gathering import Metric, collected, matched, metric_variable
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater, not_equal
from runnel.ops.control import identity
from runnel.ops.diagonal import matrix_diag_part
from runnel.ops.fill import ones_like
from runnel.ops.matmul import matmul
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_mean, reduce_sum
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.variable_scope import variable_scope


def gathered_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None
) -> tuple[Any, Tensor]:
    """How often each class, a row, is taken for each, a column: a variable, and its update."""
    total = metric_variable([num_classes] * 2, float64, "total_confusion_matrix")
    labels = cast(convert_to_tensor(labels), int64)
    predictions = cast(convert_to_tensor(predictions), int64)
    rows = one_hot(reshape(labels, [-1]), num_classes, dtype=float64)
    columns = one_hot(reshape(predictions, [-1]), num_classes, dtype=float64)
    if weights is not None:
        flat = reshape(broadcast_to(cast(weights, float64), shape(labels)), [-1, 1])
        rows = rows * flat
    return total, assign_add(total, matmul(rows, columns, transpose_a=True))


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
        predictions, labels, weights = matched(predictions, labels, weights)
        total, update = gathered_confusion_matrix(labels, predictions, num_classes, weights)
        matrix = identity(total)
        both = cast(matrix_diag_part(matrix), float32)
        union = cast(reduce_sum(matrix, 0) + reduce_sum(matrix, 1), float32) - both
        there = reduce_sum(cast(not_equal(union, 0.0), float32))
        union = where(greater(union, 0.0), union, ones_like(union))
        value = div_no_nan(reduce_sum(both / union), there, name="mean_iou")
        return collected(value, update, metrics_collections, updates_collections)


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
        predictions, labels, weights = matched(predictions, labels, weights)
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
        return collected(value, update, metrics_collections, updates_collections)
