"""``tf.contrib.image``: rotating, moving and otherwise transforming images."""

from __future__ import annotations

from typing import Any

from runnel.contrib.image.dense_warp import dense_image_warp
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, int32
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.image import projective_transform as _projective
from runnel.ops.image.bipartite_match import bipartite_match
from runnel.ops.joining import stack
from runnel.ops.matmul import matmul
from runnel.ops.trigonometry import cos, sin

__all__ = [
    "angles_to_projective_transforms",
    "bipartite_match",
    "compose_transforms",
    "dense_image_warp",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Each image seen through its projective transform.

    ``images`` are of shape [batch, height, width, channels], or one [height, width, channels] or
    [height, width]. A transform ``[a0, a1, a2, b0, b1, b2, c0, c1]`` maps a place (x, y) of the
    output to the place ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`` of the input, where
    ``k = c0 x + c1 y + 1``; outside the input is zero. There is one for each image, or one for all.

    Example:
        >>> shifted = tf.contrib.image.transform(images, [1, 0, 2, 0, 1, 0, 0, 0])
    """
    given = convert_to_tensor(images, name="images")
    batch = _as_batch(given)
    transforms = convert_to_tensor(transforms, float32, name="transforms")
    if transforms.shape.ndims not in (1, 2):
        raise TypeError("Transforms should have rank 1 or 2.")
    flat = expand_dims(transforms, 0) if transforms.shape.ndims == 1 else transforms
    size = shape_of(batch)[1:3] if output_shape is None else output_shape
    found = _projective.projective_transform_op(
        batch,
        flat,
        convert_to_tensor(size, int32),
        interpolation=interpolation.upper(),
        name=name,
    )
    return _like(given, found)


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Each image turned about its centre by its angle, in radians, against the clock.

    Example:
        >>> turned = tf.contrib.image.rotate(images, tf.random_uniform([32], -0.3, 0.3))
    """
    given = convert_to_tensor(images)
    size = cast(shape_of(_as_batch(given)), float32)
    turns = angles_to_projective_transforms(angles, size[1:2], size[2:3])
    return transform(given, turns, interpolation, name=name)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Each image moved by its (dx, dy)."""
    moves = translations_to_projective_transforms(translations)
    return transform(images, moves, interpolation, name=name)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """The transforms that turn images of that size about their centres."""
    angles = convert_to_tensor(angles, float32, name="angles")
    if angles.shape.ndims not in (0, 1):
        raise TypeError("Angles should have rank 0 or 1.")
    angles = expand_dims(angles, 0) if angles.shape.ndims == 0 else angles
    right, down = image_width - 1, image_height - 1
    c, s = cos(angles), sin(angles)
    dx, dy = (right - (c * right - s * down)) / 2.0, (down - (s * right + c * down)) / 2.0
    none = zeros_like(c)
    return stack([c, -s, dx, s, c, dy, none, none], axis=1, name=name or "turns")


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Tensor:
    """The transforms that move images by (dx, dy)."""
    moves = convert_to_tensor(translations, float32, name="translations")
    if moves.shape.ndims not in (1, 2):
        raise TypeError("Translations should have rank 1 or 2.")
    moves = expand_dims(moves, 0) if moves.shape.ndims == 1 else moves
    dx, dy = moves[:, 0], moves[:, 1]
    one, none = ones_like(dx), zeros_like(dx)
    return stack([one, none, -dx, none, one, -dy, none, none], axis=1, name=name or "moves")


def compose_transforms(*transforms: Any) -> Tensor:
    """One transform that does the same as all, the first one last.

    Example:
        >>> both = tf.contrib.image.compose_transforms(turns, moves)
    """
    if not transforms:
        raise ValueError("transforms cannot be empty")
    composed = flat_transforms_to_matrices(transforms[0])
    for other in transforms[1:]:
        composed = matmul(composed, flat_transforms_to_matrices(other))
    return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Transforms of 8 numbers as matrices of shape [transforms, 3, 3], whose last number is 1."""
    transforms = convert_to_tensor(transforms, name="transforms")
    if transforms.shape.ndims not in (1, 2):
        raise ValueError(f"Transforms should be 1D or 2D, got: {transforms}")
    found: Tensor = _projective.flat_transforms_to_matrices(transforms)
    return found


def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """Matrices [..., 3, 3] as transforms of 8 numbers: all but the last, divided by it."""
    matrices = convert_to_tensor(transform_matrices, name="transform_matrices")
    if matrices.shape.ndims not in (2, 3):
        raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
    found: Tensor = _projective.matrices_to_flat_transforms(matrices)
    return found


def _as_batch(images: Tensor) -> Tensor:
    rank = images.shape.ndims
    if rank not in (2, 3, 4):
        raise TypeError("Images should have rank between 2 and 4.")
    if rank == 2:
        images = expand_dims(images, 2)
    return images if rank == 4 else expand_dims(images, 0)


def _like(given: Tensor, batch: Tensor) -> Tensor:
    rank = given.shape.ndims
    if rank == 4:
        return batch
    return batch[0] if rank == 3 else batch[0, :, :, 0]


def __dir__() -> list[str]:
    return __all__
