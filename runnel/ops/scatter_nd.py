"""Putting values at coordinates: a new tensor, or a copy of one with some elements replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.array_shape import at_run_time
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather_nd, require_coordinates
from runnel.ops.scatter_update import combine_at

_POLICY = "bad_indices_policy: string = ''"

scatter_nd_op = register_op(
    "ScatterNd",
    inputs="indices: Tindices, updates: T, shape: Tindices",
    outputs="output: T",
    attrs=["T: type", "Tindices: {int16, int32, int64}", _POLICY],
    static_inputs=("shape",),
)


def _require_updates(indices: Dims, updates: Dims, target: Dims) -> None:
    """An error unless ``updates`` has a slice of ``target`` for each row of ``indices``."""
    if indices is None or updates is None or target is None or not indices:
        return
    depth = indices[-1]
    if depth is None:
        return
    if depth > len(target):
        raise ValueError(
            f"The last dimension of indices, {depth}, must be at most the rank of the target, "
            f"{len(target)}"
        )
    wanted = (*indices[:-1], *target[depth:])
    try:
        merge_dims(updates, wanted)
    except ValueError:
        raise ValueError(
            "updates must have the shape indices.shape[:-1] + target.shape[indices.shape[-1]:], "
            f"that is {format_dims(wanted)}, not {format_dims(updates)}"
        ) from None


def _put(
    xp: Any, target: Any, indices: Any, updates: Any, method: str, check: Any, platform: str
) -> Any:
    at_run_time(_require_updates, indices.shape, updates.shape, target.shape)
    require_coordinates(xp, indices, target.shape, check)
    depth = indices.shape[-1]
    where = tuple(indices[..., d] for d in range(depth)) if depth else (...,)
    if not depth and updates.ndim > target.ndim:
        # Coordinates without dimensions all mean the whole target.
        updates = updates.reshape((-1, *target.shape))
        where, target = (np.zeros(updates.shape[0], np.int64),), target[None]
        return combine_at(xp, target, where, updates, method, platform)[0]
    return combine_at(xp, target, where, updates, method, platform)


@scatter_nd_op.shape
def _(indices, updates, shape):
    dims = constant_value_as_dims(shape)
    _require_updates(indices.dims, updates.dims, dims)
    return dims


@scatter_nd_op.kernel
def _(xp, indices, updates, shape, *, check, platform):
    target = xp.zeros(tuple(shape.tolist()), updates.dtype)
    return _put(xp, target, indices, updates, "add", check, platform)


@scatter_nd_op.gradient
def _(op, grad):
    return [None, gather_nd(grad, op.inputs[0]), None]


def _tensor_scatter(name: str, method: str) -> OpDef:
    types = (
        "Tindices: {int16, int32, int64, uint16}" if method == "set" else "Tindices: {int32, int64}"
    )
    op_def = register_op(
        name,
        inputs="tensor: T, indices: Tindices, updates: T",
        outputs="output: T",
        attrs=["T: type", types, _POLICY],
    )

    @op_def.shape
    def _(tensor, indices, updates):
        _require_updates(indices.dims, updates.dims, tensor.dims)
        return tensor.dims

    @op_def.kernel
    def _(xp, tensor, indices, updates, *, check, platform):
        return _put(xp, xp.asarray(tensor), indices, updates, method, check, platform)

    return op_def


tensor_scatter_update_op = _tensor_scatter("TensorScatterUpdate", "set")
tensor_scatter_add_op = _tensor_scatter("TensorScatterAdd", "add")
tensor_scatter_sub_op = _tensor_scatter("TensorScatterSub", "subtract")


@tensor_scatter_update_op.gradient
def _(op, grad):
    _, indices, updates = op.inputs
    kept = tensor_scatter_update_op(grad, indices, zeros_like(updates))
    return [kept, None, gather_nd(grad, indices)]


@tensor_scatter_add_op.gradient
def _(op, grad):
    return [grad, None, gather_nd(grad, op.inputs[1])]


@tensor_scatter_sub_op.gradient
def _(op, grad):
    return [grad, None, get_op_def("Neg")(gather_nd(grad, op.inputs[1]))]


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of ``shape`` with ``updates`` added at the coordinates ``indices``.

    Example:
        >>> tf.scatter_nd([[1], [3]], [9, 7], [5])  # [0, 9, 0, 7, 0]
    """
    return scatter_nd_op(indices, updates, shape, name=name)


def tensor_scatter_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` at the coordinates ``indices``.

    Example:
        >>> tf.tensor_scatter_update([1, 2, 3], [[0]], [9])  # [9, 2, 3]
    """
    return tensor_scatter_update_op(tensor, indices, updates, name=name)


def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of ``tensor`` with ``updates`` added at the coordinates ``indices``.

    Example:
        >>> tf.tensor_scatter_add([1, 2, 3], [[0], [0]], [5, 5])  # [11, 2, 3]
    """
    return tensor_scatter_add_op(tensor, indices, updates, name=name)


def tensor_scatter_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of ``tensor`` with ``updates`` subtracted at the coordinates ``indices``.

    Example:
        >>> tf.tensor_scatter_sub([1, 2, 3], [[2]], [1])  # [1, 2, 2]
    """
    return tensor_scatter_sub_op(tensor, indices, updates, name=name)
