"""The features of a batch, and what columns make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int64, string
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.comparison import not_equal
from runnel.ops.gather import gather_nd
from runnel.ops.selection import where


class Features:
    """Tensors by their keys; what a column makes of them is made once."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = tensors
        self._made: dict[Any, Any] = {}

    def raw(self, key: str) -> Tensor | SparseTensor:
        """The feature ``key``, with a row for each example."""
        if key not in self._tensors:
            raise ValueError(
                f"Feature {key} is not in features dictionary; it has {sorted(self._tensors)}"
            )
        found = self._tensors[key]
        if isinstance(found, SparseTensor):
            return found
        tensor = convert_to_tensor(found)
        if tensor.shape.rank is None:
            raise ValueError(f"Feature {key} must have a known rank, but {tensor!r} has none")
        if tensor.shape.rank == 0:
            raise ValueError(f"Feature {key} needs a row for each example, but it is a scalar")
        return expand_dims(tensor, -1) if tensor.shape.rank == 1 else tensor

    def once(self, column: Any, make: Any) -> Any:
        """What ``make`` gives for a column, the same for all who ask."""
        if column not in self._made:
            self._made[column] = make()
        return self._made[column]

    def sparse(self, key: str, missing: Any = None) -> SparseTensor:
        """The feature ``key`` as a sparse tensor; elements equal to ``missing`` are left out."""
        found = self.raw(key)
        if isinstance(found, SparseTensor):
            return found
        if missing is None:
            missing = "" if found.dtype.base_dtype is string else -1
        indices = where(not_equal(found, convert_to_tensor(missing, found.dtype.base_dtype)))
        return SparseTensor(indices, gather_nd(found, indices), shape(found, out_type=int64))
