"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    RegisterKL,
)
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.arithmetic import squared_difference
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_static_shape
from runnel.ops.casting import cast
from runnel.ops.comparison import greater_equal, less, logical_and
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import exp, expm1, log, log1p, sign, square
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.random import random_normal, random_uniform
from runnel.ops.sampling.random_gamma import random_gamma
from runnel.ops.selection import where_v2
from runnel.ops.special_functions import digamma, erf, lbeta, lgamma


def _parameter(value: Any) -> Tensor:
    return convert_to_tensor(value, None if hasattr(value, "dtype") else float32)


class _TwoParameters(Distribution):
    """A distribution of two parameters that are broadcast together."""

    def __init__(self, name: str, **parameters: Any) -> None:
        super().__init__(name, **parameters)
        first, second = (_parameter(value) for value in parameters.values())
        self._first, self._second = first, second

    @property
    def dtype(self) -> Any:
        return self._first.dtype.base_dtype

    def _whole_shape(self) -> Tensor:
        return broadcast_dynamic_shape(shape(self._first), shape(self._second))

    def _static_shape(self) -> TensorShape:
        return broadcast_static_shape(self._first.shape, self._second.shape)

    def _drawn_shape(self, count: Tensor) -> Tensor:
        return concat([expand_dims(count, 0), self._whole_shape()], 0)

    def _wide(self, value: Tensor) -> Tensor:
        """``value`` in the shape of the batch."""
        return value + zeros_like(self._first + self._second)


class _LocationAndScale(_TwoParameters):
    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name or type(self).__name__, loc=loc, scale=scale)

    @property
    def loc(self) -> Tensor:
        """The mean."""
        return self._first

    @property
    def scale(self) -> Tensor:
        """How far samples are from it: the standard deviation, or the mean distance."""
        return self._second


