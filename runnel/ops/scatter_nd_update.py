"""Sparse updates of variables at places given by several indices: elements, rows or blocks."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.bounds import in_range
from runnel.ops.scatter_update import combine_at, row_update
from runnel.ops.state import handle_dims


def _scatter_nd_dims(ref_dims: Dims, indices: Tensor, updates: Tensor) -> Dims:
    if ref_dims is None or indices.dims is None or updates.dims is None:
        return ref_dims
    depth = indices.dims[-1] if indices.dims else None
    if indices.dims == ():
        raise ValueError("The indices of a scattered update cannot be a scalar")
    if depth is None:
        return ref_dims
    if depth > len(ref_dims):
        raise ValueError(
            f"Each index has {depth} numbers, but the variable of shape {format_dims(ref_dims)} "
            f"has only {len(ref_dims)} dimensions"
        )
    wanted = indices.dims[:-1] + ref_dims[depth:]
    try:
        merge_dims(updates.dims, wanted)
    except ValueError:
        raise ValueError(
            f"The updates must have shape {format_dims(wanted)} (indices.shape[:-1] + "
            f"variable.shape[indices.shape[-1]:]), not {format_dims(updates.dims)}"
        ) from None
    return ref_dims


def _kernels(method: str) -> Any:
    def kernel(xp, ref, indices, updates, *, check, platform):
        import numpy as np

        columns = columns_of(xp, ref, indices, updates, check)
        if xp is not np and columns:
            columns[0] = check.gate_indices(columns[0], ref.shape[0])
        return combine_at(xp, ref, tuple(columns), updates, method, platform)

    def rows(ref, indices, updates, *, check):
        import numpy as np

        columns = columns_of(np, ref, indices, updates, check)
        return row_update(ref, tuple(columns), updates, method)

    def columns_of(xp, ref, indices, updates, check):
        depth = indices.shape[-1]
        wanted = indices.shape[:-1] + ref.shape[depth:]
        if depth > ref.ndim or updates.shape != wanted:
            raise ValueError(
                f"Updates of shape {updates.shape} at indices of shape {indices.shape} do not fit "
                f"a variable of shape {ref.shape}"
            )
        columns = [indices[..., axis] for axis in range(depth)]
        for axis, column in enumerate(columns):
            in_range(xp, column, ref.shape[axis], check, f"indices[..., {axis}]")
        return columns

    return kernel, rows


def _scatter_nd(suffix: str, method: str) -> tuple[OpDef, OpDef]:
    policy = "bad_indices_policy: string = ''"
    kind = "type" if method == "set" else "numbertype"
    locks = "true" if method == "set" else "false"
    by_ref = register_op(
        f"ScatterNd{suffix}",
        inputs="ref: Ref(T), indices: Tindices, updates: T",
        outputs="output_ref: Ref(T)",
        attrs=[f"T: {kind}", "Tindices: {int32, int64}", f"use_locking: bool = {locks}", policy],
        updates=("ref",),
        differentiable=False,
        self_gated=True,
    )

    @by_ref.shape
    def _(ref, indices, updates):
        return _scatter_nd_dims(ref.dims, indices, updates)

    by_handle = register_op(
        f"ResourceScatterNd{suffix}",
        inputs="ref: resource, indices: Tindices, updates: T",
        attrs=["T: type", "Tindices: {int32, int64}", "use_locking: bool = true", policy],
        updates=("ref",),
        differentiable=False,
        self_gated=True,
    )

    @by_handle.shape
    def _(handle, indices, updates):
        return _scatter_nd_dims(handle_dims(handle), indices, updates)

    kernel, rows = _kernels(method)
    for op_def in (by_ref, by_handle):
        op_def.kernel(kernel)
        op_def.row_kernel = rows
    return by_ref, by_handle


scatter_nd_update_op, scatter_nd_update_handle_op = _scatter_nd("Update", "set")
scatter_nd_add_op, scatter_nd_add_handle_op = _scatter_nd("Add", "add")
scatter_nd_sub_op, scatter_nd_sub_handle_op = _scatter_nd("Sub", "subtract")
scatter_nd_min_op, scatter_nd_min_handle_op = _scatter_nd("Min", "min")
scatter_nd_max_op, scatter_nd_max_handle_op = _scatter_nd("Max", "max")
