"""Metrics of the ``k`` likeliest classes: precision, recall, average precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.dtypes import float64, int64
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from runnel.metrics.gathering import Metric, collected, metric_variable
from runnel.ops.arithmetic import minimum
from runnel.ops.array_shape import expand_dims, shape, size
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal
from runnel.ops.cumulative import cumsum
from runnel.ops.division import div
from runnel.ops.fill import ones_like
from runnel.ops.gather import gather_nd
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_any, reduce_sum
from runnel.ops.selection import where
from runnel.ops.sparse.arranging import sparse_reshape, sparse_retain
from runnel.ops.sparse.dense import sparse_tensor_to_dense
from runnel.ops.sparse.sets import set_difference, set_intersection, set_size
from runnel.ops.top_k import top_k

__all__ = [
    "average_precision_at_k",
    "precision_at_k",
    "precision_at_top_k",
    "recall_at_k",
    "recall_at_top_k",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
]


def _scope(what: str, k: int | None, class_id: int | None = None) -> str:
    of_class = "" if class_id is None else f"_class{class_id}"
    return f"{what}_at_{'k' if k is None else k}{of_class}"


def _with_labels_last(labels: Any, predictions: Tensor) -> Any:
    """``labels`` with a last dimension for the labels of a row, of which there may be one."""
    labels = convert_to_tensor_or_sparse_tensor(labels)
    rank = labels.shape.rank
    if rank is None or rank + 1 != predictions.shape.rank:
        return labels
    if isinstance(labels, SparseTensor):
        return sparse_reshape(labels, concat([labels.dense_shape, [1]], 0))
    return expand_dims(labels, -1)


def _of_class(ids: Any, class_id: int | None) -> Any:
    """Those of ``ids`` that are ``class_id``; all, if that is None."""
    if class_id is None:
        return ids
    if isinstance(ids, SparseTensor):
        return sparse_retain(ids, equal(ids.values, class_id))
    places = where(equal(ids, class_id))
    return SparseTensor(places, gather_nd(ids, places), shape(ids, out_type=int64))


def _gathered(counts: Tensor, weights: Any, scope: str) -> tuple[Any, Tensor]:
    """A variable to which the weighted sum of ``counts`` is added, and the adding."""
    counts = cast(counts, float64)
    if weights is not None:
        counts = counts * broadcast_to(cast(weights, float64), shape(counts))
    total = metric_variable([], float64, scope)
    return total, assign_add(total, reduce_sum(counts), name="update")


def _share(
    what: str,
    missed: str,
    misses: Callable[[Any, Any], SparseTensor],
    labels: Any,
    predictions_idx: Any,
    k: int | None,
    class_id: int | None,
    weights: Any,
    collections: tuple[Any, Any],
    name: str | None,
) -> Metric:
    """Right ones among right ones and ``misses``: what is only in one of two sets."""
    with name_scope(name, _scope(what, k, class_id), [predictions_idx, labels, weights]) as scope:
        top = cast(predictions_idx, int64)
        labels = _of_class(cast(_with_labels_last(labels, top), int64), class_id)
        top = _of_class(top, class_id)
        with name_scope(_scope("true_positive", k, class_id)) as inner:
            right, add_right = _gathered(set_size(set_intersection(top, labels)), weights, inner)
        with name_scope(_scope(missed, k, class_id)) as inner:
            wrong, add_wrong = _gathered(set_size(misses(top, labels)), weights, inner)
        value = div(right, right + wrong, name=scope)
        update = div(add_right, add_right + add_wrong, name="update")
        return collected(value, update, *collections)


def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the labels are among the classes ``predictions_idx`` [..., k]."""
    return _share(
        *("recall", "false_negative", lambda a, b: set_difference(a, b, aminusb=False)),
        *(labels, predictions_idx, k, class_id, weights),
        *((metrics_collections, updates_collections), name),
    )


def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the labels are among the ``k`` likeliest classes of ``predictions``.

    ``labels`` are classes [batch] or [batch, labels], dense or sparse; with ``class_id`` that class
    alone counts.

    Example:
        >>> recall, update = tf.metrics.recall_at_k(labels, logits, 5)
    """
    with name_scope(name, _scope("recall", k, class_id), [predictions, labels, weights]) as scope:
        return recall_at_top_k(
            *(labels, top_k(predictions, k)[1], k, class_id, weights),
            *(metrics_collections, updates_collections, scope),
        )


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the classes ``predictions_idx`` [..., k] are labels."""
    return _share(
        *("precision", "false_positive", set_difference),
        *(labels, predictions_idx, k, class_id, weights),
        *((metrics_collections, updates_collections), name),
    )


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the ``k`` likeliest classes of ``predictions`` are labels; see recall_at_k."""
    named = _scope("precision", k, class_id)
    with name_scope(name, named, [predictions, labels, weights]) as scope:
        return precision_at_top_k(
            *(labels, top_k(predictions, k)[1], k, class_id, weights),
            *(metrics_collections, updates_collections, scope),
        )


sparse_precision_at_k = precision_at_k


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean, over rows, of the precision at each of the ``k`` places that is right."""
    named = _scope("average_precision", k)
    with name_scope(name, named, [predictions, labels, weights]) as scope:
        top = cast(top_k(predictions, k)[1], int64)
        each = _average_precision(cast(_with_labels_last(labels, top), int64), top, k)
        if weights is None:
            most = cast(size(each), float64)
        else:
            weights = broadcast_to(cast(weights, float64), shape(each))
            each, most = each * weights, reduce_sum(weights)
        with name_scope("max") as inner:
            best, add_best = _gathered(most, None, inner)
        with name_scope("total") as inner:
            total, add_total = _gathered(each, None, inner)
        value = div(total, best, name=scope)
        update = div(add_total, add_best, name="update")
        return collected(value, update, metrics_collections, updates_collections)


sparse_average_precision_at_k = average_precision_at_k


def _average_precision(labels: Any, top: Tensor, k: int) -> Tensor:
    if isinstance(labels, SparseTensor):
        counts = set_size(labels)
        labels = sparse_tensor_to_dense(labels, default_value=-1, validate_indices=False)
    else:
        counts = reduce_sum(cast(labels >= 0, int64), -1)
    right = reduce_any(equal(expand_dims(labels, -2), expand_dims(top, -1)), -1)
    right = cast(right, float64)
    precision = cumsum(right, -1) / cumsum(ones_like(right), -1)
    return div(reduce_sum(precision * right, -1), cast(minimum(cast(counts, int64), k), float64))
