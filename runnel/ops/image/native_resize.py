"""Resizing between pixels by native code, where that is there."""

from __future__ import annotations

import functools

import numpy as np

from runnel.native.input_library import address, input_library
from runnel.ops.image.pixel_grid import PixelGrid


def resized_natively(
    images: np.ndarray, rows: PixelGrid, columns: PixelGrid, rows_first: bool
) -> np.ndarray | None:
    """``images`` with their rows and columns resized; None where this cannot be done here."""
    library = input_library()
    if library is None or images.dtype not in (np.uint8, np.float32) or not images.size:
        return None
    batch, height, width, channels = images.shape
    given = np.ascontiguousarray(images)
    out = np.empty((batch, rows.count, columns.count, channels), np.float32)
    library.runnel_resize_bilinear(
        given.ctypes.data,
        given.dtype == np.uint8,
        *(batch, height, width, channels),
        *_axis(rows)[0],
        *_axis(columns)[0],
        rows_first,
        address(out),
    )
    return out


@functools.lru_cache(64)
def _axis(grid: PixelGrid) -> tuple[tuple[int, ...], tuple[np.ndarray, ...]]:
    """Where the places and shares of an axis are and how many, and these themselves."""
    arrays = grid.neighbours()
    return (*map(address, arrays), grid.count), arrays
