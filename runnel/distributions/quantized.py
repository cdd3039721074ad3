"""``QuantizedDistribution``: the numbers of a distribution, rounded up."""

from __future__ import annotations

from typing import Any

from runnel.distributions.distribution import Distribution
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.elementwise import exp, expm1, log, log1p
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.rounding import ceil, floor
from runnel.ops.selection import where_v2


class QuantizedDistribution(Distribution):
    """``ceil(x)`` of samples ``x``, at least ``low`` and at most ``high``.

    Example:
        >>> tfd = tf.contrib.distributions
        >>> shifted = tfd.TransformedDistribution(
        ...     tfd.Logistic(loc, scale), tfd.bijectors.AffineScalar(shift=-0.5)
        ... )
        >>> pixels = tfd.QuantizedDistribution(shifted, low=0.0, high=255.0)
    """

    def __init__(
        self,
        distribution: Distribution,
        low: Any = None,
        high: Any = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        super().__init__(name, distribution=distribution, low=low, high=high)
        self._distribution = distribution
        self._low = None if low is None else ceil(distribution._as_value(low))
        self._high = None if high is None else ceil(distribution._as_value(high))

    @property
    def distribution(self) -> Distribution:
        """The distribution whose numbers are rounded."""
        return self._distribution

    @property
    def dtype(self) -> Any:
        return self._distribution.dtype

    def _whole_shape(self) -> Tensor:
        return self._distribution._whole_shape()

    def _static_shape(self) -> TensorShape:
        return self._distribution._static_shape()

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = ceil(self._distribution._sample(count, seed))
        drawn = drawn if self._low is None else maximum(drawn, self._low)
        return drawn if self._high is None else minimum(drawn, self._high)

    def _cdf(self, value: Tensor) -> Tensor:
        return exp(self._log_cdf(value))

    def _log_cdf(self, value: Tensor) -> Tensor:
        edge = floor(value)
        found = self._distribution._log_cdf(edge)
        if self._low is not None:
            found = where_v2(edge < self._low, log(zeros_like(found)), found)
        if self._high is not None:
            found = where_v2(edge < self._high, found, zeros_like(found))
        return found

    def _log_survival_function(self, value: Tensor) -> Tensor:
        edge = ceil(value)
        found = self._distribution._log_survival_function(edge)
        if self._low is not None:
            found = where_v2(edge < self._low, zeros_like(found), found)
        if self._high is not None:
            found = where_v2(edge < self._high, found, log(zeros_like(found)))
        return found

    def _log_prob(self, value: Tensor) -> Tensor:
        """The difference of two tails, of the smaller ones, whose logarithms are exact."""
        above, below = self._log_survival_function(value), self._log_cdf(value)
        above_before = self._log_survival_function(value - 1.0)
        below_before = self._log_cdf(value - 1.0)
        right = above < below
        larger = where_v2(right, above_before, below)
        smaller = where_v2(right, above, below_before)
        return _log_difference(larger, smaller)


def _log_difference(larger: Tensor, smaller: Tensor) -> Tensor:
    """``log(exp(larger) - exp(smaller))``."""
    distance = smaller - larger
    near = distance > -0.6931472
    # The function that is not taken must have a finite gradient.
    close = where_v2(near, distance, -ones_like(distance))
    far = where_v2(near, -ones_like(distance), distance)
    return larger + where_v2(near, log(-expm1(close)), log1p(-exp(far)))
