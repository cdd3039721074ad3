"""Mixtures: a sample comes from one of several distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.distributions.discrete import Categorical
from runnel.distributions.distribution import Distribution
from runnel.distributions.seeds import derived_seed
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import expand_dims
from runnel.ops.casting import cast
from runnel.ops.comparison import equal
from runnel.ops.elementwise import exp, square
from runnel.ops.joining import stack
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_logsumexp, reduce_sum
from runnel.ops.softmax import log_softmax, softmax


def _widened(value: Tensor, axes: int) -> Tensor:
    """``value`` with so many more dimensions at the end."""
    for _ in range(axes):
        value = expand_dims(value, -1)
    return value


class MixtureSameFamily(Distribution):
    """A mixture of the last dimension of a batch.

    Example:
        >>> tfd = tf.contrib.distributions
        >>> mixture = tfd.MixtureSameFamily(
        ...     tfd.Categorical(logits=logits), tfd.Normal(locs, scales)
        ... )
        >>> loss = -tf.reduce_mean(mixture.log_prob(labels))
    """

    def __init__(
        self,
        mixture_distribution: Any,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        super().__init__(
            name,
            mixture_distribution=mixture_distribution,
            components_distribution=components_distribution,
        )
        if not mixture_distribution.dtype.is_integer:
            raise ValueError(
                f"`mixture_distribution.dtype` ({mixture_distribution.dtype.name}) is not over "
                f"integers"
            )
        self._mixture = mixture_distribution
        self._components = components_distribution
        self._event_rank = components_distribution._event_rank

    @property
    def dtype(self) -> Any:
        return self._components.dtype

    @property
    def mixture_distribution(self) -> Any:
        """Which component a sample comes from."""
        return self._mixture

    @property
    def components_distribution(self) -> Distribution:
        """The components, in the last dimension of the batch."""
        return self._components

    @property
    def _axis(self) -> int:
        """The axis of the components in the components' samples."""
        return -1 - self._event_rank

    def _whole_shape(self) -> Tensor:
        whole = self._components._whole_shape()
        sizes = list(range(len(self._static_shape()) + 1))
        del sizes[self._axis]
        return stack([whole[i] for i in sizes]) if sizes else whole[:0]

    def _static_shape(self) -> TensorShape:
        dims = self._components._static_shape().as_list()
        del dims[self._axis]
        return TensorShape(dims)

    def _weighted(self, each: Tensor) -> Tensor:
        """The mean over components."""
        weights = _widened(softmax(self._mixture.logits), self._event_rank)
        return reduce_sum(weights * each, self._axis)

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        each = self._components._sample(count, seed)
        which = self._mixture._sample(count, derived_seed(seed, "mixture"))
        size = self._components._static_shape().as_list()[self._axis]
        mask = one_hot(which, size, dtype=self.dtype)
        return reduce_sum(each * _widened(mask, self._event_rank), self._axis)

    def _log_prob(self, value: Tensor) -> Tensor:
        each = self._components._log_prob(expand_dims(value, self._axis))
        return reduce_logsumexp(each + log_softmax(self._mixture.logits), -1)

    def _cdf(self, value: Tensor) -> Tensor:
        each = self._components._cdf(expand_dims(value, self._axis))
        return reduce_sum(softmax(self._mixture.logits) * each, -1)

    def _mean(self) -> Tensor:
        return self._weighted(self._components._mean())

    def _variance(self) -> Tensor:
        means = self._components._mean()
        within = self._weighted(self._components._variance())
        between = square(means - expand_dims(self._weighted(means), self._axis))
        return within + self._weighted(between)


class Mixture(Distribution):
    """A mixture of any distributions with the same shapes; ``cat`` says how likely each is."""

    def __init__(
        self,
        cat: Categorical,
        components: Sequence[Distribution],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        super().__init__(name, cat=cat, components=components)
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        if any(d.dtype != components[0].dtype for d in components):
            raise TypeError("All components must have the same dtype")
        size = cat.logits.shape[-1].value
        if size is not None and size != len(components):
            raise ValueError(f"cat.num_classes != len(components): {size} vs. {len(components)}")
        self._cat = cat
        self._components = list(components)
        self._event_rank = components[0]._event_rank

    @property
    def dtype(self) -> Any:
        return self._components[0].dtype

    @property
    def cat(self) -> Categorical:
        """Which component a sample comes from."""
        return self._cat

    @property
    def components(self) -> list[Distribution]:
        """The distributions."""
        return self._components

    @property
    def num_components(self) -> int:
        """How many there are."""
        return len(self._components)

    def _whole_shape(self) -> Tensor:
        return self._components[0]._whole_shape()

    def _static_shape(self) -> TensorShape:
        return self._components[0]._static_shape()

    def _weighted(self, each: list[Tensor]) -> Tensor:
        weights = softmax(self._cat.logits)
        terms = [
            value * _widened(weights[..., i], self._event_rank) for i, value in enumerate(each)
        ]
        return sum(terms[1:], terms[0])

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        which = self._cat._sample(count, seed)
        drawn = []
        for number, component in enumerate(self._components):
            chosen = _widened(cast(equal(which, number), self.dtype), self._event_rank)
            part = component._sample(count, derived_seed(seed, f"mixture{number}"))
            drawn.append(part * chosen)
        return sum(drawn[1:], drawn[0])

    def _log_prob(self, value: Tensor) -> Tensor:
        weights = log_softmax(self._cat.logits)
        each = [c._log_prob(value) + weights[..., i] for i, c in enumerate(self._components)]
        return reduce_logsumexp(stack(each), 0)

    def _cdf(self, value: Tensor) -> Tensor:
        weights = exp(log_softmax(self._cat.logits))
        each = [c._cdf(value) * weights[..., i] for i, c in enumerate(self._components)]
        return sum(each[1:], each[0])

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Tensor:
        """The mean of the entropies of the components."""
        weights = softmax(self._cat.logits)
        each = [c._entropy() * weights[..., i] for i, c in enumerate(self._components)]
        return sum(each[1:], each[0])

    def _mean(self) -> Tensor:
        return self._weighted([component._mean() for component in self._components])

    def _variance(self) -> Tensor:
        squares = [c._variance() + square(c._mean()) for c in self._components]
        return self._weighted(squares) - square(self._mean())
