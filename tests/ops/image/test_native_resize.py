"""Resizing by native code gives what the arrays' operations give."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.native.input_library import input_library
from runnel.ops.image.native_resize import resized_natively
from runnel.ops.image.pixel_grid import PixelGrid
from runnel.ops.image.resize import _between

pytestmark = pytest.mark.skipif(input_library() is None, reason="needs a C++ compiler")
SIZES = [(1, 1), (2, 5), (7, 3), (9, 9), (30, 13)]


@pytest.mark.parametrize("how", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_of_every_size_are_resized_to_the_bit_as_by_arrays(dtype, how):
    random = np.random.default_rng(0)
    for height, width in SIZES:
        for channels in (1, 3, 5):
            images = (random.random((2, height, width, channels)) * 255).astype(dtype)
            for count, wide in SIZES:
                rows, columns = PixelGrid(height, count, *how), PixelGrid(width, wide, *how)
                by_rows = _between(np, _between(np, images, rows, 1), columns, 2)
                by_columns = _between(np, _between(np, images, columns, 2), rows, 1)
                assert np.array_equal(resized_natively(images, rows, columns, True), by_rows)
                assert np.array_equal(resized_natively(images, rows, columns, False), by_columns)


def test_parts_of_larger_images_are_resized():
    whole = np.arange(2 * 8 * 9 * 4, dtype=np.float32).reshape(2, 8, 9, 4)
    part = whole[:, ::2, 1:6, :3]
    grids = PixelGrid(4, 3), PixelGrid(5, 7)
    found = resized_natively(part, *grids, True)
    assert np.array_equal(found, resized_natively(part.copy(), *grids, True))


def test_other_types_and_no_images_are_left_to_arrays():
    grid = PixelGrid(4, 3)
    for images in (np.zeros((1, 4, 4, 1)), np.zeros((0, 4, 4, 1), np.uint8)):
        assert resized_natively(images, grid, grid, True) is None
