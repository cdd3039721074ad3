"""Crops of images, borders around them, and resizing that keeps the proportions."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import expand_dims, reshape, squeeze
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.control import with_dependencies
from runnel.ops.image.resize import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
)
from runnel.ops.joining import stack
from runnel.ops.padding import pad
from runnel.ops.rounding import floor
from runnel.ops.rounding import round as rounded
from runnel.ops.slicing import slice as slice_of

_RANKS = "must have either 3 or 4 dimensions"


def as_batch(image: Any, name: str = "image") -> tuple[Tensor, bool]:
    """``image`` with a batch dimension, and whether it had one. Of unknown rank: it had none."""
    image = convert_to_tensor(image, name=name)
    if image.dims is None or len(image.dims) == 3:
        batch = expand_dims(image, 0)
        if image.dims is None:
            batch.set_shape([None] * 4)
        return batch, False
    if len(image.dims) != 4:
        raise ValueError(f"'{name}' (shape {format_dims(image.dims)}) {_RANKS}.")
    return image, True


def _unbatched(images: Tensor, had_batch: bool) -> Tensor:
    return images if had_batch else squeeze(images, axis=[0])


def dimension(images: Tensor, axis: int) -> Any:
    """The size along ``axis``: an integer where it is known, else a scalar tensor."""
    known = None if images.dims is None else images.dims[axis]
    return shape_of(images)[axis] if known is None else known


def _simple(value: Any) -> Any:
    """A size or place as an integer, where it is known while building."""
    if not isinstance(value, Tensor):
        return int(value)
    known = constant_value(value)
    return value if known is None else int(known)


def _require(image: Tensor, conditions: dict[str, Any]) -> Tensor:
    """``image`` if all ``conditions`` hold: at once where they are known, else in the step."""
    later = []
    for message, holds in conditions.items():
        if isinstance(holds, Tensor):
            later.append(Assert(holds, [message]))
        elif not holds:
            raise ValueError(f"{message}.")
    return with_dependencies(later, image) if later else image


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of ``image`` of the target size whose upper left corner is at the offsets."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        images, had_batch = as_batch(image)
        top, left, height, width = map(
            _simple, (offset_height, offset_width, target_height, target_width)
        )
        images = _require(
            images,
            {
                "offset_width must be >= 0": left >= 0,
                "offset_height must be >= 0": top >= 0,
                "target_width must be > 0": width > 0,
                "target_height must be > 0": height > 0,
                "width must be >= target + offset": dimension(images, 2) >= width + left,
                "height must be >= target + offset": dimension(images, 1) >= height + top,
            },
        )
        part = slice_of(images, stack([0, top, left, 0]), stack([-1, height, width, -1]))
        return _unbatched(_framed(part, images, height, width), had_batch)


def _framed(result: Tensor, images: Tensor, height: Any, width: Any) -> Tensor:
    """``result`` with what is known of the shape: the batch and the channels of ``images``."""
    batch, channels = (None, None) if images.dims is None else images.dims[::3]
    result.set_shape([batch, _known(height), _known(width), channels])
    return result


def _known(size: Any) -> int | None:
    return None if isinstance(size, Tensor) else size


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """``image`` at the offsets in a larger one of the target size; the rest is zeros."""
    with name_scope(None, "pad_to_bounding_box", [image]):
        images, had_batch = as_batch(image)
        top, left, height, width = map(
            _simple, (offset_height, offset_width, target_height, target_width)
        )
        below = height - top - dimension(images, 1)
        right = width - left - dimension(images, 2)
        images = _require(
            images,
            {
                "offset_height must be >= 0": top >= 0,
                "offset_width must be >= 0": left >= 0,
                "width must be <= target - offset": right >= 0,
                "height must be <= target - offset": below >= 0,
            },
        )
        borders = reshape(stack([0, 0, top, below, left, right, 0, 0]), [4, 2])
        padded = _framed(pad(images, borders), images, height, width)
        return _unbatched(padded, had_batch)


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of ``image``, ``central_fraction`` of each side."""
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        fraction = central_fraction
        if isinstance(fraction, Tensor):
            known = constant_value(fraction)
            fraction = fraction if known is None else float(known)
        if not isinstance(fraction, Tensor):
            if not 0 < fraction <= 1:
                raise ValueError("central_fraction must be within (0, 1]")
            if fraction == 1:
                return image
        if image.dims is None or len(image.dims) not in (3, 4):
            raise ValueError(
                "`image` should either be a Tensor with rank = 3 or rank = 4, not of shape "
                f"{format_dims(image.dims)}"
            )
        images, had_batch = as_batch(image)
        top, height = _middle(dimension(images, 1), fraction)
        left, width = _middle(dimension(images, 2), fraction)
        part = slice_of(images, stack([0, top, left, 0]), stack([-1, height, width, -1]))
        return _unbatched(_framed(part, images, height, width), had_batch)


