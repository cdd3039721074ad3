"""Images seen through a flow: each pixel comes from a place of its own."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.broadcasting import meshgrid
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.ops.joining import stack
from runnel.ops.ranges import range as range_
from runnel.ops.rounding import floor
from runnel.ops.splitting import unstack


def interpolate_bilinear(
    grid: Any, query_points: Any, name: str = "interpolate_bilinear", indexing: str = "ij"
) -> Tensor:
    """The values of ``grid`` [batch, height, width, channels] at places [batch, count, 2].

    They are weighted means of the four pixels around each place; beyond the edge, of those there.
    ``indexing="xy"`` says that the places are columns and rows, and not rows and columns.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError("Indexing mode must be 'ij' or 'xy'")
    with name_scope(name):
        pixels, places = convert_to_tensor(grid), convert_to_tensor(query_points)
        if pixels.shape.rank != 4:
            raise ValueError("Grid must be 4 dimensional. Received size: " + str(pixels.shape))
        if places.shape.rank != 3:
            raise ValueError(
                "Query points must be 3 dimensional. Received size: " + str(places.shape)
            )
        batch, height, width, depth = unstack(shape(pixels))
        kind = places.dtype.base_dtype
        axes = unstack(places, axis=2, num=2)
        befores, shares = [], []
        for place, size in zip(
            axes if indexing == "ij" else axes[::-1], (height, width), strict=True
        ):
            # A pixel has a neighbour behind it, also at the edge.
            last = cast(size - 2, kind)
            before = minimum(maximum(0.0, floor(place)), last)
            befores.append(cast(before, int32))
            share = minimum(maximum(0.0, place - before), 1.0)  # no gradient on a pixel
            shares.append(expand_dims(cast(share, pixels.dtype.base_dtype), 2))
        rows, columns = befores
        flat = reshape(pixels, stack([batch * height * width, depth]))
        start = expand_dims(range_(batch) * height * width, 1)

        def at(down: int, right: int) -> Tensor:
            return gather(flat, start + (rows + down) * width + columns + right)

        upper = shares[1] * (at(0, 1) - at(0, 0)) + at(0, 0)
        lower = shares[1] * (at(1, 1) - at(1, 0)) + at(1, 0)
        return shares[0] * (lower - upper) + upper


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Tensor:
    """Each pixel of the result comes from its own place less its vector in ``flow``.

    ``image`` is [batch, height, width, channels], ``flow`` [batch, height, width, 2]: how many rows
    and columns. Values between pixels are interpolated, and both have gradients.

    Example:
        >>> moved = tf.contrib.image.dense_image_warp(frame, flow)
    """
    with name_scope(name):
        pixels, vectors = convert_to_tensor(image), convert_to_tensor(flow)
        batch, height, width, _ = unstack(shape(pixels))
        columns, rows = meshgrid(range_(width), range_(height))
        grid = cast(stack([rows, columns], axis=2), vectors.dtype.base_dtype)
        places = reshape(expand_dims(grid, 0) - vectors, stack([batch, height * width, 2]))
        found = reshape(interpolate_bilinear(pixels, places), shape(pixels))
        found.set_shape(pixels.shape)
        return found
