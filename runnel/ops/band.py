"""Triangles and bands of matrices, and diagonals of tensors of any even rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import format_dims, merge_dims

band_part_op = register_op(
    "MatrixBandPart",
    inputs="input: T, num_lower: Tindex, num_upper: Tindex",
    outputs="band: T",
    attrs=["T: type", "Tindex: {int32, int64} = DT_INT64"],
)
band_part_op.shape(unchanged)


@band_part_op.kernel
def _(xp, x, num_lower, num_upper, *, check):
    if x.ndim < 2:
        raise InvalidArgumentError(
            None, None, f"input must be at least a matrix, not of shape {format_dims(x.shape)}"
        )
    rows, columns = x.shape[-2:]
    check(
        num_lower <= rows,
        lambda: f"num_lower must be negative or at most {rows}, the rows, not {num_lower}",
    )
    check(
        num_upper <= columns,
        lambda: f"num_upper must be negative or at most {columns}, the columns, not {num_upper}",
    )
    below = xp.arange(rows)[:, None] - xp.arange(columns)[None, :]
    inside = ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (-below <= num_upper))
    return xp.where(inside, x, xp.zeros((), x.dtype))


@band_part_op.gradient
def _(op, grad):
    return [band_part_op(grad, *op.inputs[1:]), None, None]


def matrix_band_part(
    input: Any,  # noqa: A002
    num_lower: Any,
    num_upper: Any,
    name: str | None = None,
) -> Tensor:
    """Matrices with zeros outside ``num_lower`` diagonals below and ``num_upper`` above the main.

    A negative number keeps the whole triangle: ``matrix_band_part(x, -1, 0)`` is the lower one.

    Example:
        >>> tf.matrix_band_part([[1, 2], [3, 4]], -1, 0)  # [[1, 0], [3, 4]]
    """
    return band_part_op(input, num_lower, num_upper, name=name)


_TYPES = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
diag_op = register_op("Diag", inputs="diagonal: T", outputs="output: T", attrs=_TYPES)
diag_part_op = register_op("DiagPart", inputs="input: T", outputs="diagonal: T", attrs=_TYPES)


@diag_op.shape
def _(diagonal):
    return None if diagonal.dims is None else diagonal.dims * 2


@diag_op.kernel
def _(xp, diagonal):
    flat = diagonal.reshape(-1)
    matrix = xp.where(np.eye(flat.shape[0], dtype=bool), flat, xp.zeros((), diagonal.dtype))
    return matrix.reshape(diagonal.shape * 2)


@diag_op.gradient
def _(op, grad):
    return diag_part(grad)


@diag_part_op.shape
def _(x):
    if x.dims is None:
        return None
    half, odd = divmod(len(x.dims), 2)
    if odd or not x.dims:
        raise ValueError(f"input must have an even rank, at least 2, not {len(x.dims)}")
    return merge_dims(x.dims[:half], x.dims[half:])


@diag_part_op.kernel
def _(xp, x):
    lead = x.shape[: x.ndim // 2]
    if x.shape != lead * 2:
        raise InvalidArgumentError(
            None, None, f"The two halves of the shape {format_dims(x.shape)} must be equal"
        )
    count = int(np.prod(lead, dtype=np.int64))
    return xp.diagonal(x.reshape((count, count))).reshape(lead)


@diag_part_op.gradient
def _(op, grad):
    return diag(grad)


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with ``diagonal`` on its diagonal and zeros elsewhere.

    Example:
        >>> tf.diag([1, 2])  # [[1, 0], [0, 2]]
    """
    return diag_op(diagonal, name=name)


def diag_part(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The diagonal of a tensor of even rank: ``input[i, ..., k, i, ..., k]``.

    Example:
        >>> tf.diag_part([[1, 2], [3, 4]])  # [1, 4]
    """
    return diag_part_op(input, name=name)
