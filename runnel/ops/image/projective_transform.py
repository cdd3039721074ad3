"""Images seen through projective transforms."""

from __future__ import annotations

import numpy as np

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import ones
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import matrix_inverse
from runnel.ops.strings.texts import encoded

projective_transform_op = register_op(
    "ImageProjectiveTransformV2",
    inputs="images: dtype, transforms: float, output_shape: int32",
    outputs="transformed_images: dtype",
    attrs=[
        "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
        "interpolation: string",
        "fill_mode: string = 'CONSTANT'",
    ],
    static_inputs=("output_shape",),
)


@projective_transform_op.shape
def _(images, transforms, output_shape):
    if images.dims is not None and len(images.dims) != 4:
        raise ValueError(f"images must have rank 4, not shape {format_dims(images.dims)}")
    known = constant_value_as_dims(output_shape)
    height, width = (None, None) if known is None or len(known) != 2 else known
    batch, _, _, channels = images.dims or (None,) * 4
    return (batch, height, width, channels)


@projective_transform_op.kernel
def _(xp, images, transforms, output_shape, *, interpolation, fill_mode):
    if encoded(fill_mode) != b"CONSTANT":
        raise InvalidArgumentError(None, None, f"fill_mode must be CONSTANT, not {fill_mode!r}")
    if transforms.shape not in ((1, 8), (len(images), 8)):
        raise InvalidArgumentError(
            None,
            None,
            f"transforms must be of shape [1, 8] or [{len(images)}, 8], not "
            f"{list(transforms.shape)}",
        )
    height, width = output_shape.tolist()
    y, x = xp.meshgrid(
        xp.arange(height, dtype=np.float32), xp.arange(width, dtype=np.float32), indexing="ij"
    )
    a0, a1, a2, b0, b1, b2, c0, c1 = (transforms[:, i, None, None] for i in range(8))
    scale = c0 * x + c1 * y + 1
    safe = xp.where(scale == 0, np.float32(1), scale)
    # A point at infinity is outside.
    from_x = xp.where(scale == 0, np.float32(-9), (a0 * x + a1 * y + a2) / safe)
    from_y = xp.where(scale == 0, np.float32(-9), (b0 * x + b1 * y + b2) / safe)

    def read(rows, columns):
        rows_there = (rows >= 0) & (rows < images.shape[1])
        there = rows_there & (columns >= 0) & (columns < images.shape[2])
        row = xp.clip(rows, 0, images.shape[1] - 1).astype(np.int32)
        column = xp.clip(columns, 0, images.shape[2] - 1).astype(np.int32)
        of = xp.arange(len(images))[:, None, None]
        return xp.where(there[..., None], images[of, row, column], images.dtype.type(0))

    how = encoded(interpolation)
    if how == b"NEAREST":
        return read(_rounded(xp, from_y), _rounded(xp, from_x))
    if how != b"BILINEAR":
        raise InvalidArgumentError(
            None, None, f"interpolation must be NEAREST or BILINEAR, not {interpolation!r}"
        )
    wide = np.float64 if images.dtype == np.float64 else np.float32
    top, left = xp.floor(from_y), xp.floor(from_x)
    down, right = (from_y - top)[..., None], (from_x - left)[..., None]
    upper, lower = (
        (1 - right) * read(row, left).astype(wide) + right * read(row, left + 1).astype(wide)
        for row in (top, top + 1)
    )
    return ((1 - down) * upper + down * lower).astype(images.dtype)


def _rounded(xp, places):
    """To the nearest, halves away from zero."""
    return xp.sign(places) * xp.floor(xp.abs(places) + np.float32(0.5))


@projective_transform_op.gradient
def _(op, grad):
    # As TensorFlow has it: the gradient, seen through the inverse, and none of the transforms.
    images, transforms, _ = op.inputs
    inverse = matrices_to_flat_transforms(matrix_inverse(flat_transforms_to_matrices(transforms)))
    size = shape_of(images)[1:3]
    return [
        projective_transform_op(grad, inverse, size, interpolation=op.attrs["interpolation"]),
        None,
        None,
    ]


def flat_transforms_to_matrices(transforms):
    """Transforms of 8 numbers as matrices [..., 3, 3], whose last number is 1."""
    flat = reshape(transforms, [-1, 8])
    return reshape(concat([flat, ones([shape_of(flat)[0], 1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices):
    """Matrices [..., 3, 3] as transforms of 8 numbers: all but the last, divided by it."""
    flat = reshape(transform_matrices, [-1, 9])
    return (flat / flat[:, 8:9])[:, :8]
