"""Distributions over all real numbers that ``tf.contrib.distributions`` adds."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.continuous import Laplace, Normal
from runnel.distributions.distribution import FULLY_REPARAMETERIZED
from runnel.distributions.scalar_family import ScalarFamily, parameter
from runnel.distributions.seeds import derived_seed
from runnel.graph.operation import Tensor
from runnel.ops.activations import softplus
from runnel.ops.array_shape import expand_dims
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log, log1p, rsqrt, sigmoid, square
from runnel.ops.fill import ones_like
from runnel.ops.joining import stack
from runnel.ops.rounding import floor
from runnel.ops.sampling.random import random_normal, random_uniform
from runnel.ops.sampling.random_gamma import random_gamma
from runnel.ops.selection import where_v2
from runnel.ops.special_functions import digamma, lbeta, lgamma
from runnel.ops.trigonometry import atan, tan

SMALLEST = 2.0**-126
"""The smallest float32 that is normal: uniform numbers begin there, where a logarithm follows."""


class _Located(ScalarFamily):
    reparameterization_type = FULLY_REPARAMETERIZED

    @property
    def loc(self) -> Tensor:
        """Where its middle is."""
        return self.given("loc")

    @property
    def scale(self) -> Tensor:
        """How wide it is."""
        return self.given("scale")

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale


class StudentT(_Located):
    """Student's distribution with ``df`` degrees of freedom.

    Example:
        >>> robust = tf.contrib.distributions.StudentT(df=4.0, loc=mean, scale=1.0)
        >>> loss = -tf.reduce_mean(robust.log_prob(labels))
    """

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        super().__init__(name, df=df, loc=loc, scale=scale)
        self._allow_nan_stats = allow_nan_stats

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.given("df")

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_normal(self._drawn_shape(count), dtype=self.dtype, seed=seed)
        df = self._wide(self.df)
        spread = random_gamma(
            expand_dims(count, 0),
            alpha=0.5 * df,
            beta=0.5,
            dtype=self.dtype,
            seed=derived_seed(seed, "student_t"),
        )
        return drawn * rsqrt(spread / df) * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        df = self.df
        norm = log(abs_(self.scale)) + 0.5 * log(df) + 0.5 * math.log(math.pi)
        norm = norm + lgamma(0.5 * df) - lgamma(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * log1p(square(self._standard(value)) / df) - norm

    def _entropy(self) -> Tensor:
        half = 0.5 * self.df
        ones = ones_like(half)
        beta = lbeta(stack([0.5 * ones, half], -1))
        more = 0.5 * (self.df + 1.0) * (digamma(half + 0.5) - digamma(half))
        return self._wide(log(abs_(self.scale)) + 0.5 * log(self.df) + beta + more)

    def _mean(self) -> Tensor:
        return where_v2(self._wide(self.df) > 1.0, self._wide(self.loc), math.nan)

    def _mode(self) -> Tensor:
        return self._wide(self.loc)

    def _variance(self) -> Tensor:
        df = self._wide(self.df)
        known = df > 2.0
        safe = where_v2(known, df, 3.0)
        spread = self._wide(square(self.scale)) * safe / (safe - 2.0)
        return where_v2(known, spread, where_v2(df > 1.0, math.inf, math.nan))


class Logistic(_Located):
    """The logistic distribution, whose cumulative distribution is a sigmoid."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Logistic",
    ) -> None:
        super().__init__(name, loc=loc, scale=scale)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        shape = self._drawn_shape(count)
        drawn = random_uniform(shape, SMALLEST, 1.0, self.dtype, seed=seed)
        return (log(drawn) - log1p(-drawn)) * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -z - 2.0 * softplus(-z) - log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        return sigmoid(self._standard(value))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return -softplus(-self._standard(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return -softplus(self._standard(value))

    def _entropy(self) -> Tensor:
        return self._wide(2.0 + log(self.scale))

    def _mean(self) -> Tensor:
        return self._wide(self.loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return self._wide(square(self.scale) * (math.pi**2 / 3.0))


class Cauchy(_Located):
    """Cauchy's distribution, which has neither mean nor variance."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(name, loc=loc, scale=scale)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(count), 0.0, 1.0, self.dtype, seed=seed)
        return self.loc + self.scale * tan(math.pi * (drawn - 0.5))

    def _log_prob(self, value: Tensor) -> Tensor:
        return -log1p(square(self._standard(value))) - math.log(math.pi) - log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        return atan(self._standard(value)) / math.pi + 0.5

    def _entropy(self) -> Tensor:
        return self._wide(math.log(4.0 * math.pi) + log(self.scale))

    def _mode(self) -> Tensor:
        return self._wide(self.loc)


class NormalWithSoftplusScale(Normal):
    """A :class:`Normal` whose deviation is the softplus of ``scale``."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        super().__init__(loc, softplus(parameter(scale)), name=name)


class LaplaceWithSoftplusScale(Laplace):
    """A :class:`Laplace` whose scale is the softplus of ``scale``."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:
        super().__init__(loc, softplus(parameter(scale)), name=name)


class StudentTWithAbsDfSoftplusScale(StudentT):
    """A :class:`StudentT` of any numbers: ``floor(abs(df))``, and the softplus of ``scale``."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:
        degrees = floor(abs_(parameter(df)))
        super().__init__(degrees, loc, softplus(parameter(scale)), name=name)
