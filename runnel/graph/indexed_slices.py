"""A sparse set of slices of a larger tensor: the gradient of a gather, kept sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape


class IndexedSlices:
    """``values[i]`` is (part of) slice ``indices[i]`` of a tensor of shape ``dense_shape``.

    Slices with the same index add up. ``tf.convert_to_tensor`` makes it dense.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        if self._dense_shape is None:
            return TensorShape(None)
        from runnel.graph.constant_value import constant_value_as_dims

        return TensorShape(constant_value_as_dims(self._dense_shape))

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def device(self) -> str:
        return self._values.device

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def graph(self) -> Any:
        return self._values.graph

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)


class IndexedSlicesValue(NamedTuple):
    """What a session gives for :class:`IndexedSlices`, and takes to feed them."""

    values: Any
    indices: Any
    dense_shape: Any = None


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | IndexedSlices:
    """``value`` as a tensor; :class:`IndexedSlices` stay what they are, and of ``dtype`` if given.

    Example:
        >>> tf.convert_to_tensor_or_indexed_slices([1.0, 2.0])
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(value, dtype, name=name)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"IndexedSlices of {value.dtype.name} ({value.name!r}) cannot become ones of "
            f"{as_dtype(dtype).name}; cast their values"
        )
    return value
