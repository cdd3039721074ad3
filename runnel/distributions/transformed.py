"""``TransformedDistribution``: what a bijector makes of the samples of a distribution."""

from __future__ import annotations

from typing import Any

from runnel.distributions.bijectors.bijector import Bijector
from runnel.distributions.bijectors.elementwise import Identity
from runnel.distributions.distribution import Distribution
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.casting import cast
from runnel.ops.fill import zeros
from runnel.ops.joining import concat, stack
from runnel.ops.reduce_functions import reduce_logsumexp, reduce_prod, reduce_sum
from runnel.ops.transposition import transpose


class TransformedDistribution(Distribution):
    """The distribution of ``bijector.forward(x)`` for samples ``x`` of another.

    ``event_shape`` makes one event of so many independent numbers of a scalar distribution,
    ``batch_shape`` a batch of a single one.

    Example:
        >>> tfd = tf.contrib.distributions
        >>> positive = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfd.bijectors.Exp())
    """

    def __init__(
        self,
        distribution: Distribution,
        bijector: Bijector | None = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        bijector = Identity() if bijector is None else bijector
        super().__init__(
            name or bijector.name + distribution.name, distribution=distribution, bijector=bijector
        )
        self._distribution, self._bijector = distribution, bijector
        self._batch = None if batch_shape is None else convert_to_tensor(batch_shape, int32)
        self._event = None if event_shape is None else convert_to_tensor(event_shape, int32)
        if self._batch is not None and distribution.batch_shape.rank != 0:
            raise ValueError("Base distribution is not scalar: it has a batch already.")
        if self._event is not None and distribution._event_rank != 0:
            raise ValueError("Base distribution is not scalar: its events have dimensions already.")
        self.reparameterization_type = distribution.reparameterization_type
        self._event_rank = len(self.event_shape)

    @property
    def dtype(self) -> Any:
        return self._distribution.dtype

    @property
    def distribution(self) -> Distribution:
        """The distribution that is transformed."""
        return self._distribution

    @property
    def bijector(self) -> Bijector:
        """What transforms it."""
        return self._bijector

    # Shapes -----------------------------------------------------------------------------------

    def _base_event(self) -> TensorShape:
        return self._distribution.event_shape if self._event is None else _static(self._event)

    @property
    def event_shape(self) -> TensorShape:
        return self._bijector.forward_event_shape(self._base_event())

    @property
    def batch_shape(self) -> TensorShape:
        return self._distribution.batch_shape if self._batch is None else _static(self._batch)

    def _static_shape(self) -> TensorShape:
        return self.batch_shape.concatenate(self.event_shape)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        return self._distribution.batch_shape_tensor() if self._batch is None else self._batch

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        base = self._distribution.event_shape_tensor() if self._event is None else self._event
        return self._bijector.forward_event_shape_tensor(base)

    def _whole_shape(self) -> Tensor:
        return concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)

    # What it can say ----------------------------------------------------------------------------

    @property
    def _event_leads(self) -> bool:
        """Whether a batch of the base makes its numbers come as [event, count, batch]."""
        return self._event is not None and self._distribution.batch_shape.rank != 0

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample"
    ) -> Tensor:
        """Samples: a tensor of ``sample_shape``, then the shape of the batch."""
        with name_scope(f"{self._name}/{name}"):
            # Shaped before the bijector sees them, so that it knows the inverse of the result.
            found = self._bijector.forward(self._drawn(sample_shape, seed))
            if isinstance(sample_shape, int | tuple | list):
                sizes = [sample_shape] if isinstance(sample_shape, int) else list(sample_shape)
                found.set_shape(TensorShape(sizes).concatenate(self._static_shape()))
            return found

    def _drawn(self, sample_shape: Any, seed: int | None) -> Tensor:
        """Samples of the base, for all numbers of a batch or an event that it does not have."""
        given = sample_shape
        if isinstance(given, tuple | list | TensorShape):
            given = convert_to_tensor(list(TensorShape(list(given)).as_list()), int32)
        wanted = reshape(convert_to_tensor(given, int32), [-1])
        count = expand_dims(reduce_prod(wanted), 0)
        own = [part for part in (self._batch, self._event) if part is not None]
        parts = [*own, count] if self._event_leads else [count, *own]
        drawn = self._distribution.sample(concat(parts, 0), seed=seed)
        width = len(self._base_event())
        batch = self.batch_shape
        rank = 1 + len(batch) + width
        if self._event_leads:
            drawn = transpose(drawn, [*range(width, rank), *range(width)])
        drawn.set_shape(TensorShape([None]).concatenate(batch).concatenate(self._base_event()))
        return reshape(drawn, concat([wanted, shape(drawn)[1:]], 0))

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return self.sample(expand_dims(count, 0), seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        x = self._bijector.inverse(value)
        volume = self._bijector.inverse_log_det_jacobian(value, self._event_rank)
        if not isinstance(x, tuple):
            return self._density(x) + volume
        parts = [self._density(part) + more for part, more in zip(x, volume, strict=True)]
        return reduce_logsumexp(stack(parts), 0)

    def _density(self, x: Tensor) -> Tensor:
        width = len(self._base_event())
        if self._event is None or width == 0:
            return self._distribution._log_prob(x)
        if not self._event_leads:
            return reduce_sum(self._distribution._log_prob(x), list(range(-width, 0)))
        rank = len(x.shape)
        turned = transpose(x, [*range(rank - width, rank), *range(rank - width)])
        return reduce_sum(self._distribution._log_prob(turned), list(range(width)))

    def _require_injective(self, what: str) -> None:
        if not self._bijector._is_injective:
            raise NotImplementedError(f"{what} is not implemented when bijector is not injective.")

    def _cdf(self, value: Tensor) -> Tensor:
        self._require_injective("cdf")
        return self._distribution._cdf(self._bijector.inverse(value))

    def _log_cdf(self, value: Tensor) -> Tensor:
        self._require_injective("log_cdf")
        return self._distribution._log_cdf(self._bijector.inverse(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        self._require_injective("log_survival_function")
        return self._distribution._log_survival_function(self._bijector.inverse(value))

    def _mean(self) -> Tensor:
        if not self._bijector.is_constant_jacobian:
            raise NotImplementedError("mean is not implemented for non-affine bijectors")
        return self._bijector.forward(self._spread_out(self._distribution._mean()))

    def _spread_out(self, value: Tensor) -> Tensor:
        """A mean in the shape of the batch and the event."""
        for given in (self._batch, self._event):
            if given is not None:
                for _ in range(given.shape[0].value or 0):
                    value = expand_dims(value, -1)
        return value + _zeros_of(self._batch, self._event, value)

    def _entropy(self) -> Tensor:
        if not self._bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented for non-affine bijectors")
        entropy = self._distribution._entropy()
        if self._event is not None:
            entropy *= cast(reduce_prod(self._event), entropy.dtype)
        origin = self._spread_out(0.0 * self._distribution._mean())
        volume = self._bijector.forward_log_det_jacobian(origin, self._event_rank)
        return entropy + volume


def _zeros_of(batch: Tensor | None, event: Tensor | None, like: Tensor) -> Tensor:
    parts = [part for part in (batch, event) if part is not None]
    return zeros(concat(parts, 0) if parts else [], like.dtype.base_dtype)


def _static(given: Tensor) -> TensorShape:
    known = constant_value(given)
    if known is None:
        return TensorShape([None] * int(given.shape[0].value or 0))
    return TensorShape([int(size) for size in known.reshape(-1)])
