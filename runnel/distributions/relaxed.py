"""Classes as numbers with gradients: the Gumbel-softmax distribution and its relatives."""

from __future__ import annotations

from typing import Any

from runnel.distributions.bijectors.elementwise import Exp, Sigmoid
from runnel.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from runnel.distributions.scalar_family import parameter
from runnel.distributions.transformed import TransformedDistribution
from runnel.distributions.unbounded import SMALLEST, Logistic
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.casting import cast
from runnel.ops.elementwise import log, log1p, sigmoid
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.random import random_uniform
from runnel.ops.softmax import log_softmax, softmax
from runnel.ops.special_functions import lgamma


class ExpRelaxedOneHotCategorical(Distribution):
    """The logarithms of a :class:`RelaxedOneHotCategorical`, which do not underflow."""

    reparameterization_type = FULLY_REPARAMETERIZED
    _event_rank = 1

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        super().__init__(name, temperature=temperature, logits=logits, probs=probs)
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        self._logits = parameter(logits) if probs is None else log(parameter(probs))
        self._probs = softmax(self._logits) if probs is None else parameter(probs)
        self._temperature = cast(parameter(temperature), self._logits.dtype.base_dtype)

    @property
    def dtype(self) -> Any:
        return self._logits.dtype.base_dtype

    @property
    def temperature(self) -> Tensor:
        """How far samples are from being a class."""
        return self._temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probability of each class."""
        return self._probs

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return shape(self._logits)[-1]

    def _whole_shape(self) -> Tensor:
        return shape(self._logits + expand_dims(self._temperature, -1) * 0.0)

    def _static_shape(self) -> TensorShape:
        return (self._logits + expand_dims(self._temperature, -1) * 0.0).shape

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        wanted = concat([expand_dims(count, 0), self._whole_shape()], 0)
        drawn = random_uniform(wanted, SMALLEST, 1.0, self.dtype, seed=seed)
        noisy = (self._logits - log(-log(drawn))) / expand_dims(self._temperature, -1)
        return log_softmax(noisy)

    def _log_prob(self, value: Tensor) -> Tensor:
        size = cast(self.event_size, self.dtype)
        norm = lgamma(size) + (size - 1.0) * log(self._temperature)
        shares = log_softmax(self._logits - value * expand_dims(self._temperature, -1))
        return norm + reduce_sum(shares, -1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of classes, the nearer to one class the lower the temperature.

    Samples have gradients. (Jang et al., *Categorical Reparameterization with Gumbel-Softmax*,
    and Maddison et al., *The Concrete Distribution*, 2016.)

    Example:
        >>> soft = tf.contrib.distributions.RelaxedOneHotCategorical(0.5, logits=net)
        >>> shares = soft.sample()
    """

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        base = ExpRelaxedOneHotCategorical(temperature, logits, probs)
        super().__init__(base, Exp(), name=name)
        self._base = base

    @property
    def temperature(self) -> Tensor:
        """How far samples are from being a class."""
        return self._base.temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return self._base.logits

    @property
    def probs(self) -> Tensor:
        """The probability of each class."""
        return self._base.probs

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return self._base.event_size


class RelaxedBernoulli(TransformedDistribution):
    """Numbers from 0 to 1, the nearer to either the lower the temperature."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            self._logits = parameter(logits)
            self._probs = sigmoid(self._logits)
        else:
            self._probs = parameter(probs)
            self._logits = log(self._probs) - log1p(-self._probs)
        self._temperature = parameter(temperature)
        base = Logistic(self._logits / self._temperature, 1.0 / self._temperature)
        super().__init__(base, Sigmoid(), name=name)

    @property
    def temperature(self) -> Tensor:
        """How far samples are from 0 and 1."""
        return self._temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of the odds of 1."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self._probs
