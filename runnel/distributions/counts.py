"""Distributions of counts that ``tf.contrib.distributions`` adds."""

from __future__ import annotations

from typing import Any

from runnel.distributions.distribution import Distribution
from runnel.distributions.scalar_family import ScalarFamily, parameter
from runnel.distributions.seeds import derived_seed
from runnel.distributions.unbounded import SMALLEST
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.activations import log_sigmoid
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_static_shape, broadcast_to
from runnel.ops.casting import cast
from runnel.ops.elementwise import exp, log, log1p, sigmoid
from runnel.ops.joining import concat
from runnel.ops.masking import sequence_mask
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_max, reduce_sum
from runnel.ops.rounding import floor
from runnel.ops.sampling.random import multinomial, random_uniform
from runnel.ops.sampling.random_gamma import random_gamma
from runnel.ops.sampling.random_poisson import random_poisson
from runnel.ops.softmax import log_softmax, softmax
from runnel.ops.special_functions import lgamma
from runnel.ops.transposition import transpose
from runnel.ops.zero_safe import xlogy


class Poisson(ScalarFamily):
    """How often something happens that happens ``rate`` times on average.

    Example:
        >>> counts = tf.contrib.distributions.Poisson(log_rate=net)
        >>> loss = -tf.reduce_mean(counts.log_prob(labels))
    """

    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        super().__init__(name, rate=rate, log_rate=log_rate)

    @property
    def rate(self) -> Tensor:
        """The mean."""
        return self._given["rate"] if "rate" in self._given else exp(self._given["log_rate"])

    @property
    def log_rate(self) -> Tensor:
        """The logarithm of the mean."""
        given = self._given
        return given["log_rate"] if "log_rate" in given else log(given["rate"])

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return random_poisson(self.rate, expand_dims(count, 0), self.dtype, seed=seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        shaped = xlogy(value, self.rate) if "rate" in self._given else value * self.log_rate
        return shaped - lgamma(1.0 + value) - self.rate

    def _mean(self) -> Tensor:
        return self.rate

    def _variance(self) -> Tensor:
        return self.rate

    def _mode(self) -> Tensor:
        return floor(self.rate)


class _Odds(ScalarFamily):
    """A distribution of trials that succeed with a probability, given as such or as a logit."""

    def __init__(self, name: str, logits: Any, probs: Any, **parameters: Any) -> None:
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        super().__init__(name, **parameters, logits=logits, probs=probs)

    @property
    def probs(self) -> Tensor:
        """The probability of success."""
        given = self._given
        return given["probs"] if "probs" in given else sigmoid(given["logits"])

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds of success."""
        given = self._given
        return given["logits"] if "logits" in given else log(self.probs) - log1p(-self.probs)


class Geometric(_Odds):
    """How many trials fail before one succeeds."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        super().__init__(name, logits, probs)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(count), SMALLEST, 1.0, self.dtype, seed=seed)
        return floor(log(drawn) / log1p(-self.probs))

    def _log_prob(self, value: Tensor) -> Tensor:
        return value * log1p(-self.probs) + log(self.probs)

    def _entropy(self) -> Tensor:
        probs = self.probs
        return -(xlogy(1.0 - probs, 1.0 - probs) / probs) - log(probs)

    def _mean(self) -> Tensor:
        return exp(-self.logits)

    def _variance(self) -> Tensor:
        return self._mean() / self.probs

    def _mode(self) -> Tensor:
        return 0.0 * self.probs


class NegativeBinomial(_Odds):
    """How many trials succeed before ``total_count`` fail."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NegativeBinomial",
    ) -> None:
        super().__init__(name, logits, probs, total_count=total_count)

    @property
    def total_count(self) -> Tensor:
        """How many trials fail."""
        return self.given("total_count")

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        rate = random_gamma(
            expand_dims(count, 0),
            alpha=self._wide(self.total_count),
            beta=self._wide(exp(-self.logits)),
            dtype=self.dtype,
            seed=seed,
        )
        return random_poisson(rate, [], self.dtype, seed=derived_seed(seed, "negative_binom"))

    def _log_prob(self, value: Tensor) -> Tensor:
        total = self.total_count
        shaped = total * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        return shaped + lgamma(total + value) - lgamma(1.0 + value) - lgamma(total)

    def _mean(self) -> Tensor:
        return self.total_count * exp(self.logits)

    def _variance(self) -> Tensor:
        return self._mean() / sigmoid(-self.logits)


class Binomial(_Odds):
    """How many of ``total_count`` trials succeed. It has no samples, as in TensorFlow 1.15."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        super().__init__(name, logits, probs, total_count=total_count)

    @property
    def total_count(self) -> Tensor:
        """The number of trials."""
        return self.given("total_count")

    def _log_prob(self, value: Tensor) -> Tensor:
        total, fails = self.total_count, self.total_count - value
        ways = lgamma(1.0 + total) - lgamma(1.0 + value) - lgamma(1.0 + fails)
        return value * log(self.probs) + fails * log1p(-self.probs) + ways

    def _mean(self) -> Tensor:
        return self.total_count * self.probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        return floor((1.0 + self.total_count) * self.probs)


class Multinomial(Distribution):
    """How often each class is drawn in ``total_count`` draws."""

    _event_rank = 1

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        super().__init__(name, total_count=total_count, logits=logits, probs=probs)
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        self._total = parameter(total_count)
        self._logits = parameter(logits) if probs is None else log(parameter(probs))
        self._probs = softmax(self._logits) if probs is None else parameter(probs)

    @property
    def dtype(self) -> Any:
        return self._logits.dtype.base_dtype

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total

    @property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probability of each class."""
        return self._probs

    def _whole_shape(self) -> Tensor:
        classes = shape(self._logits)
        batch = broadcast_dynamic_shape(shape(self._total), classes[:-1])
        return concat([batch, classes[-1:]], 0)

    def _static_shape(self) -> TensorShape:
        classes = self._logits.shape
        batch = broadcast_static_shape(self._total.shape, classes[:-1])
        return batch.concatenate(classes[-1:])

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        whole = self._whole_shape()
        classes = whole[-1]
        rows = reshape(broadcast_to(self._logits, whole), [-1, classes])
        totals = reshape(broadcast_to(self._total, whole[:-1]), [-1])
        most = cast(reduce_max(totals), "int32")
        drawn = multinomial(rows, count * most, seed=seed)
        each = reshape(drawn, [-1, count, most])
        taken = sequence_mask(cast(totals, "int32"), most, dtype=self.dtype)
        hits = one_hot(each, classes, dtype=self.dtype) * reshape(taken, [-1, 1, most, 1])
        counts = transpose(reduce_sum(hits, 2), [1, 0, 2])
        return reshape(counts, concat([expand_dims(count, 0), whole], 0))

    def _log_prob(self, value: Tensor) -> Tensor:
        ways = lgamma(1.0 + self._total) - reduce_sum(lgamma(1.0 + value), -1)
        return reduce_sum(log_softmax(self._logits) * value, -1) + ways

    def _mean(self) -> Tensor:
        return self._probs * expand_dims(self._total, -1)

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._probs)
