"""Assigning to a slice of a variable: ``v[1:3].assign(value)``."""

from __future__ import annotations

from typing import Any

from runnel.graph.registry import register_op
from runnel.ops.state import handle_dims

_MASKS = [
    f"{part}_mask: int = 0" for part in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
]
_PLACE = "begin: Index, end: Index, strides: Index, value: T"

slice_assign_op = register_op(
    "StridedSliceAssign",
    inputs=f"ref: Ref(T), {_PLACE}",
    outputs="output_ref: Ref(T)",
    attrs=["T: type", "Index: {int32, int64}", *_MASKS],
    static_inputs=("begin", "end", "strides"),
    updates=("ref",),
    differentiable=False,
)
slice_assign_handle_op = register_op(
    "ResourceStridedSliceAssign",
    inputs=f"ref: resource, {_PLACE}",
    attrs=["T: type", "Index: {int32, int64}", *_MASKS],
    static_inputs=("begin", "end", "strides"),
    updates=("ref",),
    differentiable=False,
)


@slice_assign_op.shape
def _(ref, begin, end, strides, value):
    return ref.dims


@slice_assign_handle_op.shape
def _(handle, begin, end, strides, value):
    return handle_dims(handle)


def _index(
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> tuple[Any, ...]:
    """What Python would write between the brackets."""
    parts: list[Any] = []
    for i in range(len(begin)):
        bit = 1 << i
        if ellipsis_mask & bit:
            parts.append(Ellipsis)
        elif new_axis_mask & bit:
            parts.append(None)
        elif shrink_axis_mask & bit:
            parts.append(int(begin[i]))
        else:
            start = None if begin_mask & bit else int(begin[i])
            stop = None if end_mask & bit else int(end[i])
            parts.append(slice(start, stop, int(strides[i])))
    return tuple(parts)


for _op in (slice_assign_op, slice_assign_handle_op):

    @_op.kernel
    def _(
        xp,
        ref,
        begin,
        end,
        strides,
        value,
        *,
        begin_mask,
        end_mask,
        ellipsis_mask,
        new_axis_mask,
        shrink_axis_mask,
    ):
        import numpy as np

        masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
        where = _index(begin, end, strides, *masks)
        # A view without storage, to have NumPy find the shape and any index out of range.
        wanted = np.broadcast_to(np.empty((), np.bool_), ref.shape)[where].shape
        if value.shape != wanted:
            raise ValueError(
                f"A value of shape {value.shape} cannot be assigned to a slice of shape {wanted}"
            )
        if xp is np:
            out = np.array(ref)
            out[where] = value
            return out
        return ref.at[where].set(value)
