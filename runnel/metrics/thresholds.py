"""Metrics at thresholds: counts for each of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_, float32, int64
from runnel.graph.graph import control_dependencies
from runnel.graph.operation import Tensor
from runnel.metrics.gathering import Metric, collected, matched, metric_variable
from runnel.ops.arg_extrema import argmax, argmin
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.assertions import assert_greater_equal, assert_less_equal
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater, less, logical_and, logical_not
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.cumulative import cumsum
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log
from runnel.ops.fill import ones_like
from runnel.ops.reduce_functions import reduce_min, reduce_sum
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.variable_scope import variable_scope

_EPSILON = 1e-7


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
        predictions, labels, weights = matched(identity(predictions), labels, weights)
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
        return collected(formula(values), formula(updates), *collections)


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

    ``summation_method`` is "trapezoidal", "careful_interpolation" (for "PR", that of Davis and
    Goadrich 2006), "minoring" or "majoring".
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
        raise ValueError(f"Invalid summation_method: {summation_method}")
    limits = _thresholds(num_thresholds)
    if thresholds is not None:
        limits = [0.0 - _EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
    small, count = 1.0e-6, len(limits)

    def area(c: dict[str, Tensor]) -> Tensor:
        if curve == "PR" and summation_method == "careful_interpolation":
            return _interpolated(c["tp"], c["fp"], c["fn"], count)
        rate = (c["tp"] + small) / (c["tp"] + c["fn"] + small)
        if curve == "ROC":
            x, y = c["fp"] / (c["fp"] + c["tn"] + small), rate
        else:
            x, y = rate, (c["tp"] + small) / (c["tp"] + c["fp"] + small)
        widths, one, two = x[: count - 1] - x[1:], y[: count - 1], y[1:]
        if summation_method in ("trapezoidal", "careful_interpolation"):
            return reduce_sum(widths * (one + two) / 2.0)
        lower = less(one, two) if summation_method == "minoring" else greater(one, two)
        return reduce_sum(widths * where(lower, one, two))

    return _of_counts(
        area,
        (labels, predictions, limits, weights),
        *("tp fn tn fp", (metrics_collections, updates_collections), name, "auc"),
    )


def _interpolated(tp: Tensor, fp: Tensor, fn: Tensor, count: int) -> Tensor:
    """The area under precision and recall, true positives taken as linear in all positives."""
    positives = tp + fp
    gained = tp[: count - 1] - tp[1:]
    slope = div_no_nan(gained, maximum(positives[: count - 1] - positives[1:], 0.0))
    intercept = tp[1:] - slope * positives[1:]
    both = logical_and(positives[: count - 1] > 0, positives[1:] > 0)
    ratio = div_no_nan(positives[: count - 1], maximum(positives[1:], 0.0))
    growth = log(where(both, ratio, ones_like(ratio)))
    parts = slope * (gained + intercept * growth)
    return reduce_sum(div_no_nan(parts, maximum(tp[1:] + fn[1:], 0.0)))


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
