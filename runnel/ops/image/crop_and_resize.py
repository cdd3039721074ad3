"""Crops of images by boxes, all resized to one size; differentiable in images and boxes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.image.resize import as_float
from runnel.ops.reduce_functions import one_of
from runnel.ops.scatter_update import combine_at
from runnel.ops.strings.texts import encoded

_PIXELS = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}"
_METHOD = "method: {'bilinear', 'nearest'} = 'bilinear'"

crop_and_resize_op = register_op(
    "CropAndResize",
    inputs="image: T, boxes: float, box_ind: int32, crop_size: int32",
    outputs="crops: float",
    attrs=[_PIXELS, _METHOD, "extrapolation_value: float = 0.0"],
    static_inputs=("crop_size",),
)
grad_image_op = register_op(
    "CropAndResizeGradImage",
    inputs="grads: float, boxes: float, box_ind: int32, image_size: int32",
    outputs="output: T",
    attrs=["T: {float, half, double}", _METHOD],
    static_inputs=("image_size",),
    differentiable=False,
)
grad_boxes_op = register_op(
    "CropAndResizeGradBoxes",
    inputs="grads: float, image: T, boxes: float, box_ind: int32",
    outputs="output: float",
    attrs=[_PIXELS, "method: {'bilinear'} = 'bilinear'"],
    differentiable=False,
)


def _check_ranks(image: Tensor, boxes: Tensor, box_ind: Tensor) -> None:
    for what, tensor, rank in (("image", image, 4), ("boxes", boxes, 2), ("box_ind", box_ind, 1)):
        if tensor.dims is not None and len(tensor.dims) != rank:
            raise ValueError(f"{what} must have rank {rank}, not shape {format_dims(tensor.dims)}")


@crop_and_resize_op.shape
def _(image, boxes, box_ind, crop_size):
    _check_ranks(image, boxes, box_ind)
    known = constant_value_as_dims(crop_size)
    height, width = (None, None) if known is None or len(known) != 2 else known
    count = None if boxes.dims is None else boxes.dims[0]
    if count is None and box_ind.dims is not None:
        count = box_ind.dims[0]
    return (count, height, width, None if image.dims is None else image.dims[3])


@grad_image_op.shape
def _(grads, boxes, box_ind, image_size):
    return constant_value_as_dims(image_size)


@grad_boxes_op.shape
def _(grads, image, boxes, box_ind):
    return boxes.dims


def _require(xp: Any, image: tuple[int, ...], boxes: Any, box_ind: Any, check: Any) -> None:
    problem = None
    if len(image) != 4:
        problem = f"image must be 4-D, not of shape {list(image)}"
    elif 0 in image[1:3]:
        problem = f"image dimensions must be positive, not {list(image)}"
    elif boxes.ndim != 2 or boxes.shape[1] != 4:
        problem = f"boxes must be of shape [boxes, 4], not {list(boxes.shape)}"
    elif box_ind.shape != boxes.shape[:1]:
        problem = f"box_ind must have one index for each box, not the shape {list(box_ind.shape)}"
    if problem is not None:
        raise InvalidArgumentError(None, None, problem)
    known = xp.all((box_ind >= 0) & (box_ind < image[0]))
    check(known, lambda: f"box_ind has values outside [0, {image[0]}): {box_ind.tolist()}")


class _AxisSamples(NamedTuple):
    """Samples of every box along one axis, each of shape (boxes, samples)."""

    low: Any
    high: Any
    share: Any
    nearest: Any
    inside: Any


def _axis(xp: Any, low: Any, high: Any, size: int, count: int) -> _AxisSamples:
    """``count`` samples from ``low`` to ``high`` (0 and 1 are the ends) of ``size`` pixels."""
    last = np.float32(size - 1)
    places = xp.arange(count, dtype=np.float32)
    if count > 1:
        step = (high - low) * last / np.float32(count - 1)
        at = low[:, None] * last + places * step[:, None]
    else:
        at = (np.float32(0.5) * (low + high) * last)[:, None]
    lower = xp.floor(at)

    def pixel(place: Any) -> Any:
        return xp.clip(place, 0, last).astype(np.int32)

    return _AxisSamples(
        pixel(lower),
        pixel(xp.ceil(at)),
        at - lower,
        pixel(xp.floor(at + np.float32(0.5))),
        (at >= 0) & (at <= last),
    )


def _samples(xp: Any, boxes: Any, sizes: Any, counts: Any) -> tuple[_AxisSamples, _AxisSamples]:
    y1, x1, y2, x2 = (boxes[:, i] for i in range(4))
    return _axis(xp, y1, y2, sizes[0], counts[0]), _axis(xp, x1, x2, sizes[1], counts[1])


def _corners(rows: _AxisSamples, columns: _AxisSamples) -> list[tuple[Any, Any]]:
    """Top left, top right, bottom left, bottom right of each sample, as (rows, columns)."""
    return [(y[:, :, None], x[:, None, :]) for y in rows[:2] for x in columns[:2]]


def _shares(rows: _AxisSamples, columns: _AxisSamples) -> tuple[Any, Any]:
    return rows.share[:, :, None, None], columns.share[:, None, :, None]


def _inside(rows: _AxisSamples, columns: _AxisSamples) -> Any:
    return (rows.inside[:, :, None] & columns.inside[:, None, :])[..., None]


@crop_and_resize_op.kernel
def _(xp, image, boxes, box_ind, crop_size, *, method, extrapolation_value, check):
    _require(xp, image.shape, boxes, box_ind, check)
    counts = crop_size.tolist()
    if len(counts) != 2 or min(counts) <= 0:
        raise InvalidArgumentError(
            None, None, f"crop_size must be two positive numbers, not {counts}"
        )
    rows, columns = _samples(xp, boxes, image.shape[1:3], counts)
    of = box_ind[:, None, None]
    if encoded(method) == b"nearest":
        found = image[of, rows.nearest[:, :, None], columns.nearest[:, None, :]]
        found = found.astype(np.float32)
    else:
        corners = _corners(rows, columns)
        tl, tr, bl, br = (as_float(image[of, y, x]).astype(np.float32) for y, x in corners)
        down, across = _shares(rows, columns)
        top = tl + (tr - tl) * across
        bottom = bl + (br - bl) * across
        found = top + (bottom - top) * down
    return xp.where(_inside(rows, columns), found, np.float32(extrapolation_value))


@grad_image_op.kernel
def _(xp, grads, boxes, box_ind, image_size, *, T, method, check, platform):  # noqa: N803
    shape = tuple(image_size.tolist())
    _require(xp, shape, boxes, box_ind, check)
    rows, columns = _samples(xp, boxes, shape[1:3], grads.shape[1:3])
    of = box_ind[:, None, None]
    wide = np.float64 if T.np_dtype == np.float64 else np.float32
    grads = xp.where(_inside(rows, columns), grads, np.float32(0)).astype(wide)
    out = xp.zeros(shape, wide)
    if encoded(method) == b"nearest":
        where = (of, rows.nearest[:, :, None], columns.nearest[:, None, :])
        out = combine_at(xp, out, where, grads, "add", platform)
    else:
        down, across = _shares(rows, columns)
        weights = [v * u for v in (1 - down, down) for u in (1 - across, across)]
        for (y, x), weight in zip(_corners(rows, columns), weights, strict=True):
            out = combine_at(xp, out, (of, y, x), (weight * grads).astype(wide), "add", platform)
    return out.astype(T.np_dtype)


@grad_boxes_op.kernel
def _(xp, grads, image, boxes, box_ind, *, check):
    _require(xp, image.shape, boxes, box_ind, check)
    rows, columns = _samples(xp, boxes, image.shape[1:3], grads.shape[1:3])
    of = box_ind[:, None, None]
    corners = _corners(rows, columns)
    tl, tr, bl, br = (as_float(image[of, y, x]).astype(np.float32) for y, x in corners)
    down, across = _shares(rows, columns)
    grads = xp.where(_inside(rows, columns), grads, np.float32(0))
    slope_y = xp.sum(grads * ((1 - across) * (bl - tl) + across * (br - tr)), axis=(2, 3))
    slope_x = xp.sum(grads * ((1 - down) * (tr - tl) + down * (br - bl)), axis=(1, 3))
    y1, y2 = _ends(xp, slope_y, image.shape[1])
    x1, x2 = _ends(xp, slope_x, image.shape[2])
    return xp.stack([y1, x1, y2, x2], axis=1).astype(np.float32)


def _ends(xp: Any, slopes: Any, size: int) -> tuple[Any, Any]:
    """How the sums of ``slopes`` (boxes, samples) change with the two ends of an axis."""
    count = slopes.shape[1]
    if count > 1:
        share = xp.arange(count, dtype=np.float32) / np.float32(count - 1)
    else:
        share = np.full(1, 0.5, np.float32)
    last = np.float32(size - 1)
    return xp.sum(slopes * (1 - share), axis=1) * last, xp.sum(slopes * share, axis=1) * last


@crop_and_resize_op.gradient
def _(op, grad):
    image, boxes, box_ind, _ = op.inputs
    to_image = None
    if image.dtype.is_floating:
        to_image = grad_image_op(
            grad,
            boxes,
            box_ind,
            shape_of(image),
            T=image.dtype.base_dtype,
            method=op.get_attr("method"),
        )
    return [to_image, grad_boxes_op(grad, image, boxes, box_ind), None, None]


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """The parts of images that ``boxes`` name, each of ``crop_size``.

    A box is [y1, x1, y2, x2], 0 and 1 being the middles of the first and the last pixel; it is
    cut from the image that ``box_indices`` names. What lies beyond has ``extrapolation_value``.

    Example:
        >>> tf.image.crop_and_resize(images, [[0.1, 0.1, 0.9, 0.9]], [0], [64, 64])
    """
    return crop_and_resize_op(
        image,
        boxes,
        one_of("box_indices", box_indices, "box_ind", box_ind),
        crop_size,
        method=method,
        extrapolation_value=float(extrapolation_value),
        name=name,
    )
