"""Brightness, contrast, hue, saturation and gamma of images, and random changes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import add, maximum, pow
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.control import with_dependencies
from runnel.ops.division import divide
from runnel.ops.elementwise import rsqrt
from runnel.ops.half_precision import narrow, widen
from runnel.ops.image.colour_spaces import colour_dims, from_hsv, require_colours, to_hsv
from runnel.ops.image.image_dtype import convert_image_dtype
from runnel.ops.reduce_functions import reduce_mean, reduce_prod, reduce_std
from runnel.ops.sampling.random import random_uniform

_FLOATS = "T: {half, float} = DT_FLOAT"


def _adjustment_op(name: str, amount: str, shape: Any) -> OpDef:
    op_def = register_op(
        name, inputs=f"images: T, {amount}: float", outputs="output: T", attrs=_FLOATS
    )
    op_def.shape(shape)
    return op_def


adjust_contrast_op = _adjustment_op("AdjustContrastv2", "contrast_factor", unchanged)
adjust_hue_op = _adjustment_op("AdjustHue", "delta", colour_dims)
adjust_saturation_op = _adjustment_op("AdjustSaturation", "scale", colour_dims)


def _require_scalar(amount: Any, what: str) -> None:
    if amount.ndim:
        raise InvalidArgumentError(
            None, None, f"{what} must be a scalar, not of shape {list(amount.shape)}"
        )


@adjust_contrast_op.kernel
def _(xp, images, contrast_factor):
    _require_scalar(contrast_factor, "contrast_factor")
    if images.ndim < 3:
        raise InvalidArgumentError(
            None, None, f"input must be at least 3-D, not of shape {list(images.shape)}"
        )
    wide = widen(images)
    mean = xp.mean(wide, axis=(-3, -2), keepdims=True, dtype=np.float32)
    return narrow((wide - mean) * contrast_factor + mean, images.dtype)


@adjust_hue_op.kernel
def _(xp, images, delta):
    _require_scalar(delta, "delta")
    require_colours(images)
    hue, saturation, value = to_hsv(xp, widen(images))
    return narrow(from_hsv(xp, (hue + delta) % 1, saturation, value), images.dtype)


@adjust_saturation_op.kernel
def _(xp, images, scale):
    _require_scalar(scale, "scale")
    require_colours(images)
    hue, saturation, value = to_hsv(xp, widen(images))
    return narrow(from_hsv(xp, hue, xp.clip(saturation * scale, 0, 1), value), images.dtype)


# Functions ------------------------------------------------------------------------------------


def _as_floats(image: Any, name: str = "image") -> tuple[Tensor, Any]:
    """``image`` in floating point, and its own type."""
    image = convert_to_tensor(image, name=name)
    kind = image.dtype.base_dtype
    if kind in (dtypes.float16, dtypes.float32):
        return image, kind
    return convert_image_dtype(image, dtypes.float32), kind


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """``image`` with ``delta`` added, 1 being the whole range of its type."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        floats, kind = _as_floats(image)
        brighter = add(floats, cast(delta, floats.dtype), name=scope)
        return convert_image_dtype(brighter, kind, saturate=True)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """``images`` with each channel's distance to its mean multiplied by ``contrast_factor``."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        floats, kind = _as_floats(images, "images")
        adjusted = adjust_contrast_op(floats, contrast_factor, name=scope)
        return convert_image_dtype(adjusted, kind, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """``gain * image ** gamma``."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        floats, kind = _as_floats(image)
        if isinstance(gamma, Tensor):
            held = Assert(gamma >= 0, ["Gamma should be a non-negative real number."])
            gamma = with_dependencies([held], gamma)
        elif gamma < 0:
            raise ValueError("Gamma should be a non-negative real number.")
        adjusted: Any = gain * pow(floats, gamma)
        return convert_image_dtype(adjusted, kind, saturate=True)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """``image`` with ``delta`` (of the whole circle) added to the hue of its colours."""
    with name_scope(name, "adjust_hue", [image]):
        floats, kind = _as_floats(image)
        return convert_image_dtype(adjust_hue_op(floats, delta), kind)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """``image`` with the saturation of its colours multiplied by ``saturation_factor``."""
    with name_scope(name, "adjust_saturation", [image]):
        floats, kind = _as_floats(image)
        return convert_image_dtype(adjust_saturation_op(floats, saturation_factor), kind)


def _require_range(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_brightness` by at most ``max_delta``, drawn in each step."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_contrast` by a factor between the bounds, drawn in each step."""
    _require_range(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_hue` by at most ``max_delta``, drawn in each step."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError(f"max_delta must be <= 0.5 and non-negative, not {max_delta}.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_saturation` by a factor between the bounds, drawn in each step."""
    _require_range(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def per_image_standardization(image: Any) -> Tensor:
    """Each image with mean 0 and deviation 1, float32; a plain one becomes zeros."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = convert_to_tensor(image, name="image")
        if image.dims is not None and len(image.dims) < 3:
            raise ValueError(
                f"'image' must be at least three-dimensional, not {format_dims(image.dims)}."
            )
        floats: Any = cast(image, dtypes.float32)
        axes = [-1, -2, -3]
        count = cast(reduce_prod(shape_of(floats)[-3:]), dtypes.float32)
        mean = reduce_mean(floats, axis=axes, keepdims=True)
        deviation = maximum(reduce_std(floats, axis=axes, keepdims=True), rsqrt(count))
        return divide(floats - mean, deviation, name=scope)
