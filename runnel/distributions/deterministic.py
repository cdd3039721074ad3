"""Distributions that have one value only."""

from __future__ import annotations

from typing import Any

from runnel.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from runnel.distributions.scalar_family import parameter
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import log
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_all


class Deterministic(Distribution):
    """``loc``, always. Values within ``atol + rtol * abs(loc)`` of it count as it."""

    reparameterization_type = FULLY_REPARAMETERIZED

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        super().__init__(name, loc=loc, atol=atol, rtol=rtol)
        self._loc = parameter(loc)
        self._slack = (0.0 if atol is None else atol) + (
            0.0 if rtol is None else rtol * abs_(self._loc)
        )

    @property
    def dtype(self) -> Any:
        return self._loc.dtype.base_dtype

    @property
    def loc(self) -> Tensor:
        """The value."""
        return self._loc

    def _whole_shape(self) -> Tensor:
        return shape(self._loc)

    def _static_shape(self) -> TensorShape:
        return self._loc.shape

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        return broadcast_to(self._loc, concat([expand_dims(count, 0), shape(self._loc)], 0))

    def _is_it(self, value: Tensor) -> Tensor:
        return abs_(value - self._loc) <= self._slack

    def _log_prob(self, value: Tensor) -> Tensor:
        return log(cast(self._is_it(value), self.dtype))

    def _cdf(self, value: Tensor) -> Tensor:
        return cast(value >= self._loc - self._slack, self.dtype)

    def _entropy(self) -> Tensor:
        return self._over_event_zeros()

    def _over_event_zeros(self) -> Tensor:
        return zeros_like(self._loc)

    def _mean(self) -> Tensor:
        return self._loc

    _mode = _mean

    def _variance(self) -> Tensor:
        return zeros_like(self._loc)


class VectorDeterministic(Deterministic):
    """The vector ``loc``, always."""

    _event_rank = 1

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDeterministic",
    ) -> None:
        super().__init__(loc, atol, rtol, name=name)

    def _is_it(self, value: Tensor) -> Tensor:
        return reduce_all(super()._is_it(value), -1)

    def _over_event_zeros(self) -> Tensor:
        return zeros_like(self._loc[..., 0])
