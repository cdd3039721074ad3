"""Distributions over positive numbers that ``tf.contrib.distributions`` adds."""

from __future__ import annotations

import math
from typing import Any

from runnel.distributions.continuous import Gamma
from runnel.distributions.distribution import FULLY_REPARAMETERIZED
from runnel.distributions.scalar_family import ScalarFamily, parameter
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log, square
from runnel.ops.rounding import floor
from runnel.ops.sampling.random import random_normal
from runnel.ops.sampling.random_gamma import random_gamma
from runnel.ops.selection import where_v2
from runnel.ops.special_functions import digamma, erf, lgamma


class HalfNormal(ScalarFamily):
    """The distance of normal numbers from their mean."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(name, scale=scale)

    @property
    def scale(self) -> Tensor:
        """The deviation of the normal numbers."""
        return self.given("scale")

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_normal(self._drawn_shape(count), dtype=self.dtype, seed=seed)
        return abs_(drawn * self.scale)

    def _log_prob(self, value: Tensor) -> Tensor:
        norm = 0.5 * math.log(2.0 / math.pi) - log(self.scale)
        inside = norm - 0.5 * square(value / self.scale)
        return where_v2(value >= 0.0, inside, -math.inf)

    def _cdf(self, value: Tensor) -> Tensor:
        return where_v2(value >= 0.0, erf(value / (self.scale * math.sqrt(2.0))), 0.0)

    def _entropy(self) -> Tensor:
        return 0.5 * log(math.pi * square(self.scale) / 2.0) + 0.5

    def _mean(self) -> Tensor:
        return self.scale * math.sqrt(2.0 / math.pi)

    def _mode(self) -> Tensor:
        return self._wide(0.0 * self.scale)

    def _variance(self) -> Tensor:
        return square(self.scale) * (1.0 - 2.0 / math.pi)


class Chi2(Gamma):
    """The sum of the squares of ``df`` normal numbers."""

    def __init__(
        self,
        df: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Chi2",
    ) -> None:
        given = parameter(df)
        super().__init__(0.5 * given, 0.5, name=name)
        self._df = given

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self._df


class Chi2WithAbsDf(Chi2):
    """A :class:`Chi2` of any number: ``floor(abs(df))``."""

    def __init__(
        self,
        df: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Chi2WithAbsDf",
    ) -> None:
        super().__init__(floor(abs_(parameter(df))), name=name)


class InverseGamma(ScalarFamily):
    """The inverse of numbers with a gamma distribution."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ) -> None:
        super().__init__(name, concentration=concentration, rate=rate)

    @property
    def concentration(self) -> Tensor:
        """Its form."""
        return self.given("concentration")

    @property
    def rate(self) -> Tensor:
        """Its scale."""
        return self.given("rate")

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_gamma(
            expand_dims(count, 0),
            alpha=self._wide(self.concentration),
            beta=self._wide(self.rate),
            dtype=self.dtype,
            seed=seed,
        )
        return 1.0 / drawn

    def _log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return -(1.0 + a) * log(value) - self.rate / value - (lgamma(a) - a * log(self.rate))

    def _entropy(self) -> Tensor:
        a = self.concentration
        return a + log(self.rate) + lgamma(a) - (1.0 + a) * digamma(a)

    def _mean(self) -> Tensor:
        a = self._wide(self.concentration)
        return where_v2(a > 1.0, self.rate / (a - 1.0), math.nan)

    def _mode(self) -> Tensor:
        return self.rate / (1.0 + self.concentration)

    def _variance(self) -> Tensor:
        a = self._wide(self.concentration)
        return where_v2(a > 2.0, square(self.rate) / (square(a - 1.0) * (a - 2.0)), math.nan)
