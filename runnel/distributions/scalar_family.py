"""``ScalarFamily``: distributions of numbers whose parameters are broadcast together."""

from __future__ import annotations

from functools import reduce
from typing import Any

from runnel.distributions.distribution import Distribution
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_static_shape
from runnel.ops.fill import zeros
from runnel.ops.joining import concat


def parameter(value: Any) -> Tensor:
    """A parameter as a tensor: float32, if it has no type of its own."""
    return convert_to_tensor(value, None if hasattr(value, "dtype") else float32)


class ScalarFamily(Distribution):
    """A distribution of numbers with any parameters; :meth:`given` has each as a tensor."""

    def __init__(self, name: str, **parameters: Any) -> None:
        super().__init__(name, **parameters)
        tensors = {key: parameter(value) for key, value in parameters.items() if value is not None}
        self._given = tensors

    def given(self, name: str) -> Tensor:
        """The parameter of a name."""
        return self._given[name]

    @property
    def dtype(self) -> Any:
        return next(iter(self._given.values())).dtype.base_dtype

    def _whole_shape(self) -> Tensor:
        return reduce(broadcast_dynamic_shape, [shape(v) for v in self._given.values()])

    def _static_shape(self) -> TensorShape:
        return reduce(broadcast_static_shape, [v.shape for v in self._given.values()])

    def _drawn_shape(self, count: Tensor) -> Tensor:
        return concat([expand_dims(count, 0), self._whole_shape()], 0)

    def _wide(self, value: Tensor) -> Tensor:
        """``value`` in the shape of the batch."""
        return value + zeros(self._whole_shape(), value.dtype)
