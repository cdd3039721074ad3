"""Batch-major and time-major sequences."""

from __future__ import annotations

from runnel.graph.operation import Tensor
from runnel.ops.array_shape import rank
from runnel.ops.joining import concat
from runnel.ops.ranges import range as positions
from runnel.ops.transposition import transpose


def swap_batch_and_time(x: Tensor) -> Tensor:
    """``x`` with its first two axes exchanged; a tensor with fewer stays as it is."""
    if x.dims is None:
        return transpose(x, concat([[1, 0], positions(2, rank(x))], 0))
    if len(x.dims) < 2:
        return x
    return transpose(x, [1, 0, *range(2, len(x.dims))])
