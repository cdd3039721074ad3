"""``tf.contrib.sparsemax``: probabilities of which many are zero (Martins and Astudillo, 2016)."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import expand_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater, logical_and, logical_or
from runnel.ops.cumulative import cumsum
from runnel.ops.fill import fill, zeros_like
from runnel.ops.gather import gather_nd
from runnel.ops.joining import stack
from runnel.ops.ranges import range as range_of
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.rounding import is_inf, is_nan
from runnel.ops.selection import where
from runnel.ops.top_k import top_k

__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: Any, name: str | None = None) -> Tensor:
    """The nearest probabilities to each row of ``logits``, of shape [batch, classes]."""
    with name_scope(name, "sparsemax"):
        z = convert_to_tensor(logits, name="logits")
        count, classes = shape_of(z)[0], shape_of(z)[1]
        in_order = top_k(z, k=classes)[0]
        totals = cumsum(in_order, axis=1)
        rank = cast(range_of(1, classes + 1), z.dtype)
        kept = reduce_sum(cast(greater(1 + rank * in_order, totals), int32), axis=1)
        last = stack([range_of(count), maximum(kept, 1) - 1], axis=1)
        threshold = (gather_nd(totals, last) - 1) / cast(kept, z.dtype)
        found = maximum(cast(0, z.dtype), z - expand_dims(threshold, 1))
        wrong = logical_or(equal(kept, 0), is_nan(totals[:, -1]))
        return where(wrong, fill([count, classes], cast(float("nan"), z.dtype)), found)


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Tensor:
    """The loss of each row whose gradient is ``sparsemax - labels``.

    ``sparsemax`` is that of ``logits``; all have the shape [batch, classes].
    """
    with name_scope(name, "sparsemax_loss"):
        z = convert_to_tensor(logits, name="logits")
        p = convert_to_tensor(sparsemax, name="sparsemax")
        q = convert_to_tensor(labels, name="labels")
        counted = logical_or(greater(p, 0), is_nan(p))
        found = where(counted, p * (z - 0.5 * p), zeros_like(p))
        unlabelled = logical_and(equal(q, 0), is_inf(z))
        return reduce_sum(found + where(unlabelled, zeros_like(z), q * (0.5 * q - z)), axis=1)


def __dir__() -> list[str]:
    return __all__
