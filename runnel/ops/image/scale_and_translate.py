"""Resizing with a kernel of any kind, wide enough to filter what a smaller image cannot show."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.ops.casting import cast
from runnel.ops.image.resize import PIXELS, as_float, require_pixels, resized_dims, weighted
from runnel.ops.strings.texts import encoded

_HOW = ["kernel_type: string = 'lanczos3'", "antialias: bool = true"]

scale_and_translate_op = register_op(
    "ScaleAndTranslate",
    inputs="images: T, size: int32, scale: float, translation: float",
    outputs="resized_images: float",
    attrs=[PIXELS, *_HOW],
    static_inputs=("size",),
)
scale_and_translate_grad_op = register_op(
    "ScaleAndTranslateGrad",
    inputs="grads: T, original_image: T, scale: float, translation: float",
    outputs="output: T",
    attrs=["T: {float}", *_HOW],
)


@scale_and_translate_op.shape
def _(images, size, scale, translation):
    return resized_dims(images, size)


@scale_and_translate_grad_op.shape
def _(grads, original_image, scale, translation):
    return original_image.dims


def _lanczos(radius: float) -> Callable[[Any, Any], Any]:
    def kernel(xp: Any, x: Any) -> Any:
        angle = math.pi * xp.where(x == 0, 1.0, x)
        wave = radius * xp.sin(angle) * xp.sin(angle / radius) / (angle * angle)
        return xp.where(x > radius, 0.0, xp.where(x <= 1e-3, 1.0, wave))

    return kernel


def _gaussian(xp: Any, x: Any) -> Any:
    return xp.where(x >= 1.5, 0.0, xp.exp(-x * x / (2 * 0.5 * 0.5)))


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(0.0, 1.0 - x)


def _box(xp: Any, x: Any) -> Any:
    return xp.where(x < 0.5, 1.0, xp.where(x == 0.5, 0.5, 0.0))


def _keys(xp: Any, x: Any) -> Any:
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return xp.where(x >= 2.0, 0.0, xp.where(x >= 1.0, far, near))


def _mitchell(xp: Any, x: Any) -> Any:
    near = ((7.0 / 6.0 * x - 2.0) * x) * x + 8.0 / 9.0
    far = (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
    return xp.where(x >= 2.0, 0.0, xp.where(x >= 1.0, far, near))


_KERNELS: dict[bytes, tuple[float, Callable[[Any, Any], Any]]] = {
    b"lanczos1": (1.0, _lanczos(1.0)),
    b"lanczos3": (3.0, _lanczos(3.0)),
    b"lanczos5": (5.0, _lanczos(5.0)),
    b"gaussian": (1.5, _gaussian),
    b"box": (1.0, _box),
    b"triangle": (1.0, _triangle),
    b"keyscubic": (2.0, _keys),
    b"mitchellcubic": (2.0, _mitchell),
}


def _weights(
    xp: Any, size: int, count: int, scale: Any, translation: Any, kernel: Any, antialias: bool
) -> Any:
    """A matrix with the weights of ``size`` input pixels for each of ``count`` output pixels."""
    radius, function = kernel
    inverse = 1.0 / scale
    widening = xp.maximum(inverse, 1.0) if antialias else xp.ones_like(inverse)
    places = xp.arange(count, dtype=np.float32)
    samples = (places + 0.5) * inverse - translation * inverse
    pixels = xp.arange(size, dtype=np.float32)
    # The pixels that the kernel reaches, from their edges.
    first = xp.ceil(samples - radius * widening - 0.5)
    last = xp.floor(samples + radius * widening - 0.5)
    reached = (pixels >= first[:, None]) & (pixels <= last[:, None])
    distance = xp.abs(pixels + 0.5 - samples[:, None]) / widening
    weights = xp.where(reached, function(xp, distance), 0.0).astype(np.float32)
    total = xp.sum(weights, axis=1, keepdims=True)
    tiny = 1000 * np.finfo(np.float32).tiny
    weights = weights / xp.where(xp.abs(total) >= tiny, total, 1.0)
    inside = (samples >= 0) & (samples <= size)
    return xp.where(inside[:, None], weights, 0.0).astype(np.float32)


def _both(
    xp: Any,
    sizes: tuple[int, int],
    counts: tuple[int, int],
    scale: Any,
    translation: Any,
    kernel_type: Any,
    antialias: bool,
    check: Any,
) -> list[Any]:
    kernel = _KERNELS.get(encoded(kernel_type))
    if kernel is None:
        known = ", ".join(name.decode() for name in _KERNELS)
        raise InvalidArgumentError(
            None, None, f"Unknown kernel type {encoded(kernel_type)!r}; known are {known}"
        )
    if scale.shape != (2,) or translation.shape != (2,):
        raise InvalidArgumentError(
            None,
            None,
            "scale and translation must have two elements each, not the shapes "
            f"{list(scale.shape)} and {list(translation.shape)}",
        )
    check(xp.all(scale > 0), lambda: f"scale must be greater than zero, not {scale.tolist()}")
    return [
        _weights(xp, sizes[i], counts[i], scale[i], translation[i], kernel, antialias)
        for i in range(2)
    ]


@scale_and_translate_op.kernel
def _(xp, images, size, scale, translation, *, kernel_type, antialias, check):
    counts = require_pixels(images, size)
    sizes = images.shape[1:3]
    rows, columns = _both(xp, sizes, counts, scale, translation, kernel_type, antialias, check)
    return weighted(xp, as_float(images).astype(np.float32), rows, columns)


@scale_and_translate_grad_op.kernel
def _(xp, grads, original_image, scale, translation, *, kernel_type, antialias, check):
    sizes, counts = original_image.shape[1:3], grads.shape[1:3]
    rows, columns = _both(xp, sizes, counts, scale, translation, kernel_type, antialias, check)
    return weighted(xp, grads, rows.T, columns.T)


def _settings(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("kernel_type", "antialias")}


@scale_and_translate_op.gradient
def _(op, grad):
    image, _, scale, translation = op.inputs
    wide = cast(image, dtypes.float32)
    back = scale_and_translate_grad_op(grad, wide, scale, translation, **_settings(op))
    return [cast(back, image.dtype), None, None, None]
