"""Normal vectors whose elements depend on each other."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.continuous import MultivariateNormalDiag
from runnel.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    RegisterKL,
)
from runnel.distributions.scalar_family import parameter
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.activations import softplus
from runnel.ops.array_shape import expand_dims, shape, squeeze
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_static_shape, broadcast_to
from runnel.ops.casting import cast
from runnel.ops.diagonal import matrix_diag, matrix_diag_part
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log, square
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import (
    cholesky,
    matrix_solve,
    matrix_triangular_solve,
    slogdet,
)
from runnel.ops.matmul import matmul
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.random import random_normal


class MultivariateNormal(Distribution):
    """Vectors ``loc + scale @ z``, where the elements of ``z`` are standard normal numbers."""

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_rank = 1

    def __init__(self, name: str, loc: Any, scale: Tensor, triangular: bool) -> None:
        super().__init__(name, loc=loc, scale=scale)
        self._scale = scale
        self._triangular = triangular
        self._loc = zeros_like(scale[..., 0]) if loc is None else parameter(loc)

    @property
    def dtype(self) -> Any:
        return self._scale.dtype.base_dtype

    @property
    def loc(self) -> Tensor:
        """The mean."""
        return self._loc

    @property
    def scale_matrix(self) -> Tensor:
        """What spreads the standard normal vectors."""
        return self._scale

    def _whole_shape(self) -> Tensor:
        return broadcast_dynamic_shape(shape(self._loc), shape(self._scale)[:-1])

    def _static_shape(self) -> TensorShape:
        return broadcast_static_shape(self._loc.shape, self._scale.shape[:-1])

    def spread(self, vectors: Tensor) -> Tensor:
        """``scale @ vectors``."""
        return squeeze(matmul(_matrices_for(self._scale, vectors), expand_dims(vectors, -1)), [-1])

    def solved(self, columns: Tensor) -> Tensor:
        """The columns ``z`` with ``scale @ z == columns``."""
        solve = matrix_triangular_solve if self._triangular else matrix_solve
        return solve(broadcast_to(self._scale, _joint_shape(self._scale, columns)), columns)

    def log_abs_determinant(self) -> Tensor:
        """The logarithm of the volume of ``scale``."""
        if self._triangular:
            return reduce_sum(log(abs_(matrix_diag_part(self._scale))), -1)
        return slogdet(self._scale)[1]

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        wanted = concat([expand_dims(count, 0), self._whole_shape()], 0)
        return self.spread(random_normal(wanted, dtype=self.dtype, seed=seed)) + self._loc

    def _log_prob(self, value: Tensor) -> Tensor:
        centred = value - self._loc
        standard = squeeze(self.solved(expand_dims(centred, -1)), [-1])
        size = cast(shape(self._scale)[-1], self.dtype)
        density = -0.5 * reduce_sum(square(standard), -1) - 0.5 * math.log(2 * math.pi) * size
        return density - self.log_abs_determinant()

    def _entropy(self) -> Tensor:
        size = cast(shape(self._scale)[-1], self.dtype)
        whole = 0.5 * (1.0 + math.log(2.0 * math.pi)) * size + self.log_abs_determinant()
        return whole + zeros_like(self._loc[..., 0])

    def _mean(self) -> Tensor:
        return broadcast_to(self._loc, self._whole_shape())

    _mode = _mean

    def covariance(self, name: str = "covariance") -> Tensor:
        """How the elements vary together."""
        return matmul(self._scale, self._scale, transpose_b=True)

    def _variance(self) -> Tensor:
        return broadcast_to(reduce_sum(square(self._scale), -1), self._whole_shape())


def _joint_shape(matrices: Tensor, columns: Tensor) -> Tensor:
    """The shape of matrices of which there is one for all of ``columns``."""
    batch = broadcast_dynamic_shape(shape(matrices)[:-2], shape(columns)[:-2])
    return concat([batch, shape(matrices)[-2:]], 0)


def _matrices_for(matrices: Tensor, vectors: Tensor) -> Tensor:
    return broadcast_to(matrices, _joint_shape(matrices, expand_dims(vectors, -1)))


class MultivariateNormalTriL(MultivariateNormal):
    """Normal vectors with a lower triangular scale.

    Example:
        >>> scale = tf.contrib.distributions.fill_triangular(net)
        >>> policy = tf.contrib.distributions.MultivariateNormalTriL(mean, scale)
    """

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        if scale_tril is None:
            if loc is None:
                raise ValueError("Must specify one or both of `loc`, `scale_tril`.")
            scale_tril = matrix_diag(zeros_like(parameter(loc)) + 1.0)
        super().__init__(name, loc, parameter(scale_tril), triangular=True)


class MultivariateNormalFullCovariance(MultivariateNormal):
    """Normal vectors with a covariance matrix."""

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        if covariance_matrix is None:
            if loc is None:
                raise ValueError("Must specify one or both of `loc`, `covariance_matrix`.")
            scale = matrix_diag(zeros_like(parameter(loc)) + 1.0)
        else:
            scale = cholesky(parameter(covariance_matrix))
        super().__init__(name, loc, scale, triangular=True)


class MultivariateNormalDiagPlusLowRank(MultivariateNormal):
    """Normal vectors with the scale ``diag(scale_diag) + factor @ diag(perturb) @ factor.T``."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        if loc is None and scale_diag is None and scale_perturb_factor is None:
            raise ValueError("The length of the vectors is not known: give `loc` or `scale_diag`.")
        factor = None if scale_perturb_factor is None else parameter(scale_perturb_factor)
        known = loc if loc is not None else scale_diag
        like = parameter(known) if known is not None else zeros_like(factor[..., 0])  # type: ignore[index]
        diagonal = zeros_like(like)
        if scale_identity_multiplier is not None:
            diagonal += expand_dims(parameter(scale_identity_multiplier), -1)
        elif scale_diag is None:
            diagonal += 1.0
        if scale_diag is not None:
            diagonal += parameter(scale_diag)
        scale = matrix_diag(diagonal)
        if factor is not None:
            weighted = factor
            if scale_perturb_diag is not None:
                weighted = factor * expand_dims(parameter(scale_perturb_diag), -2)
            scale += matmul(weighted, factor, transpose_b=True)
        super().__init__(name, loc, scale, triangular=False)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """A :class:`MultivariateNormalDiag` whose deviations are the softplus of ``scale_diag``."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        super().__init__(loc, softplus(parameter(scale_diag)), name=name)


def _with_matrix(given: Distribution) -> MultivariateNormal:
    if isinstance(given, MultivariateNormal):
        return given
    each = given._each  # type: ignore[attr-defined]
    return MultivariateNormalTriL(each.loc, matrix_diag(zeros_like(each.loc) + each.scale))


def _divergence(first: Distribution, second: Distribution) -> Tensor:
    a, b = _with_matrix(first), _with_matrix(second)
    size = cast(shape(a.scale_matrix)[-1], a.dtype)
    batch = broadcast_to(a.scale_matrix, _joint_shape(a.scale_matrix, b.scale_matrix))
    mixed = reduce_sum(square(b.solved(batch)), [-2, -1])
    apart = reduce_sum(square(squeeze(b.solved(expand_dims(b.loc - a.loc, -1)), [-1])), -1)
    volumes = b.log_abs_determinant() - a.log_abs_determinant()
    return volumes + 0.5 * (mixed + apart - size)


for _first, _second in (
    (MultivariateNormal, MultivariateNormal),
    (MultivariateNormal, MultivariateNormalDiag),
    (MultivariateNormalDiag, MultivariateNormal),
):
    RegisterKL(_first, _second)(_divergence)
