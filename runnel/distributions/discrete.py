"""Distributions of classes."""

from __future__ import annotations

from typing import Any

from runnel.distributions.distribution import Distribution, RegisterKL
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype, float32, int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.activations import softplus
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, less
from runnel.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from runnel.ops.elementwise import log, log1p, sigmoid
from runnel.ops.joining import concat
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.sampling.random import multinomial, random_uniform
from runnel.ops.softmax import log_softmax, softmax
from runnel.ops.transposition import transpose


class _Discrete(Distribution):
    """A distribution of logits or of probabilities, whichever is given."""

    def __init__(self, name: str, logits: Any, probs: Any, dtype: Any) -> None:
        super().__init__(name, logits=logits, probs=probs)
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        value = probs if logits is None else logits
        given = convert_to_tensor(value, None if hasattr(value, "dtype") else float32)
        if logits is None:
            self._probs, self._logits = given, self._logits_of(given)
        else:
            self._logits, self._probs = given, self._probs_of(given)
        self._dtype = as_dtype(dtype)

    def _logits_of(self, probs: Tensor) -> Tensor:
        return log(probs)

    def _probs_of(self, logits: Tensor) -> Tensor:
        return softmax(logits)

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._probs

    def _whole_shape(self) -> Tensor:
        return shape(self._logits)

    def _static_shape(self) -> TensorShape:
        return self._logits.shape


class Bernoulli(_Discrete):
    """0 or 1."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        super().__init__(name, logits, probs, dtype)

    def _logits_of(self, probs: Tensor) -> Tensor:
        return log(probs) - log1p(-probs)

    def _probs_of(self, logits: Tensor) -> Tensor:
        return sigmoid(logits)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        dims = concat([expand_dims(count, 0), shape(self._probs)], 0)
        drawn = random_uniform(dims, dtype=self._probs.dtype.base_dtype, seed=seed)
        return cast(less(drawn, self._probs), self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        events = cast(value, self._logits.dtype.base_dtype)
        dims = broadcast_dynamic_shape(shape(events), shape(self._logits))
        return -sigmoid_cross_entropy_with_logits(
            labels=broadcast_to(events, dims), logits=broadcast_to(self._logits, dims)
        )

    def _entropy(self) -> Tensor:
        return softplus(self._logits) - self._logits * self._probs

    def _mean(self) -> Tensor:
        return self._probs * 1.0

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return cast(greater(self._probs, 0.5), self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _(a: Bernoulli, b: Bernoulli) -> Tensor:
    down = softplus(b.logits) - softplus(a.logits)
    up = softplus(-b.logits) - softplus(-a.logits)
    return a.probs * up + (1.0 - a.probs) * down


def _draw(logits: Tensor, count: Tensor, seed: int | None, dtype: Any) -> Tensor:
    """``count`` classes of each row of logits: [count, ...]."""
    rows = reshape(logits, concat([[-1], shape(logits)[-1:]], 0))
    drawn = transpose(multinomial(rows, count, seed=seed))
    return cast(reshape(drawn, concat([expand_dims(count, 0), shape(logits)[:-1]], 0)), dtype)


class Categorical(_Discrete):
    """One of several classes, by its number.

    Example:
        >>> policy = tf.distributions.Categorical(logits=net)
        >>> action = policy.sample(); entropy = policy.entropy()
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        super().__init__(name, logits, probs, dtype)

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return shape(self._logits)[-1]

    def _whole_shape(self) -> Tensor:
        return shape(self._logits)[:-1]

    def _static_shape(self) -> TensorShape:
        return self._logits.shape[:-1]

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return _draw(self._logits, count, seed, self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        wanted = broadcast_dynamic_shape(shape(value), self._whole_shape())
        labels = broadcast_to(cast(value, int32), wanted)
        logits = broadcast_to(self._logits, concat([wanted, shape(self._logits)[-1:]], 0))
        return -sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self._logits) * softmax(self._logits), -1)

    def _mode(self) -> Tensor:
        return argmax(self._logits, -1, output_type=self.dtype)


@RegisterKL(Categorical, Categorical)
def _(a: Categorical, b: Categorical) -> Tensor:
    difference = log_softmax(a.logits) - log_softmax(b.logits)
    return reduce_sum(softmax(a.logits) * difference, -1)


class OneHotCategorical(_Discrete):
    """One of several classes, as a row with a 1 (``tf.contrib.distributions``)."""

    _event_rank = 1

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        super().__init__(name, logits, probs, dtype)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        drawn = _draw(self._logits, count, seed, int32)
        return one_hot(drawn, shape(self._logits)[-1], dtype=self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        return reduce_sum(log_softmax(self._logits) * cast(value, self._logits.dtype), -1)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self._logits) * softmax(self._logits), -1)

    def _mode(self) -> Tensor:
        best = argmax(self._logits, -1, output_type=int32)
        return one_hot(best, shape(self._logits)[-1], dtype=self.dtype)


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _(a: OneHotCategorical, b: OneHotCategorical) -> Tensor:
    difference = log_softmax(a.logits) - log_softmax(b.logits)
    return reduce_sum(softmax(a.logits) * difference, -1)
