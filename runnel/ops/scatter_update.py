"""Sparse updates of variables: rows of a variable, chosen by index, set or combined with others."""

from __future__ import annotations

import math
from typing import Any

from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.bounds import in_range
from runnel.ops.combined_rows import combined_natively
from runnel.ops.row_update import RowUpdate
from runnel.ops.state import handle_dims
from runnel.sorted_places import sorted_places


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
        combined = _combined(ref, where, updates, method)
        if combined is not None:
            return combined
        return row_update(ref, where, updates, method).whole()
    if method == "subtract":
        method, updates = "add", -updates
    if method == "add":
        updates = _computed_first(updates, platform)
    return getattr(ref.at[where], method)(updates, mode="drop")


def _combined(ref: Any, where: Any, updates: Any, method: str) -> Any:
    """What :func:`combine_at` gives, by native code; None where that cannot do it."""
    import numpy as np

    axes = where if isinstance(where, tuple) else (where,)
    if method not in ("add", "multiply", "max", "min") or not axes or np.ndim(axes[0]) == 0:
        return None
    shape = ref.shape[: len(axes)]
    flat = axes[0] if len(axes) == 1 else np.ravel_multi_index(axes, shape)
    new = ref.copy()
    rows = new.reshape(math.prod(shape), *ref.shape[len(axes) :])
    parts = updates.reshape(flat.size, *ref.shape[len(axes) :])
    done = combined_natively(getattr(np, _UFUNCS[method]), rows, flat.reshape(-1), parts)
    return new if done else None


def row_update(ref: Any, where: Any, updates: Any, method: str) -> Any:
    """What :func:`combine_at` gives, as an update of rows; ``where`` is an array or several."""
    import numpy as np

    if method == "set":
        return RowUpdate(ref, where, updates)
    if method == "divide" and ref.dtype.kind in "iu":
        return RowUpdate(ref, ..., combine_at(np, ref, where, updates, method))
    several = isinstance(where, tuple)
    if not where if several else np.ndim(where) == 0:
        return RowUpdate(ref, where, getattr(np, _UFUNCS[method])(ref[where], updates))
    flat = np.ravel_multi_index(where, ref.shape[: len(where)]) if several else where
    parts = updates.reshape(-1, *updates.shape[np.ndim(flat) :])
    places, turns, left = _in_turns(flat.reshape(-1))
    chosen = np.unravel_index(places, ref.shape[: len(where)]) if several else places
    rows = ref[chosen] if several else ref.take(places, 0)
    ufunc = getattr(np, _UFUNCS[method])
    for positions, taken in turns:
        if positions is None:
            ufunc(rows, parts.take(taken, 0), out=rows)
        else:
            rows[positions] = ufunc(rows.take(positions, 0), parts.take(taken, 0))
    if left is not None:
        ufunc.at(rows, left[0], parts.take(left[1], 0))
    return RowUpdate(ref, chosen, rows)


_TURNS = 8


def _in_turns(flat: Any) -> tuple[Any, list[tuple[Any, Any]], tuple[Any, Any] | None]:
    """The different places in ``flat``, in order, and how to go through all that is there.

    ``ufunc.at`` takes twenty times as long for a row, so each turn takes the next update of every
    place that has one left: positions in the places (None for all), and which updates. After some
    turns the rest is for ``ufunc.at``: positions and updates likewise.
    """
    import numpy as np

    places, order, starts, lengths = sorted_places(flat)
    turns: list[tuple[Any, Any]] = [(None, order.take(starts))]
    positions = np.arange(starts.size)
    for turn in range(1, _TURNS):
        positions = positions[lengths[positions] > turn]
        if not positions.size:
            return places, turns, None
        turns.append((positions, order.take(starts[positions] + turn)))
    late = np.arange(flat.size) - np.repeat(starts, lengths) >= _TURNS
    if not late.any():
        return places, turns, None
    return places, turns, (np.repeat(np.arange(starts.size), lengths)[late], order[late])


def _scatter_kernel(method: str) -> Any:
    """new = ref with ``ref[indices[i]]`` combined with ``updates[i]`` by ``method``."""

    def kernel(xp, ref, indices, updates, *, check, platform):
        import numpy as np

        where, updates = arranged(xp, ref, indices, updates, check)
        if xp is not np:
            where = check.gate_indices(where, ref.shape[0])
        return combine_at(xp, ref, where, updates, method, platform)

    def rows(ref, indices, updates, *, check):
        import numpy as np

        where, updates = arranged(np, ref, indices, updates, check)
        return row_update(ref, where, updates, method)

    def arranged(xp, ref, indices, updates, check):
        wanted = indices.shape + ref.shape[1:]
        if updates.shape not in ((), wanted):
            raise ValueError(
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = (), "
                f"but indices.shape is {indices.shape}, params.shape {ref.shape} and "
                f"updates.shape {updates.shape}"
            )
        in_range(xp, indices, ref.shape[0], check)
        return indices, xp.broadcast_to(updates, wanted)

    return kernel, rows


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

    kernel, rows = _scatter_kernel(method)
    for op_def in (by_ref, by_handle):
        op_def.kernel(kernel)
        op_def.row_kernel = rows
    return by_ref, by_handle


scatter_update_op, scatter_update_handle_op = _scatter("Update", "set")
scatter_add_op, scatter_add_handle_op = _scatter("Add", "add")
scatter_sub_op, scatter_sub_handle_op = _scatter("Sub", "subtract")
scatter_mul_op, scatter_mul_handle_op = _scatter("Mul", "multiply")
scatter_div_op, scatter_div_handle_op = _scatter("Div", "divide")
scatter_min_op, scatter_min_handle_op = _scatter("Min", "min")
scatter_max_op, scatter_max_handle_op = _scatter("Max", "max")
