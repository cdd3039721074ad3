"""Drawing small images at a larger size."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERPOLATIONS = ("bilinear", "nearest")


def enlarge(pixels: NDArray[Any], size: int, interpolation: str = "bilinear") -> NDArray[Any]:
    """Draw `pixels`, [examples, rows, columns], with `size` rows and columns.

    Pixel centres keep their place (half-pixel alignment) and the border continues outwards.
    "bilinear" rounds for integer pixels, so that values stay within the original range and type.
    """
    if interpolation not in INTERPOLATIONS:
        raise ValueError(
            f"interpolation is {interpolation!r}; it must be one of {', '.join(INTERPOLATIONS)}"
        )
    drawn = pixels
    for axis in (1, 2):
        drawn = _enlarge_axis(drawn, axis, size, interpolation)
    if interpolation == "bilinear" and np.issubdtype(pixels.dtype, np.integer):
        drawn = np.rint(drawn)
    return drawn.astype(pixels.dtype)


def _enlarge_axis(pixels: NDArray[Any], axis: int, size: int, interpolation: str) -> NDArray[Any]:
    length = pixels.shape[axis]
    if interpolation == "nearest":
        return pixels.take((2 * np.arange(size) + 1) * length // (2 * size), axis)
    position = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
    before = np.floor(position).astype(np.intp)
    after = np.minimum(before + 1, length - 1)
    weight = np.expand_dims(position - before, axis=1 if axis == 1 else 0)
    return pixels.take(before, axis) * (1 - weight) + pixels.take(after, axis) * weight


def centre_in_frame(pixels: NDArray[Any], size: int) -> NDArray[Any]:
    """Surround `pixels`, [examples, rows, columns], with zeros up to `size` rows and columns."""
    margins = [((size - extent) // 2, (size - extent + 1) // 2) for extent in pixels.shape[1:]]
    return np.pad(pixels, [(0, 0), *margins])
