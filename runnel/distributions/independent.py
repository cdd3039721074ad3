"""``Independent``: the distributions of a batch as one distribution of all of them."""

from __future__ import annotations

from typing import Any

from runnel.distributions.distribution import Distribution, RegisterKL, kl_divergence
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.reduce_functions import reduce_sum


class Independent(Distribution):
    """The last ``reinterpreted_batch_ndims`` dimensions of a batch as dimensions of one event.

    By default, all dimensions of the batch but the first.

    Example:
        >>> pixels = tf.distributions.Bernoulli(logits=logits)  # a batch [images, height, width]
        >>> image = tf.contrib.distributions.Independent(pixels, reinterpreted_batch_ndims=2)
        >>> image.log_prob(images)  # one for each image
    """

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        rank = distribution.batch_shape.rank
        count = reinterpreted_batch_ndims
        if count is None:
            if rank is None:
                raise ValueError(
                    "The rank of the batch is not known: say which part of it is meant"
                )
            count = max(0, rank - 1)
        if rank is not None and count > rank:
            raise ValueError(
                f"reinterpreted_batch_ndims({count}) cannot exceed distribution.batch_ndims({rank})"
            )
        super().__init__(
            name or "Independent" + distribution.name,
            distribution=distribution,
            reinterpreted_batch_ndims=reinterpreted_batch_ndims,
        )
        self.distribution = distribution
        self.reinterpreted_batch_ndims = count
        self.reparameterization_type = distribution.reparameterization_type
        self._event_rank = distribution._event_rank + count

    @property
    def dtype(self) -> Any:
        return self.distribution.dtype

    def _over_event(self, each: Tensor) -> Tensor:
        axes = [-1 - axis for axis in range(self.reinterpreted_batch_ndims)]
        return reduce_sum(each, axes) if axes else each

    def _whole_shape(self) -> Tensor:
        return self.distribution._whole_shape()

    def _static_shape(self) -> TensorShape:
        return self.distribution._static_shape()

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return self.distribution._sample(count, seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._over_event(self.distribution._log_prob(value))

    def _entropy(self) -> Tensor:
        return self._over_event(self.distribution._entropy())

    def _mean(self) -> Tensor:
        return self.distribution._mean()

    def _mode(self) -> Tensor:
        return self.distribution._mode()

    def _variance(self) -> Tensor:
        return self.distribution._variance()


@RegisterKL(Independent, Independent)
def _(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    if a.event_shape.as_list() != b.event_shape.as_list():
        raise ValueError(f"Event shapes do not match: {a.event_shape} and {b.event_shape}")
    return a._over_event(kl_divergence(a.distribution, b.distribution, name=name))
