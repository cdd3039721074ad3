"""What every metric does: gather in local variables, match shapes, weigh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, float32
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape, squeeze
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.fill import zeros
from runnel.variables.creation import create_variable

Metric = tuple[Tensor, Tensor]
"""The value so far, and what takes another batch into account and gives the new value."""


def metric_variable(
    dims: Sequence[int], dtype: DType, name: str | None, validate_shape: bool = True
) -> Any:
    """A local variable that begins with zeros."""
    return create_variable(
        initial_value=lambda: zeros(dims, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


def collected(value: Tensor, update: Tensor, values: Any, updates: Any) -> Metric:
    """A metric, added to the collections that the caller names."""
    graph = get_default_graph()
    for names, tensor in ((values, value), (updates, update)):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, tensor)
    return value, update


def without_needless_rank(predictions: Any, labels: Any, more: int = 0) -> tuple[Tensor, Tensor]:
    """Predictions of ``more`` ranks than the labels: who has one too many loses a last 1."""
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    if predictions.shape.rank is None or labels.shape.rank is None:
        return predictions, labels
    needless = predictions.shape.rank - labels.shape.rank - more
    if needless == 1 and predictions.shape[-1].is_compatible_with(1):
        predictions = squeeze(predictions, [-1])
    elif needless == -1 and labels.shape[-1].is_compatible_with(1):
        labels = squeeze(labels, [-1])
    return predictions, labels


def matched(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Tensors of one rank: a last dimension of 1 that only one of them has is dropped."""
    predictions, labels = without_needless_rank(predictions, labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = cast(convert_to_tensor(weights), float32)
    rank = predictions.shape.rank
    if rank is not None and weights.shape.rank == rank + 1:
        weights = squeeze(weights, [-1])
    return predictions, labels, weights


def weighted(values: Tensor, weights: Tensor | None) -> Tensor:
    """``values``, each times its weight."""
    return values if weights is None else values * broadcast_to(weights, shape(values))
