"""Sums the gradients that arrive at a tensor along several paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor


class AggregationMethod:
    """How ``tf.gradients`` sums; XLA makes the same code of all of them."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


_METHODS = (None, 0, 1, 2)


def aggregate(parts: Sequence[Any], method: int | None = None) -> Tensor | IndexedSlices:
    """The sum of ``parts``; sparse if all of them are."""
    if method not in _METHODS:
        raise ValueError(f"Invalid aggregation_method specified: {method!r}")
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, IndexedSlices) for part in parts):
        return _concatenate(parts)
    from runnel.ops.arithmetic import add_n

    return add_n([convert_to_tensor(part) for part in parts])


def add(one: Tensor, other: Tensor) -> Tensor:
    """The sum of two dense gradients, which may be lists of tensors."""
    if one.dtype.name != "variant":
        return one + other
    return convert_to_tensor(aggregate([one, other]))


def _concatenate(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """Slices with the same index add up by definition, so the sum is a concatenation."""
    from runnel.ops.casting import cast
    from runnel.ops.joining import concat

    indices = [part.indices for part in parts]
    if len({i.dtype.base_dtype for i in indices}) > 1:
        indices = [cast(i, "int64") for i in indices]
    return IndexedSlices(
        concat([part.values for part in parts], 0), concat(indices, 0), parts[0].dense_shape
    )