class Normal(_LocationAndScale):
    """Gauss's distribution.

    Example:
        >>> pi = tf.distributions.Normal(mu, sigma)
        >>> action = pi.sample(); loss = -pi.log_prob(action) * advantage
    """

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_normal(self._drawn_shape(count), dtype=self.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        distance = (value - self.loc) / self.scale
        return -0.5 * square(distance) - (0.5 * math.log(2.0 * math.pi) + log(self.scale))

    def _cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1.0 + erf((value - self.loc) / (self.scale * math.sqrt(2.0))))

    def _entropy(self) -> Tensor:
        return self._wide(0.5 + 0.5 * math.log(2.0 * math.pi) + log(self.scale))

    def _mean(self) -> Tensor:
        return self._wide(self.loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return self._wide(square(self.scale))

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """Not there: the inverse of the error function is missing."""
        raise self._missing("quantiles")


@RegisterKL(Normal, Normal)
def _(a: Normal, b: Normal) -> Tensor:
    ratio = square(a.scale / b.scale)
    return squared_difference(a.loc, b.loc) / (2.0 * square(b.scale)) + 0.5 * (
        ratio - 1.0 - log(ratio)
    )


class Laplace(_LocationAndScale):
    """Laplace's distribution."""

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        # Not -1 itself, whose logarithm would be infinite.
        least = -1.0 + 2.0**-24
        drawn = random_uniform(self._drawn_shape(count), least, 1.0, self.dtype, seed=seed)
        return self.loc - self.scale * sign(drawn) * log1p(-abs_(drawn))

    def _log_prob(self, value: Tensor) -> Tensor:
        return -abs_((value - self.loc) / self.scale) - math.log(2.0) - log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        distance = (value - self.loc) / self.scale
        return 0.5 - 0.5 * sign(distance) * expm1(-abs_(distance))

    def _entropy(self) -> Tensor:
        return self._wide(1.0 + math.log(2.0) + log(self.scale))

    def _mean(self) -> Tensor:
        return self._wide(self.loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return self._wide(2.0 * square(self.scale))


class Uniform(_TwoParameters):
    """Numbers from ``low`` to ``high``, equally likely."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        super().__init__(name, low=low, high=high)

    @property
    def low(self) -> Tensor:
        """Where it begins."""
        return self._first

    @property
    def high(self) -> Tensor:
        """Where it ends."""
        return self._second

    def range(self, name: str = "range") -> Tensor:
        """``high - low``."""
        return self.high - self.low

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(count), 0.0, 1.0, self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _log_prob(self, value: Tensor) -> Tensor:
        inside = logical_and(greater_equal(value, self.low), less(value, self.high))
        width = self.range() + zeros_like(value)
        return where_v2(inside, -log(width), log(zeros_like(width)))

    def _cdf(self, value: Tensor) -> Tensor:
        part = (value - self.low) / self.range()
        low = where_v2(value < self.low, zeros_like(part), part)
        return where_v2(greater_equal(value, self.high), ones_like(part), low)

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0


class Gamma(_TwoParameters):
    """The gamma distribution."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        super().__init__(name, concentration=concentration, rate=rate)

    @property
    def concentration(self) -> Tensor:
        """Its form."""
        return self._first

    @property
    def rate(self) -> Tensor:
        """The inverse of its scale."""
        return self._second

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return random_gamma(
            expand_dims(count, 0),
            alpha=self._wide(self.concentration),
            beta=self._wide(self.rate),
            dtype=self.dtype,
            seed=seed,
        )

    def _log_prob(self, value: Tensor) -> Tensor:
        shaped = (self.concentration - 1.0) * log(value) - self.rate * value
        return shaped - (lgamma(self.concentration) - self.concentration * log(self.rate))

    def _entropy(self) -> Tensor:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _mode(self) -> Tensor:
        return (self.concentration - 1.0) / self.rate


class Exponential(Gamma):
    """The exponential distribution."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        given = _parameter(rate)
        super().__init__(ones_like(given), given, name=name)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        least = 2.0**-126
        drawn = random_uniform(self._drawn_shape(count), least, 1.0, self.dtype, seed=seed)
        return -log(drawn) / self.rate

    def _cdf(self, value: Tensor) -> Tensor:
        return 1.0 - exp(-self.rate * value)


class Beta(_TwoParameters):
    """The beta distribution."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        super().__init__(name, concentration1=concentration1, concentration0=concentration0)

    @property
    def concentration1(self) -> Tensor:
        """How much 1 is favoured."""
        return self._first

    @property
    def concentration0(self) -> Tensor:
        """How much 0 is favoured."""
        return self._second

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both."""
        return self._first + self._second

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        other = None if seed is None else seed + 1
        up, down = (
            random_gamma(expand_dims(count, 0), alpha=self._wide(a), dtype=self.dtype, seed=s)
            for a, s in ((self._first, seed), (self._second, other))
        )
        return up / (up + down)

    def _log_norm(self) -> Tensor:
        return lgamma(self._first) + lgamma(self._second) - lgamma(self.total_concentration)

    def _log_prob(self, value: Tensor) -> Tensor:
        shaped = (self._first - 1.0) * log(value) + (self._second - 1.0) * log1p(-value)
        return shaped - self._log_norm()

    def _entropy(self) -> Tensor:
        total = self.total_concentration
        return (
            self._log_norm()
            - (self._first - 1.0) * digamma(self._first)
            - (self._second - 1.0) * digamma(self._second)
            + (total - 2.0) * digamma(total)
        )

    def _mean(self) -> Tensor:
        return self._first / self.total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)


class Dirichlet(Distribution):
    """Shares that add up to 1."""

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_rank = 1

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        super().__init__(name, concentration=concentration)
        self._concentration = _parameter(concentration)

    @property
    def dtype(self) -> Any:
        return self._concentration.dtype.base_dtype

    @property
    def concentration(self) -> Tensor:
        """How much each share is favoured."""
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """The sum."""
        return reduce_sum(self._concentration, -1)

    def _whole_shape(self) -> Tensor:
        return shape(self._concentration)

    def _static_shape(self) -> TensorShape:
        return self._concentration.shape

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_gamma(
            expand_dims(count, 0), alpha=self._concentration, dtype=self.dtype, seed=seed
        )
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, value: Tensor) -> Tensor:
        shaped = reduce_sum((self._concentration - 1.0) * log(value), -1)
        return shaped - lbeta(self._concentration)

    def _entropy(self) -> Tensor:
        total = self.total_concentration
        count = cast(shape(self._concentration)[-1], self.dtype)
        each = reduce_sum((self._concentration - 1.0) * digamma(self._concentration), -1)
        return lbeta(self._concentration) + (total - count) * digamma(total) - each

    def _mean(self) -> Tensor:
        return self._concentration / expand_dims(self.total_concentration, -1)

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / expand_dims(1.0 + self.total_concentration, -1)


class MultivariateNormalDiag(Distribution):
    """Vectors of independent normal numbers (``tf.contrib.distributions``)."""

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_rank = 1

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        super().__init__(name, loc=loc, scale_diag=scale_diag)
        if loc is None and scale_diag is None:
            raise ValueError("Must specify one or both of `loc`, `scale_diag`.")
        given = [None if value is None else _parameter(value) for value in (loc, scale_diag)]
        mean = given[0] if given[0] is not None else zeros_like(given[1])
        scale = given[1] if given[1] is not None else ones_like(mean)
        if scale_identity_multiplier is not None:
            extra = expand_dims(_parameter(scale_identity_multiplier), -1)
            scale = extra + (zeros_like(scale) if given[1] is None else scale)
        self._each = Normal(mean, scale, name=name)

    @property
    def dtype(self) -> Any:
        return self._each.dtype

    @property
    def loc(self) -> Tensor:
        """The mean."""
        return self._each.loc

    def _whole_shape(self) -> Tensor:
        return self._each._whole_shape()

    def _static_shape(self) -> TensorShape:
        return self._each._static_shape()

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return self._each._sample(count, seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        return reduce_sum(self._each._log_prob(value), -1)

    def _entropy(self) -> Tensor:
        return reduce_sum(self._each._entropy(), -1)

    def _mean(self) -> Tensor:
        return self._each._mean()

    _mode = _mean

    def _variance(self) -> Tensor:
        return self._each._variance()


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _(a: MultivariateNormalDiag, b: MultivariateNormalDiag) -> Tensor:
    return reduce_sum(a._each.kl_divergence(b._each), -1)
