"""Making sparse gradients dense: ``IndexedSlices`` wherever a tensor is expected."""

from __future__ import annotations

from typing import Any

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import register_tensor_conversion_function
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.ops.segments import unsorted_segment_sum


def _dense_of_slices(
    value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"IndexedSlices of type {value.dtype.name} cannot become a tensor of {dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(
            f"{value} cannot become a tensor: it does not say the shape of the tensor that it is "
            "a part of (dense_shape)"
        )
    dims = constant_value_as_dims(value.dense_shape)
    rows = dims[0] if dims else None
    count = value.dense_shape[0] if rows is None else rows
    dense = unsorted_segment_sum(value.values, value.indices, count, name=name)
    if dense.dims is None and dims is not None:
        dense.set_shape(dims)
    return dense


register_tensor_conversion_function(IndexedSlices, _dense_of_slices)
