"""Tables from keys to values that are filled once."""

from __future__ import annotations

from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.control import group
from runnel.ops.lookup import table_ops


class LookupInterface:
    """Gives values for keys."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = as_dtype(key_dtype)
        self._value_dtype = as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key; of a sparse tensor a sparse one."""
        if not is_sparse(keys):
            return self._values(self._keys(keys), name)
        sparse = SparseTensor.from_value(keys)
        values = self._values(self._keys(sparse.values), name)
        return SparseTensor(sparse.indices, values, sparse.dense_shape)

    def _keys(self, keys: Any) -> Tensor:
        tensor = keys if isinstance(keys, Tensor) else convert_to_tensor(keys, self._key_dtype)
        if tensor.dtype.base_dtype is not self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype.name}, got "
                f"{tensor.dtype.name}."
            )
        return tensor

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        raise NotImplementedError

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are."""
        raise NotImplementedError


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills; a subclass makes ``resource_handle`` first.

    ``default_value`` is what keys have that are not in it.
    """

    resource_handle: Tensor

    def __init__(self, default_value: Any, initializer: Any) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default = convert_to_tensor(default_value, self.value_dtype)
        if self._default.dims not in ((), None):
            raise ValueError(
                "The values of a static table are single ones; the default value has the shape "
                f"{self._default.shape}."
            )
        self._initializer: Operation = initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        return self._default

    @property
    def initializer(self) -> Operation:
        """The operation that fills it; ``tf.tables_initializer`` runs it too."""
        return self._initializer

    @property
    def init(self) -> Operation:
        return self._initializer

    @property
    def name(self) -> str:
        return self.resource_handle.op.name

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        return table_ops.find_op(self.resource_handle, keys, self._default, name=name)

    def size(self, name: str | None = None) -> Tensor:
        return table_ops.size_op(self.resource_handle, name=name)


class StaticHashTable(InitializableLookupTableBase):
    """A table that an initializer fills, once.

    Example:
        >>> keys_and_values = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> table = tf.lookup.StaticHashTable(keys_and_values, default_value=-1)
        >>> sess.run(tf.tables_initializer())
        >>> sess.run(table.lookup(tf.constant(["b", "z"])))  # [2, -1]
    """

    _shared_name: str | None = None

    def __init__(self, initializer: Any, default_value: Any, name: str | None = None) -> None:
        self.resource_handle = table_ops.hash_table_op(
            key_dtype=initializer.key_dtype,
            value_dtype=initializer.value_dtype,
            shared_name=self._shared_name or "",
            name=name or "hash_table",
        )
        super().__init__(default_value, initializer)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        keys, values = table_ops.export_op(
            self.resource_handle, Tkeys=self.key_dtype, Tvalues=self.value_dtype, name=name
        )
        return keys, values


class HashTable(StaticHashTable):
    """A static table; sessions on one task share those of one ``shared_name``."""

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._shared_name = shared_name
        super().__init__(initializer, default_value, name)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that fills all tables of the graph."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


initialize_all_tables = tables_initializer  # its name in TensorFlow 0.12
