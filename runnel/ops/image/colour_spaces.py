"""Colours in other coordinates: hue, saturation and value; YIQ; YUV; grey."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import expand_dims, rank
from runnel.ops.comparison import equal, greater, less
from runnel.ops.fill import ones, zeros_like
from runnel.ops.half_precision import narrow, widen
from runnel.ops.image.image_dtype import convert_image_dtype
from runnel.ops.joining import concat, stack
from runnel.ops.padding import tile
from runnel.ops.reduce_functions import reduce_max, reduce_min
from runnel.ops.selection import where
from runnel.ops.splitting import unstack
from runnel.ops.tensordot import tensordot
from runnel.ops.zero_safe import div_no_nan

_FLOATS = "T: {half, bfloat16, float, double} = DT_FLOAT"


def _colour_op(name: str) -> OpDef:
    op_def = register_op(name, inputs="images: T", outputs="output: T", attrs=_FLOATS)
    op_def.shape(colour_dims)
    return op_def


def colour_dims(images: Tensor, *others: Tensor) -> Any:
    """The shape of images, whose last dimension must be three colours."""
    dims = images.dims
    if dims is not None and (not dims or dims[-1] not in (None, 3)):
        raise ValueError(
            f"images must have 3 channels in the last dimension, not {format_dims(dims)}"
        )
    return dims


def require_colours(images: Any) -> None:
    """An error of the step unless the last dimension is three colours."""
    if not images.ndim or images.shape[-1] != 3:
        raise InvalidArgumentError(
            None,
            None,
            f"images must have 3 channels in the last dimension, not the shape {images.shape}",
        )


rgb_to_hsv_op = _colour_op("RGBToHSV")
hsv_to_rgb_op = _colour_op("HSVToRGB")


def to_hsv(xp: Any, images: Any) -> tuple[Any, Any, Any]:
    """Hue, saturation and value, each from 0 to 1, of red, green and blue."""
    red, green, blue = (images[..., i] for i in range(3))
    value = xp.maximum(xp.maximum(red, green), blue)
    spread = value - xp.minimum(xp.minimum(red, green), blue)
    grey = spread <= 0
    saturation = xp.where(value > 0, spread / xp.where(value > 0, value, 1), 0)
    unit = 1 / (6 * xp.where(grey, 1, spread))
    hue = xp.where(
        red == value,
        unit * (green - blue),
        xp.where(
            green == value,
            unit * (blue - red) + images.dtype.type(2 / 6),
            unit * (red - green) + images.dtype.type(4 / 6),
        ),
    )
    hue = xp.where(grey, 0, hue)
    return xp.where(hue < 0, hue + 1, hue), saturation, value


def from_hsv(xp: Any, hue: Any, saturation: Any, value: Any) -> Any:
    """Red, green and blue, as the last dimension."""
    sixth = hue * 6
    parts = (xp.abs(sixth - 3) - 1, 2 - xp.abs(sixth - 2), 2 - xp.abs(sixth - 4))
    rest = 1 - saturation
    return xp.stack([(rest + saturation * xp.clip(p, 0, 1)) * value for p in parts], axis=-1)


@rgb_to_hsv_op.kernel
def _(xp, images):
    require_colours(images)
    return narrow(xp.stack(to_hsv(xp, widen(images)), axis=-1), images.dtype)


@hsv_to_rgb_op.kernel
def _(xp, images):
    require_colours(images)
    wide = widen(images)
    return narrow(from_hsv(xp, *(wide[..., i] for i in range(3))), images.dtype)


@rgb_to_hsv_op.formula
def _(op, images):
    red, green, blue = unstack(images, axis=-1)
    value: Any = reduce_max(images, axis=-1)
    spread: Any = value - reduce_min(images, axis=-1)
    saturation = div_no_nan(spread, value)
    unit: Any = div_no_nan(zeros_like(spread) + 1, 6 * spread)
    hue: Any = where(
        equal(red, value),
        unit * (green - blue),
        where(equal(green, value), unit * (blue - red) + 2 / 6, unit * (red - green) + 4 / 6),
    )
    hue = where(greater(spread, 0), hue, zeros_like(hue))
    return stack([where(less(hue, 0), hue + 1, hue), saturation, value], axis=-1)


# Functions ------------------------------------------------------------------------------------


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value, each from 0 to 1, of colours from 0 to 1."""
    return rgb_to_hsv_op(images, name=name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The colours that hue, saturation and value describe."""
    return hsv_to_rgb_op(images, name=name)


# The columns are the coordinates of the new space.
_RGB_TO_YIQ = (
    (0.299, 0.59590059, 0.2115),
    (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)
_YIQ_TO_RGB = (
    (1.0, 1.0, 1.0),
    (0.95598634, -0.27201283, -1.10674021),
    (0.6208248, -0.64720424, 1.70423049),
)
_RGB_TO_YUV = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)
_YUV_TO_RGB = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))


def _in_space(images: Any, matrix: Any) -> Tensor:
    images = convert_to_tensor(images, name="images")
    kernel = convert_to_tensor(np.array(matrix, images.dtype.np_dtype), name="kernel")
    return tensordot(images, kernel, [[-1 + len(images.dims or (1, 1))], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Colours as brightness and two differences, as television in America had them."""
    return _in_space(images, _RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """The colours that YIQ describes."""
    return _in_space(images, _YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """Colours as brightness and two differences, as television in Europe had them."""
    return _in_space(images, _RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """The colours that YUV describes."""
    return _in_space(images, _YUV_TO_RGB)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """The brightness of colours, one channel of the same type."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        kind = images.dtype.base_dtype
        floats = convert_image_dtype(images, dtypes.float32)
        grey = tensordot(floats, [0.2989, 0.5870, 0.1140], [-1, -1])
        return convert_image_dtype(expand_dims(grey, -1), kind, name=scope)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Grey images, whose last dimension is 1, with three equal channels."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        if images.dims is not None and (not images.dims or images.dims[-1] not in (None, 1)):
            raise ValueError(
                "Last dimension of a grayscale image should be size 1, not "
                f"{format_dims(images.dims)}"
            )
        multiples = concat([ones(expand_dims(rank(images) - 1, 0), dtypes.int32), [3]], 0)
        coloured = tile(images, multiples, name=scope)
        if images.dims is not None:
            coloured.set_shape([*images.dims[:-1], 3])
        return coloured
