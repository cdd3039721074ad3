"""Vectors as triangular matrices, and the other way round, in TensorFlow's order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.distributions.scalar_family import parameter
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape, shape
from runnel.ops.band import matrix_band_part
from runnel.ops.diagonal import matrix_diag_part, matrix_set_diag
from runnel.ops.elementwise import expm1, log
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.reversal import reverse


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """A vector as a triangular matrix, filled in a spiral that needs no gather.

    Example:
        >>> tf.contrib.distributions.fill_triangular([1, 2, 3, 4, 5, 6])  # [[4, 0, 0],
        ...                                                               #  [6, 5, 0],
        ...                                                               #  [3, 2, 1]]
    """
    with name_scope(name, "fill_triangular", [x]):
        given = parameter(x)
        count = given.shape[-1].value
        if count is None:
            raise ValueError("The length of the vector must be known.")
        edge = (math.isqrt(8 * count + 1) - 1) // 2
        if edge * (edge + 1) // 2 != count:
            raise ValueError(
                f"Input right-most shape ({count}) does not correspond to a triangular matrix."
            )
        if upper:
            parts = [given, reverse(given[..., edge:], [-1])]
        else:
            parts = [given[..., edge:], reverse(given, [-1])]
        square = reshape(concat(parts, -1), concat([shape(given)[:-1], [edge, edge]], 0))
        found = matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        found.set_shape(given.shape[:-1].concatenate([edge, edge]))
        return found


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """The vector of which :func:`fill_triangular` makes ``x``."""
    with name_scope(name, "fill_triangular_inverse", [x]):
        given = parameter(x)
        edge = given.shape[-1].value
        if edge is None:
            raise ValueError("The size of the matrix must be known.")
        count = edge * (edge + 1) // 2
        numbers = np.arange(count)
        parts = [numbers, numbers[edge:][::-1]] if upper else [numbers[edge:], numbers[::-1]]
        filled = np.concatenate(parts)
        inside = np.triu(np.ones([edge, edge])) if upper else np.tril(np.ones([edge, edge]))
        places = np.flatnonzero(inside)
        order = places[np.argsort(filled[places])]
        flat = reshape(given, concat([shape(given)[:-2], [edge * edge]], 0))
        return gather(flat, order, axis=-1)


def matrix_diag_transform(
    matrix: Any, transform: Callable[[Tensor], Tensor] | None = None, name: str | None = None
) -> Tensor:
    """The matrices with ``transform`` of their diagonals."""
    with name_scope(name, "matrix_diag_transform", [matrix]):
        given = parameter(matrix)
        if transform is None:
            return given
        return matrix_set_diag(given, transform(matrix_diag_part(given)))


def softplus_inverse(x: Any, name: str | None = None) -> Tensor:
    """The number whose softplus is ``x``."""
    with name_scope(name, "softplus_inverse", [x]):
        given = parameter(x)
        return given + log(-expm1(-given))
