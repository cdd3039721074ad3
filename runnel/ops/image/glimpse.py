"""Windows of images at given places; what lies outside of an image is noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.ops.image.resize import resized_dims
from runnel.ops.strings.texts import encoded


def _glimpse_op(name: str) -> OpDef:
    op_def = register_op(
        name,
        inputs="input: float, size: int32, offsets: float",
        outputs="glimpse: float",
        attrs=[
            "centered: bool = true",
            "normalized: bool = true",
            "uniform_noise: bool = true",
            "noise: string = 'uniform'",
        ],
        host=True,
        differentiable=False,
    )
    op_def.shape(lambda images, size, offsets: resized_dims(images, size))
    return op_def


glimpse_op = _glimpse_op("ExtractGlimpse")
glimpse_v2_op = _glimpse_op("ExtractGlimpseV2")


def _kind(noise: Any, uniform: bool) -> str:
    kind = encoded(noise).decode()
    if uniform and kind not in ("", "uniform"):
        raise InvalidArgumentError(
            None, None, "The uniform_noise and noise could not be specified at the same time"
        )
    if not kind:
        return "uniform" if uniform else "gaussian"
    if kind not in ("uniform", "gaussian", "zero"):
        raise InvalidArgumentError(
            None, None, f"The noise could only be uniform, gaussian, or zero, got {kind}"
        )
    return kind


def _filled(image: np.ndarray, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """A window of noise like the pixels of ``image``."""
    if kind == "zero":
        return np.zeros(shape, np.float32)
    rng = np.random.default_rng()
    low, high = image.min(axis=(0, 1)), image.max(axis=(0, 1))
    if kind == "uniform":
        span = image.max() - image.min()
        return (image.min() + rng.random(shape, np.float32) * span).astype(np.float32)
    drawn = rng.standard_normal(shape, np.float32) * image.std(axis=(0, 1)) + image.mean(
        axis=(0, 1)
    )
    return np.clip(drawn, low, high).astype(np.float32)


def _start(offset: Any, size: int, count: int, centered: bool, normalized: bool, v2: bool) -> int:
    """Where a window of ``count`` pixels begins along an axis of ``size``."""
    place = np.float32(offset)
    half, middle = np.float32(count) / np.float32(2), np.float32(size) / np.float32(2)
    if normalized:
        place = place * np.float32(size)
    if not v2:
        return int((place / np.float32(2) + middle if centered else place) - half)
    if centered and normalized:
        place = place / np.float32(2) + middle - half
    elif centered:
        place = place + middle
    return int(place)  # towards zero


def _glimpses(
    images: Any, size: Any, offsets: Any, centered: bool, normalized: bool, kind: str, v2: bool
) -> np.ndarray:
    if images.ndim != 4 or size.shape != (2,) or offsets.shape != (images.shape[0], 2):
        raise InvalidArgumentError(
            None,
            None,
            "input must be [batch, height, width, depth], size [height, width] and offsets "
            f"[batch, 2], not {list(images.shape)}, {list(size.shape)}, {list(offsets.shape)}",
        )
    height, width = size.tolist()
    if height < 0 or width < 0:
        raise InvalidArgumentError(None, None, f"size must not be negative, but is {size.tolist()}")
    out = np.empty((images.shape[0], height, width, images.shape[3]), np.float32)
    for i, image in enumerate(images):
        rows, columns = image.shape[:2]
        top = _start(offsets[i, 0], rows, height, centered, normalized, v2)
        left = _start(offsets[i, 1], columns, width, centered, normalized, v2)
        first_row, last_row = max(top, 0), min(top + height, rows)
        first, last = max(left, 0), min(left + width, columns)
        if (first_row, last_row, first, last) != (top, top + height, left, left + width):
            out[i] = _filled(image, out.shape[1:], kind)
        if first_row < last_row and first < last:
            part = image[first_row:last_row, first:last]
            out[i, first_row - top : last_row - top, first - left : last - left] = part
    return out


@glimpse_op.kernel
def _(xp, images, size, offsets, *, centered, normalized, uniform_noise, noise):
    kind = _kind(noise, uniform_noise)
    return _glimpses(images, size, offsets, centered, normalized, kind, False)


@glimpse_v2_op.kernel
def _(xp, images, size, offsets, *, centered, normalized, uniform_noise, noise):
    kind = _kind(noise, uniform_noise)
    return _glimpses(images, size, offsets, centered, normalized, kind, True)


def extract_glimpse(
    input: Any,  # noqa: A002 (TensorFlow's name)
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """A window of ``size`` of each image, where ``offsets`` [y, x] say.

    ``normalized`` offsets are parts of the image's sides, others are pixels; ``centered`` ones
    count from the middle. What lies outside of the image is noise.
    """
    return glimpse_op(
        input,
        size,
        offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=uniform_noise,
        noise="uniform" if uniform_noise else "gaussian",
        name=name,
    )
