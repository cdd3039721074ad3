"""``tf.linalg.expm``: exponentials of matrices, squared in a loop."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from runnel.control_flow.loop import while_loop
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape, shape
from runnel.ops.casting import cast
from runnel.ops.comparison import less
from runnel.ops.constants import constant
from runnel.ops.diagonal import eye
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import exp, log
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import matrix_solve
from runnel.ops.matmul import matmul
from runnel.ops.reduce_functions import reduce_max, reduce_sum
from runnel.ops.rounding import ceil
from runnel.ops.selection import where_v2


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The exponential of each matrix: the sum of ``A^n / n!``.

    Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): a
    quotient of polynomials for a fraction of the matrix, which is then squared.

    Example:
        >>> tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]])  # [[1, 1], [0, 1]]
    """
    with name_scope(name, "matrix_exponential", [input]):
        matrix = convert_to_tensor(input, name="input")
        real_type = matrix.dtype.real_dtype
        double = real_type.size == 8
        # Up to this norm the quotient of that degree is exact to the type's last digit.
        degree, reach = (13, 5.371920351148152) if double else (7, 3.925724783138660)
        size = reduce_max(reduce_sum(absolute(matrix), -2, keepdims=True), -1, keepdims=True)
        least = constant(reach, real_type)
        halvings = ceil(log(where_v2(size > least, size, least) / least) / float(np.log(2.0)))
        scale = exp(halvings * float(-np.log(2.0)))
        result = _quotient(matrix * cast(scale, matrix.dtype), degree)
        most = reduce_max(concat([reshape(halvings, [-1]), constant([0], real_type)], 0))

        def squared(done: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return done + 1, where_v2(less(done, halvings), matmul(x, x), x)

        _, result = while_loop(
            lambda done, _: less(done, most), squared, (constant(0, real_type), result)
        )
        result.set_shape(matrix.shape)
        return result


def _quotient(x: Tensor, degree: int) -> Tensor:
    """Padé's approximation of the exponential of ``x``, of an odd ``degree``."""
    even = eye(shape(x)[-1], batch_shape=shape(x)[:-2], dtype=x.dtype)
    square = matmul(x, x)
    odd_part: Any = 0.0
    even_part: Any = 0.0
    for k in range(0, degree, 2):
        even_part = even_part + even * _coefficient(k, degree)
        odd_part = odd_part + even * _coefficient(k + 1, degree)
        if k + 1 < degree:
            even = matmul(even, square)
    odd = matmul(x, odd_part)
    return matrix_solve(even_part - odd, even_part + odd)


def _coefficient(k: int, degree: int) -> float:
    """The one of ``x ** k``; that of 1 is 1."""
    above = factorial(2 * degree - k) * factorial(degree)
    return above / (factorial(2 * degree) * factorial(k) * factorial(degree - k))
