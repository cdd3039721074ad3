"""How two series vary together, gathered batch by batch."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import float32
from runnel.graph.graph import control_dependencies
from runnel.graph.operation import Tensor
from runnel.metrics.gathering import Metric, collected, matched, metric_variable
from runnel.ops.array_shape import shape, size
from runnel.ops.assign import assign_add
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import less_equal
from runnel.ops.elementwise import sqrt
from runnel.ops.fill import fill
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.selection import where
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.variable_scope import variable_scope


def streaming_covariance(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The covariance of all predictions and labels, without bias; NaN of a single one.

    Batches are joined as Chan, Golub and LeVeque do, "Updating Formulae and a Pairwise Algorithm
    for Computing Sample Variances" (1979): no squares of large means are subtracted.
    """
    with variable_scope(name, "covariance", (predictions, labels, weights)):
        predictions, labels, weights = matched(
            cast(predictions, float32), cast(labels, float32), weights
        )
        count, mean_prediction, mean_label, comoment = (
            metric_variable([], float32, kept)
            for kept in ("count", "mean_prediction", "mean_label", "comoment")
        )
        if weights is None:
            number = cast(size(predictions), float32)
        else:
            weights = broadcast_to(weights, shape(predictions))
            number = reduce_sum(weights)

        def total(values: Tensor) -> Tensor:
            return reduce_sum(values if weights is None else values * weights)

        def moved(mean: Any, values: Tensor) -> tuple[Tensor, Tensor]:
            """The mean of this batch, and what all before it had."""
            here = div_no_nan(total(values), number)
            change = div_no_nan((here - mean) * number, new_count)
            return here, assign_add(mean, change) - change

        new_count = assign_add(count, number)
        prediction_here, prediction_before = moved(mean_prediction, predictions)
        label_here, label_before = moved(mean_label, labels)
        inside = total((predictions - prediction_here) * (labels - label_here))
        shift = (prediction_before - prediction_here) * (label_before - label_here)
        between = shift * div_no_nan((new_count - number) * number, new_count)
        new_comoment = assign_add(comoment, inside + between)

        def covariance(of: Any, pairs: Any, named: str) -> Tensor:
            few = less_equal(pairs, 1.0)
            return where(few, fill([], float("nan")), of / (pairs - 1.0), name=named)

        value = covariance(comoment, count, "covariance")
        with control_dependencies([new_comoment]):
            update = covariance(new_comoment, new_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Pearson's correlation of all predictions and labels.

    Example:
        >>> pearson, update = tf.contrib.metrics.streaming_pearson_correlation(scores, labels)
    """
    with variable_scope(name, "pearson_r", (predictions, labels, weights)):
        together = streaming_covariance(predictions, labels, weights, name="covariance")
        first = streaming_covariance(predictions, predictions, weights, name="variance_predictions")
        second = streaming_covariance(labels, labels, weights, name="variance_labels")
        value, update = (
            both / (sqrt(one) * sqrt(other))
            for both, one, other in zip(together, first, second, strict=True)
        )
        return collected(value, update, metrics_collections, updates_collections)
