"""Bijectors of triangular matrices."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.bijectors.bijector import Bijector, no_change
from runnel.distributions.bijectors.composition import Chain
from runnel.distributions.bijectors.elementwise import AffineScalar, Softplus
from runnel.distributions.triangular import fill_triangular, fill_triangular_inverse
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape
from runnel.ops.band import matrix_band_part
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.diagonal import eye, matrix_diag_part, matrix_set_diag
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import cholesky, matrix_triangular_solve
from runnel.ops.matmul import matmul
from runnel.ops.ranges import range as range_
from runnel.ops.reduce_functions import reduce_sum


class FillTriangular(Bijector):
    """A vector as a triangular matrix."""

    def __init__(
        self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular"
    ) -> None:
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            inverse_min_event_ndims=2,
            name=name,
        )
        self._upper = upper

    def _forward(self, x: Tensor) -> Tensor:
        return fill_triangular(x, upper=self._upper)

    def _inverse(self, y: Tensor) -> Tensor:
        return fill_triangular_inverse(y, upper=self._upper)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return no_change()

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return no_change()

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        count = input_shape.as_list()[-1]
        edge = None if count is None else (math.isqrt(8 * count + 1) - 1) // 2
        return input_shape[:-1].concatenate([edge, edge])

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        edge = output_shape.as_list()[-1]
        count = None if edge is None else edge * (edge + 1) // 2
        return output_shape[:-2].concatenate([count])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        count = cast(input_shape[-1:], "float64")
        edge = cast((8.0 * count + 1.0) ** 0.5 / 2.0 - 0.25, "int32")
        return concat([input_shape[:-1], edge, edge], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        edge = output_shape[-1:]
        return concat([output_shape[:-2], edge * (edge + 1) // 2], 0)


class TransformDiagonal(Bijector):
    """Another bijector on the diagonal of matrices."""

    def __init__(
        self, diag_bijector: Bijector, validate_args: bool = False, name: str = "transform_diagonal"
    ) -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)
        self._diagonal = diag_bijector

    def _forward(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, self._diagonal.forward(matrix_diag_part(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return matrix_set_diag(y, self._diagonal.inverse(matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._diagonal.forward_log_det_jacobian(matrix_diag_part(x), event_ndims=1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self._diagonal.inverse_log_det_jacobian(matrix_diag_part(y), event_ndims=1)


class ScaleTriL(Chain):
    """A vector as a lower triangular matrix with a positive diagonal.

    Example:
        >>> scale = tfb.ScaleTriL(diag_bijector=tfb.Exp(), diag_shift=None).forward(net)
    """

    def __init__(
        self,
        diag_bijector: Bijector | None = None,
        diag_shift: Any = 1e-5,
        validate_args: bool = False,
        name: str = "scale_tril",
    ) -> None:
        diagonal = Softplus() if diag_bijector is None else diag_bijector
        if diag_shift is not None:
            diagonal = Chain([AffineScalar(shift=diag_shift), diagonal])
        super().__init__(
            [TransformDiagonal(diagonal), FillTriangular()], validate_args=validate_args, name=name
        )


class CholeskyOuterProduct(Bijector):
    """``y = x @ x.T`` of lower triangular matrices with a positive diagonal."""

    def __init__(self, validate_args: bool = False, name: str = "cholesky_outer_product") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        lower = matrix_band_part(x, -1, 0)
        return matmul(lower, lower, adjoint_b=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return cholesky(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        diagonal = matrix_diag_part(x)
        size = shape(diagonal)[-1]
        weights = cast(range_(size, 0, -1), x.dtype.base_dtype)
        whole = cast(size, x.dtype.base_dtype) * math.log(2.0)
        return whole + reduce_sum(weights * log(diagonal), -1)


class MatrixInverseTriL(Bijector):
    """The inverse of lower triangular matrices.

    The volume is that of the inverse of any matrices, as in TensorFlow 1.15.
    """

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        size = shape(x)[-1]
        ones = broadcast_to(eye(size, dtype=x.dtype.base_dtype), shape(x))
        return matrix_triangular_solve(x, ones, lower=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        size = cast(shape(x)[-1], x.dtype.base_dtype)
        return -2.0 * size * reduce_sum(log(abs_(matrix_diag_part(x))), -1)
