"""Resizing: by the nearest pixel, between two or four neighbours, by area; and the gradients.

Every method treats the two axes one after the other, each by a matrix of weights
(:mod:`runnel.ops.image.pixel_grid`); a gradient multiplies by the transposed matrices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.blas_threads import multiply
from runnel.ops.half_precision import narrow
from runnel.ops.image.native_resize import resized_natively
from runnel.ops.image.pixel_grid import PixelGrid

PIXELS = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"
_CORNERS = "align_corners: bool = false"
_CENTERS = "half_pixel_centers: bool = false"
_LONG_PIXEL = 4
"""Channels from which on NumPy copies a pixel as a whole faster than number by number."""


def _resize_op(name: str, output: str, attrs: list[str]) -> OpDef:
    op_def = register_op(
        name,
        inputs="images: T, size: int32",
        outputs=f"resized_images: {output}",
        attrs=[PIXELS, *attrs],
        static_inputs=("size",),
    )
    op_def.shape(resized_dims)
    return op_def


def resized_dims(images: Tensor, size: Tensor) -> Dims:
    """The static shape of images after resizing."""
    if images.dims is not None and len(images.dims) != 4:
        raise ValueError(f"images must have 4 dimensions, not {format_dims(images.dims)}")
    if size.dims is not None and size.dims not in ((2,), (None,)):
        raise ValueError(f"size must have two elements, not the shape {format_dims(size.dims)}")
    known = constant_value_as_dims(size)
    height, width = (None, None) if known is None or len(known) != 2 else known
    batch, channels = (None, None) if images.dims is None else images.dims[::3]
    return (batch, height, width, channels)


resize_bilinear_op = _resize_op("ResizeBilinear", "float", [_CORNERS, _CENTERS])
resize_bicubic_op = _resize_op("ResizeBicubic", "float", [_CORNERS, _CENTERS])
resize_area_op = _resize_op("ResizeArea", "float", [_CORNERS])
resize_nearest_neighbor_op = _resize_op("ResizeNearestNeighbor", "T", [_CORNERS, _CENTERS])


def require_pixels(images: Any, size: Any) -> tuple[int, int]:
    """The height and width to resize to; a mistake is an error of the step."""
    height, width = size.tolist()
    if images.ndim != 4:
        problem = f"images must have 4 dimensions, not the shape {list(images.shape)}"
    elif height <= 0 or width <= 0:
        problem = f"output dimensions must be positive, not {height} x {width}"
    elif 0 in images.shape[1:3]:
        problem = f"input image must be of non-zero size, not of shape {list(images.shape)}"
    else:
        return height, width
    raise InvalidArgumentError(None, None, problem)


def _grids(images: Any, size: Any, corners: bool, centers: bool) -> tuple[PixelGrid, PixelGrid]:
    height, width = require_pixels(images, size)
    if corners and centers:
        raise InvalidArgumentError(
            None, None, "If half_pixel_centers is True, align_corners must be False."
        )
    rows, columns = images.shape[1:3]
    return PixelGrid(rows, height, corners, centers), PixelGrid(columns, width, corners, centers)


def as_float(images: Any) -> Any:
    """``images`` in the type in which weighted pixels are summed."""
    return images if images.dtype in (np.float32, np.float64) else images.astype(np.float32)


def weighted(xp: Any, images: Any, rows: Any, columns: Any) -> Any:
    """``images`` with the matrix ``rows`` applied to axis 1 and ``columns`` to axis 2."""
    batch, height, width, channels = images.shape
    if xp is np:
        tall = multiply(np.matmul, rows, images.reshape(batch, height, width * channels))
        return multiply(np.matmul, columns, tall.reshape(batch, -1, width, channels))
    # Not in fewer bits, which a GPU would otherwise take for products.
    return xp.einsum("yh,bhwc,xw->byxc", rows, images, columns, precision="highest")


@resize_nearest_neighbor_op.kernel
def _(xp, images, size, *, align_corners, half_pixel_centers):
    rows, columns = _grids(images, size, align_corners, half_pixel_centers)
    return xp.take(xp.take(images, rows.nearest(), axis=1), columns.nearest(), axis=2)


@resize_bilinear_op.kernel
def _(xp, images, size, *, align_corners, half_pixel_centers):
    rows, columns = _grids(images, size, align_corners, half_pixel_centers)
    rows_first = rows.count < rows.size  # the axis that leaves less to do
    native = resized_natively(images, rows, columns, rows_first) if xp is np else None
    if native is not None:
        return native
    if rows_first:
        between = _between(xp, images, rows, 1)
        return _between(xp, between, columns, 2).astype(np.float32, copy=False)
    between = _between(xp, _between(xp, images, columns, 2), rows, 1)
    return between.astype(np.float32, copy=False)


def _between(xp: Any, images: Any, grid: PixelGrid, axis: int) -> Any:
    low, high, share = grid.neighbours()
    if xp is np:
        return _between_in_place(images, low, high, share, axis)
    first = as_float(xp.take(images, low, axis=axis))
    second = as_float(xp.take(images, high, axis=axis))
    share = share.astype(first.dtype).reshape([-1 if a == axis else 1 for a in range(4)])
    return first + (second - first) * share


def _between_in_place(
    images: np.ndarray, low: np.ndarray, high: np.ndarray, share: np.ndarray, axis: int
) -> np.ndarray:
    """The same with few passes over memory, by loops over whole rows rather than over channels."""
    channels = images.shape[3]
    first, between = (_rows_of_values(images, places, axis) for places in (low, high))
    weights = share.astype(first.dtype)
    between -= first
    between *= weights[:, None] if axis == 1 else np.repeat(weights, channels)
    between += first
    width = images.shape[2] if axis == 1 else len(share)
    return between.reshape(*between.shape[:2], width, channels)


def _rows_of_values(images: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    """The pixels at ``places`` of an axis, each row one run of numbers; memory of their own."""
    batch, height, width, channels = images.shape
    if axis == 2 and channels < _LONG_PIXEL:
        images = images.reshape(batch, height, width * channels)
        places = (places[:, None] * channels + np.arange(channels)).ravel()
    taken = as_float(np.take(images, places, axis=axis))
    return taken.reshape(*taken.shape[:2], math.prod(taken.shape[2:]))


@resize_bicubic_op.kernel
def _(xp, images, size, *, align_corners, half_pixel_centers):
    rows, columns = _grids(images, size, align_corners, half_pixel_centers)
    pixels = as_float(images)
    weights = (grid.cubic_weights().astype(pixels.dtype) for grid in (rows, columns))
    return weighted(xp, pixels, *weights).astype(np.float32)


@resize_area_op.kernel
def _(xp, images, size, *, align_corners):
    rows, columns = _grids(images, size, align_corners, False)
    weights = (grid.area_weights() for grid in (rows, columns))
    return weighted(xp, images.astype(np.float32), *weights)


# Gradients ------------------------------------------------------------------------------------


def _grad_op(name: str, types: str) -> OpDef:
    op_def = register_op(
        name,
        inputs="grads: float, original_image: T",
        outputs="output: T",
        attrs=[f"T: {{{types}}}", _CORNERS, _CENTERS],
    )
    op_def.shape(lambda grads, original_image: original_image.dims)
    return op_def


bilinear_grad_op = _grad_op("ResizeBilinearGrad", "float, bfloat16, half, double")
bicubic_grad_op = _grad_op("ResizeBicubicGrad", "float, double")
nearest_grad_op = register_op(
    "ResizeNearestNeighborGrad",
    inputs="grads: T, size: int32",
    outputs="output: T",
    attrs=["T: {uint8, int8, int32, half, float, double, bfloat16}", _CORNERS, _CENTERS],
    static_inputs=("size",),
)
nearest_grad_op.shape(resized_dims)


def _backward(
    xp: Any, grads: Any, grids: tuple[PixelGrid, PixelGrid], weights: str, dtype: Any
) -> Any:
    rows, columns = (getattr(grid, weights)().astype(grads.dtype).T for grid in grids)
    return narrow(weighted(xp, grads, rows, columns), dtype)


def _grids_of(grads: Any, original: Any, corners: bool, centers: bool) -> Any:
    return _grids(original, np.array(grads.shape[1:3]), corners, centers)


@bilinear_grad_op.kernel
def _(xp, grads, original_image, *, align_corners, half_pixel_centers):
    grids = _grids_of(grads, original_image, align_corners, half_pixel_centers)
    wide = np.float64 if original_image.dtype == np.float64 else np.float32
    return _backward(xp, grads.astype(wide), grids, "linear_weights", original_image.dtype)


@bicubic_grad_op.kernel
def _(xp, grads, original_image, *, align_corners, half_pixel_centers):
    grids = _grids_of(grads, original_image, align_corners, half_pixel_centers)
    wide = grads.astype(original_image.dtype)
    return _backward(xp, wide, grids, "cubic_weights", original_image.dtype)


@nearest_grad_op.kernel
def _(xp, grads, size, *, align_corners, half_pixel_centers):
    height, width = size.tolist()
    rows = PixelGrid(height, grads.shape[1], align_corners, half_pixel_centers)
    columns = PixelGrid(width, grads.shape[2], align_corners, half_pixel_centers)
    exact = np.float64 if grads.dtype.kind in "iu" else as_float(grads).dtype
    return _backward(xp, grads.astype(exact), (rows, columns), "nearest_weights", grads.dtype)


def _settings(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}


@resize_bilinear_op.gradient
def _(op, grad):
    image = op.inputs[0]
    if not image.dtype.is_floating:
        return [None, None]
    return [bilinear_grad_op(grad, image, **_settings(op)), None]


@resize_bicubic_op.gradient
def _(op, grad):
    image = op.inputs[0]
    if image.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
        return [None, None]
    return [bicubic_grad_op(grad, image, **_settings(op)), None]


@resize_nearest_neighbor_op.gradient
def _(op, grad):
    size = shape_of(op.inputs[0])[1:3]
    return [nearest_grad_op(grad, size, **_settings(op)), None]


# A gradient is linear in what comes back, so its own gradient is the resizing itself.


@bilinear_grad_op.gradient
def _(op, grad):
    size = shape_of(op.inputs[0])[1:3]
    return [resize_bilinear_op(grad, size, **_settings(op)), None]


@bicubic_grad_op.gradient
def _(op, grad):
    size = shape_of(op.inputs[0])[1:3]
    return [resize_bicubic_op(grad, size, **_settings(op)), None]


@nearest_grad_op.gradient
def _(op, grad):
    size = shape_of(op.inputs[0])[1:3]
    return [resize_nearest_neighbor_op(grad, size, **_settings(op)), None]


# Functions ------------------------------------------------------------------------------------


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """``images`` of another size, each pixel between its four neighbours; float32."""
    return resize_bilinear_op(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """``images`` of another size by cubic interpolation of sixteen neighbours; float32."""
    return resize_bicubic_op(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """``images`` of another size, each pixel a copy of the nearest."""
    return resize_nearest_neighbor_op(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """``images`` of another size, each pixel the mean of the area that it covers; float32."""
    return resize_area_op(images, size, align_corners=align_corners, name=name)
