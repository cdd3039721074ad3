"""Images turned and mirrored."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, less
from runnel.ops.division import floormod
from runnel.ops.joining import concat
from runnel.ops.reversal import reverse, reverse_v1_op
from runnel.ops.rounding import round as rounded
from runnel.ops.sampling.random import random_uniform
from runnel.ops.selection import where
from runnel.ops.transposition import transpose as permute


def _image(image: Any) -> Tensor:
    image = convert_to_tensor(image, name="image")
    if image.dims is not None and len(image.dims) not in (3, 4):
        raise ValueError(
            f"'image' (shape {format_dims(image.dims)}) must have either 3 or 4 dimensions."
        )
    return image


def flip_left_right(image: Any) -> Tensor:
    """``image``, or images, mirrored: left and right are exchanged."""
    with name_scope(None, "flip_left_right", [image]):
        return reverse(_image(image), [-2])


def flip_up_down(image: Any) -> Tensor:
    """``image``, or images, upside down."""
    with name_scope(None, "flip_up_down", [image]):
        return reverse(_image(image), [-3])


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """``image`` mirrored in half of the steps; of several images, each by its own draw."""
    return _random_flip(image, -2, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """``image`` upside down in half of the steps; of several images, each by its own draw."""
    return _random_flip(image, -3, seed, "random_flip_up_down")


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with name_scope(None, name, [image]):
        image = _image(image)
        flipped = reverse(image, [axis])
        if image.dims is None or len(image.dims) == 3:
            return where(less(random_uniform([], 0, 1.0, seed=seed), 0.5), flipped, image)
        batch = shape_of(image)[:1]
        drawn = rounded(random_uniform(batch, 0, 1.0, seed=seed))
        flips: Any = cast(reshape(drawn, concat([batch, [1, 1, 1]], 0)), image.dtype)
        return flips * flipped + (1 - flips) * image


def transpose(image: Any, name: str | None = None) -> Tensor:
    """``image``, or images, with rows and columns exchanged."""
    with name_scope(name, "transpose", [image]) as scope:
        image = _image(image)
        return permute(image, _exchanged(image), name=scope)


def _exchanged(image: Tensor) -> list[int]:
    """The permutation that exchanges rows and columns; of unknown rank: it is one image."""
    return [0, 2, 1, 3] if image.dims is not None and len(image.dims) == 4 else [1, 0, 2]


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """``image``, or images, turned ``k`` times by 90 degrees against the clock."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = _image(image)
        turns = convert_to_tensor(k, dtypes.int32, name="k")
        if turns.dims:
            raise ValueError(f"k must be a scalar, not of shape {format_dims(turns.dims)}")
        known = constant_value(turns)
        if known is None:
            return _turned(image, floormod(turns, 4), scope)
        count = int(known) % 4
        if count % 2:
            image = permute(image, _exchanged(image))
        axes = [axis for axis, turned in ((-3, (1, 2)), (-2, (2, 3))) if count in turned]
        return reverse(image, axes, name=scope)


def _turned(image: Tensor, turns: Tensor, name: str) -> Tensor:
    """``image`` turned as often as the step says: exchanged, then mirrored along some axes."""
    dims, exchanged = image.dims, _exchanged(image)
    batched = len(exchanged) == 4
    odd = equal(floormod(turns, 2), 1)
    image = permute(image, where(odd, exchanged, sorted(exchanged)))
    rows = equal(turns, 1) | equal(turns, 2)
    columns = equal(turns, 2) | equal(turns, 3)
    none = [False]
    axes = [reshape(rows, [1]), reshape(columns, [1]), none]
    result = reverse_v1_op(image, concat([none, *axes] if batched else axes, 0), name=name)
    if dims is not None:
        result.set_shape([*dims[:-3], None, None, dims[-1]])
    return result
