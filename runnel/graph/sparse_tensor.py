"""A tensor that holds only some elements: their coordinates and their values."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape


class SparseTensorValue(NamedTuple):
    """What a session gives for a :class:`SparseTensor`, and takes to feed one."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """``values[i]`` stands at ``indices[i]`` in a tensor of shape ``dense_shape``.

    ``indices`` is a matrix with a row of coordinates for each value, in the order of rows.

    Example:
        >>> tf.SparseTensor(indices=[[0, 0], [1, 2]], values=[1.0, 2.0], dense_shape=[3, 4])
    """

    is_composite = True
    """It is made of tensors, and has operators of its own that take one."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        rows = TensorShape(self._indices.dims).with_rank(2)
        count = TensorShape(self._values.dims).with_rank(1)
        rank = TensorShape(self._dense_shape.dims).with_rank(1)
        rows[0].assert_is_compatible_with(count[0])
        rows[1].assert_is_compatible_with(rank[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """``sparse_tensor_value``, or the sparse tensor that has it."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise TypeError(
                f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value!r}."
            )
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """As far as it is known beforehand."""
        return TensorShape(constant_value_as_dims(self._dense_shape))

    def get_shape(self) -> TensorShape:
        """As far as it is known beforehand."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Any:
        return self._indices.graph

    def consumers(self) -> list[Operation]:
        """The operations that take a part of it."""
        found = [op for part in sparse_parts(self) for op in part.consumers()]
        return list(dict.fromkeys(found))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Its value in a step of ``session``, or of the default session."""
        parts = [part.eval(feed_dict, session) for part in sparse_parts(self)]
        return SparseTensorValue(*parts)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, "
            f"dense_shape={self._dense_shape})"
        )


def sparse_parts(sparse: SparseTensor) -> list[Tensor]:
    """Its three tensors, in the order of its constructor."""
    return [sparse.indices, sparse.values, sparse.dense_shape]


def is_sparse(value: Any) -> bool:
    """True for a :class:`SparseTensor` or the value of one."""
    return isinstance(value, SparseTensor | SparseTensorValue)


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: Any = None) -> Any:
    """``value`` as a tensor; a sparse one stays sparse."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise RuntimeError(
                f"A sparse tensor of {value.dtype.name} cannot become one of "
                f"{dtypes.as_dtype(dtype).name}."
            )
        return value
    return convert_to_tensor(value, dtype, name=name)
