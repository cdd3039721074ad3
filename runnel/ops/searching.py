"""Where values belong in rows that are sorted, and repeating elements by it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.cumulative import cumsum
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_sum


def _bound_op(name: str, side: Literal["left", "right"]) -> OpDef:
    op_def = register_op(
        name,
        inputs="sorted_inputs: T, values: T",
        outputs="output: out_type",
        attrs=["T: type", "out_type: {int32, int64} = DT_INT32"],
        differentiable=False,
    )

    @op_def.shape
    def _(rows, values):
        for what, tensor in (("sorted_inputs", rows), ("values", values)):
            if tensor.dims is not None and len(tensor.dims) != 2:
                raise ValueError(
                    f"{what} must be a matrix, not of shape {format_dims(tensor.dims)}"
                )
        return values.dims

    @op_def.kernel
    def _(xp, rows, values, *, out_type):
        if rows.ndim != 2 or values.ndim != 2 or rows.shape[0] != values.shape[0]:
            raise InvalidArgumentError(
                None,
                None,
                "sorted_inputs and values must be matrices with as many rows, not of shapes "
                f"{list(rows.shape)} and {list(values.shape)}",
            )
        if xp is np:
            out = np.empty(values.shape, out_type.np_dtype)
            for i, row in enumerate(rows):
                out[i] = np.searchsorted(row, values[i], side)
            return out
        import jax

        found = jax.vmap(lambda row, wanted: xp.searchsorted(row, wanted, side))(rows, values)
        return found.astype(out_type.np_dtype)

    return op_def


lower_bound_op = _bound_op("LowerBound", "left")
upper_bound_op = _bound_op("UpperBound", "right")


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where each of ``values`` belongs in its row of ``sorted_sequence``.

    With ``side="left"`` before elements that are equal, with "right" behind them.

    Example:
        >>> tf.searchsorted([1, 3, 5], [0, 3, 4])  # [0, 1, 2]
    """
    ops = {"left": lower_bound_op, "right": upper_bound_op}
    if side not in ops:
        raise ValueError(f"side must be either 'right' or 'left', not {side!r}.")
    with name_scope(name, "searchsorted", [sorted_sequence, values]) as scope:
        rows = convert_to_tensor(sorted_sequence, name="sorted_sequence")
        wanted = convert_to_tensor(values, rows.dtype, name="values")
        found = ops[side](_as_matrix(rows), _as_matrix(wanted), out_type=as_dtype(out_type))
        return reshape(found, shape_of(wanted), name=scope)


def _as_matrix(rows: Tensor) -> Tensor:
    # One row may be empty; of several empty ones -1 could not say how many there are.
    count = 1 if rows.get_shape().ndims == 1 else -1
    return reshape(rows, concat([[count], shape_of(rows)[-1:]], 0))


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:  # noqa: A002
    """``input`` with each element along ``axis`` repeated as often as ``repeats`` says.

    Without an ``axis``, the elements of all dimensions in one row.

    Example:
        >>> tf.repeat([3, 4], [1, 2])  # [3, 4, 4]
    """
    with name_scope(name, "Repeat", [input, repeats]) as scope:
        data = convert_to_tensor(input, name="input")
        if axis is None:
            data, axis = reshape(data, [-1]), 0
        counts = convert_to_tensor(repeats, name="repeats", dtype_hint=dtypes.int32)
        size = shape_of(data, out_type=counts.dtype.base_dtype)[axis]
        counts = broadcast_to(counts, reshape(size, [1]))
        ends = cumsum(counts)
        places = sequence(reduce_sum(counts))
        return gather(data, searchsorted(ends, places, side="right"), axis=axis, name=scope)
