"""Sparse updates of variables: rows of a variable, chosen by index, set or combined with others."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.bounds import in_range
from runnel.ops.state import handle_dims


def _scatter_dims(ref_dims: Dims, indices: Tensor, updates: Tensor) -> Dims:
    if ref_dims == ():
        raise ValueError("Only a variable with rows can be scattered into, not a scalar")
    if ref_dims is not None and indices.dims is not None and updates.dims:
        wanted = indices.dims + ref_dims[1:]
        try:
            merge_dims(updates.dims, wanted)
        except ValueError:
            raise ValueError(
                f"Must have updates.shape = indices.shape + params.shape[1:], that is "
                f"{format_dims(wanted)}, not {format_dims(updates.dims)}"
            ) from None
    return ref_dims


_UFUNCS = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "min": "minimum",
    "max": "maximum",
}


def _computed_first(rows: Any, platform: str) -> Any:
    """``rows``, which a compiled program is about to add to others.

    On a GPU, XLA (jaxlib 0.11) takes ten times as long to add rows at their places if it computes
    them on the way, be it only a sign; so they are computed first. (Rows that it only sets are
    better computed on the way.)
    """
    if platform == "cpu":
        return rows
    from jax import lax

    return lax.optimization_barrier(rows)


def combine_at(
    xp: Any, ref: Any, where: Any, updates: Any, method: str, platform: str = "cpu"
) -> Any:
    """``ref`` with ``ref[where]`` combined with ``updates``; equal places combine one by one.

    ``method`` is "set" or one of the names that ``jax.numpy.ndarray.at`` has. Places beyond the
    end are dropped when compiled.
    """
    import numpy as np

    if method == "divide" and ref.dtype.kind in "iu":
        # Dividing by each in turn, towards zero, is dividing by their product.
        divisors = combine_at(xp, xp.ones_like(ref), where, updates, "multiply", platform)
        if xp is np:
            quotient = np.abs(ref) // np.abs(divisors)
            return (quotient * np.sign(ref) * np.sign(divisors)).astype(ref.dtype)
        from jax import lax

        return lax.div(ref, divisors)
    if xp is np:
        out = np.array(ref)
        if method == "set":
            out[where] = updates
        else:
            getattr(np, _UFUNCS[method]).at(out, where, updates)
        return out
    if method == "subtract":
        method, updates = "add", -updates
    if method == "add":
        updates = _computed_first(updates, platform)
    return getattr(ref.at[where], method)(updates, mode="drop")


def _scatter_kernel(method: str) -> Any:
    """new = ref with ``ref[indices[i]]`` combined with ``updates[i]`` by ``method``."""

    def kernel(xp, ref, indices, updates, *, check, platform):
        import numpy as np

        wanted = indices.shape + ref.shape[1:]
        if updates.shape not in ((), wanted):
            raise ValueError(
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = (), "
                f"but indices.shape is {indices.shape}, params.shape {ref.shape} and "
                f"updates.shape {updates.shape}"
            )
        in_range(xp, indices, ref.shape[0], check)
        updates = xp.broadcast_to(updates, wanted)
        where = indices if xp is np else check.gate_indices(indices, ref.shape[0])
        return combine_at(xp, ref, where, updates, method, platform)

    return kernel


_REAL_ORDERED = "{half, bfloat16, float, double, int32, int64}"


def _scatter(suffix: str, method: str) -> tuple[OpDef, OpDef]:
    kind = "type" if method == "set" else "numbertype"
    ref_kind = _REAL_ORDERED if method in ("min", "max") else kind
    locks = "true" if method == "set" else "false"
    by_ref = register_op(
        f"Scatter{suffix}",
        inputs="ref: Ref(T), indices: Tindices, updates: T",
        outputs="output_ref: Ref(T)",
        attrs=[f"T: {ref_kind}", "Tindices: {int32, int64}", f"use_locking: bool = {locks}"],
        updates=("ref",),
        differentiable=False,
        self_gated=True,
    )

    @by_ref.shape
    def _(ref, indices, updates):
        return _scatter_dims(ref.dims, indices, updates)

    by_handle = register_op(
        f"ResourceScatter{suffix}",
        inputs="resource: resource, indices: Tindices, updates: dtype",
        attrs=[f"dtype: {kind}", "Tindices: {int32, int64}"],
        updates=("resource",),
        differentiable=False,
        self_gated=True,
    )

    @by_handle.shape
    def _(handle, indices, updates):
        return _scatter_dims(handle_dims(handle), indices, updates)

    kernel = _scatter_kernel(method)
    by_ref.kernel(kernel)
    by_handle.kernel(kernel)
    return by_ref, by_handle


scatter_update_op, scatter_update_handle_op = _scatter("Update", "set")
scatter_add_op, scatter_add_handle_op = _scatter("Add", "add")
scatter_sub_op, scatter_sub_handle_op = _scatter("Sub", "subtract")
scatter_mul_op, scatter_mul_handle_op = _scatter("Mul", "multiply")
scatter_div_op, scatter_div_handle_op = _scatter("Div", "divide")
scatter_min_op, scatter_min_handle_op = _scatter("Min", "min")
scatter_max_op, scatter_max_handle_op = _scatter("Max", "max")