def _middle(size: Any, fraction: Any) -> tuple[Any, Any]:
    """Where the middle of a side begins, and how long it is."""
    if isinstance(size, Tensor) or isinstance(fraction, Tensor):
        wide = cast(size, dtypes.float64)
        start: Any = cast((wide - wide * cast(fraction, dtypes.float64)) / 2, dtypes.int32)
    else:
        start = int((float(size) - float(size) * fraction) / 2)
    return start, size - start * 2


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """``image`` cropped in the middle, or with borders, to the target size."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        images, had_batch = as_batch(image)
        height, width = _simple(target_height), _simple(target_width)
        images = _require(
            images,
            {"target_width must be > 0": width > 0, "target_height must be > 0": height > 0},
        )
        rows, columns = dimension(images, 1), dimension(images, 2)
        cropped = crop_to_bounding_box(
            images,
            _larger((rows - height) // 2, 0),
            _larger((columns - width) // 2, 0),
            _smaller(height, rows),
            _smaller(width, columns),
        )
        top, left = _larger((height - rows) // 2, 0), _larger((width - columns) // 2, 0)
        return _unbatched(pad_to_bounding_box(cropped, top, left, height, width), had_batch)


def _larger(a: Any, b: Any) -> Any:
    return maximum(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else max(a, b)


def _smaller(a: Any, b: Any) -> Any:
    return minimum(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else min(a, b)


class ResizeMethod:
    """How :func:`resize_images` finds the pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_METHODS = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
    "bilinear": resize_bilinear,
    "nearest": resize_nearest_neighbor,
    "bicubic": resize_bicubic,
    "area": resize_area,
}


def resize_images(
    images: Any,
    size: Any,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images, or one, of ``size`` [height, width]; float32, unless by the nearest pixel.

    With ``preserve_aspect_ratio`` as large as fits into ``size``. Images that have the size
    already are given back as they are.

    Example:
        >>> tf.image.resize_images(image, [224, 224])
    """
    if method not in _METHODS:
        raise ValueError(f"Resize method is not implemented: {method}")
    with name_scope(name, "resize", [images, size]):
        given = convert_to_tensor(images, name="images")
        if given.dims is None:
            raise ValueError("'images' contains no shape.")
        batch, had_batch = as_batch(given, "images")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        if size.dims is not None and size.dims not in ((2,), (None,)):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        if preserve_aspect_ratio:
            size = _fitting(batch, size)
        known = constant_value_as_dims(size)
        assert batch.dims is not None
        if known is not None and None not in known and known == batch.dims[1:3]:
            return given
        return _unbatched(_METHODS[method](batch, size, align_corners=align_corners), had_batch)


def _fitting(images: Tensor, size: Tensor) -> Tensor:
    """The largest size within ``size`` that keeps the proportions."""
    sides = [cast(dimension(images, axis), dtypes.float32) for axis in (1, 2)]
    factor = minimum(
        cast(size[0], dtypes.float32) / sides[0], cast(size[1], dtypes.float32) / sides[1]
    )
    return stack([cast(rounded(factor * side), dtypes.int32) for side in sides])


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: int | str = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """``image`` as large as fits into the target size, with borders of zeros for the rest."""
    with name_scope(None, "resize_image_with_pad", [image]):
        images, had_batch = as_batch(image)
        height, width = _simple(target_height), _simple(target_width)
        images = _require(
            images,
            {"target_width must be > 0": width > 0, "target_height must be > 0": height > 0},
        )
        sides = [cast(dimension(images, axis), dtypes.float32) for axis in (1, 2)]
        targets = [cast(side, dtypes.float32) for side in (height, width)]
        ratio = maximum(sides[1] / targets[1], sides[0] / targets[0])
        wanted = [side / ratio for side in sides]
        size = stack([cast(floor(side), dtypes.int32) for side in wanted])
        top, left = (
            maximum(0, cast(floor((target - side) / 2), dtypes.int32))
            for target, side in zip(targets, wanted, strict=True)
        )
        resized = resize_images(images, size, method, align_corners)
        return _unbatched(pad_to_bounding_box(resized, top, left, height, width), had_batch)
