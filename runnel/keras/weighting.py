"""Labels, predictions and weights with matching ranks; losses reduced to one number."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import multiply
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.array_shape import size as size_of
from runnel.ops.casting import cast
from runnel.ops.fill import ones_like
from runnel.ops.reduce_functions import reduce_mean, reduce_sum
from runnel.ops.zero_safe import div_no_nan


class Reduction:
    """How a loss of each example becomes one number."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every way."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: Any) -> None:
        """Raises a ValueError unless ``key`` is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


def matched(predicted: Any, true: Any) -> tuple[Any, Any]:
    """Predictions and labels, one of them without a last dimension of 1 that the other lacks."""
    if predicted.dims is None or true.dims is None:
        return predicted, true
    difference = len(predicted.dims) - len(true.dims)
    if difference == 1 and predicted.dims[-1] == 1:
        return squeeze(predicted, [-1]), true
    if difference == -1 and true.dims[-1] == 1:
        return predicted, squeeze(true, [-1])
    return predicted, true


def fitting(weights: Any, values: Any) -> Any:
    """Weights with a last dimension of 1 more, or less, where the rank of ``values`` needs it."""
    if weights.dims is None or values.dims is None or not weights.dims:
        return weights
    difference = len(weights.dims) - len(values.dims)
    if difference == 1 and weights.dims[-1] in (1, None):
        return squeeze(weights, [-1])
    if difference == -1:
        return expand_dims(weights, -1)
    return weights


def weighted(values: Any, weights: Any) -> tuple[Tensor, Tensor]:
    """``values`` times ``weights``, and the weights of all of them.

    Values with more dimensions than the weights become their means over these.
    """
    weights = fitting(cast(weights, values.dtype.base_dtype), values)
    if weights.dims and values.dims is not None and len(weights.dims) < len(values.dims):
        extra = list(range(len(weights.dims), len(values.dims)))
        values = reduce_mean(values, axis=extra)
    return multiply(values, weights), multiply(weights, ones_like(values))


def reduced(losses: Any, weights: Any, reduction: str) -> Any:
    """One number of losses (or, with ``"none"``, all of them), each times its weight."""
    if weights is not None:
        kind = losses.dtype.base_dtype
        weights = fitting(cast(weights, kind), losses)
        losses = multiply(losses, weights)
    if reduction == Reduction.NONE:
        return losses
    total = reduce_sum(losses)
    if reduction == Reduction.SUM:
        return total
    return div_no_nan(total, cast(size_of(losses), total.dtype.base_dtype))
