"""Images read at places of their own for each sample, differentiable in images and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims
from runnel.ops.scatter_update import combine_at

_TYPES = "T: {half, bfloat16, float, double}"

resampler_op = register_op(
    "Resampler", inputs="data: T, warp: T", outputs="output: T", attrs=_TYPES
)
resampler_grad_op = register_op(
    "ResamplerGrad",
    inputs="data: T, warp: T, grad_output: T",
    outputs="grad_data: T, grad_warp: T",
    attrs=_TYPES,
    differentiable=False,
)


@resampler_op.shape
def _(data, warp):
    if data.dims is not None and len(data.dims) != 4:
        raise ValueError(f"data must have rank 4, not shape {format_dims(data.dims)}")
    if warp.dims is None:
        return None
    if len(warp.dims) < 2 or warp.dims[-1] not in (2, None):
        raise ValueError(f"warp must be of shape [batch, ..., 2], not {format_dims(warp.dims)}")
    return (*warp.dims[:-1], None if data.dims is None else data.dims[-1])


@resampler_grad_op.shape
def _(data, warp, grad_output):
    return [data.dims, warp.dims]


def _corners(xp: Any, data: Any, warp: Any) -> tuple[list[Any], Any, Any, Any]:
    """The four pixels around each place, as (where, there), and the shares of right and lower."""
    if data.ndim != 4 or warp.ndim < 2 or warp.shape[-1] != 2 or len(data) != len(warp):
        raise InvalidArgumentError(
            None,
            None,
            "data must be of shape [batch, height, width, channels] and warp of shape "
            f"[batch, ..., 2], not {list(data.shape)} and {list(warp.shape)}",
        )
    height, width = data.shape[1:3]
    wide = np.float64 if warp.dtype == np.float64 else np.float32
    x, y = warp[..., 0].astype(wide), warp[..., 1].astype(wide)
    left, top = xp.floor(x), xp.floor(y)
    # What lies further out than one pixel reads nothing, nor does NaN.
    near = (x > -1) & (y > -1) & (x < width) & (y < height)
    of = xp.arange(len(data)).reshape(-1, *[1] * (warp.ndim - 2))
    corners = []
    for row in (top, top + 1):
        for column in (left, left + 1):
            there = near & (row >= 0) & (column >= 0) & (row < height) & (column < width)
            safe = [xp.where(there, place, 0).astype(np.int32) for place in (row, column)]
            corners.append(((xp.broadcast_to(of, there.shape), *safe), there))
    across, down = (
        xp.where(near, place - low, 0).astype(wide) for place, low in ((x, left), (y, top))
    )
    return corners, across[..., None], down[..., None], wide


def _read(xp: Any, data: Any, corners: list[Any], wide: Any) -> list[Any]:
    data = xp.asarray(data)  # a constant is NumPy's array, which takes no traced places
    return [xp.where(there[..., None], data[where].astype(wide), 0) for where, there in corners]


@resampler_op.kernel
def _(xp, data, warp):
    corners, across, down, wide = _corners(xp, data, warp)
    tl, tr, bl, br = _read(xp, data, corners, wide)
    upper, lower = tl * (1 - across) + tr * across, bl * (1 - across) + br * across
    return (upper * (1 - down) + lower * down).astype(data.dtype)


@resampler_grad_op.kernel
def _(xp, data, warp, grad_output, *, platform):
    corners, across, down, wide = _corners(xp, data, warp)
    grad = grad_output.astype(wide)
    to_data = xp.zeros(data.shape, wide)
    shares = [v * u for v in (1 - down, down) for u in (1 - across, across)]
    for (where, there), share in zip(corners, shares, strict=True):
        parts = xp.where(there[..., None], share * grad, 0).astype(wide)
        to_data = combine_at(xp, to_data, where, parts, "add", platform)
    tl, tr, bl, br = _read(xp, data, corners, wide)
    to_x = xp.sum(grad * ((1 - down) * (tr - tl) + down * (br - bl)), axis=-1)
    to_y = xp.sum(grad * ((1 - across) * (bl - tl) + across * (br - tr)), axis=-1)
    to_warp = xp.stack([to_x, to_y], axis=-1)
    return to_data.astype(data.dtype), to_warp.astype(warp.dtype)


@resampler_op.gradient
def _(op, grad):
    return list(resampler_grad_op(*op.inputs, grad))


def resampler(data: Any, warp: Any, name: str = "resampler") -> Any:
    """Images read between their pixels at the places ``warp[..., :]``, each (x, y) in pixels.

    What lies outside an image is zero.

    Example:
        >>> moved = tf.contrib.resampler.resampler(images, grid + flow)  # (batch, h, w, 2)
    """
    return resampler_op(data, warp, name=name)
