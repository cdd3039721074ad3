"""Tables from keys to values: static, with buckets for unknown keys, and those that change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.control import group
from runnel.ops.lookup import table_ops
from runnel.ops.selection import where
from runnel.ops.strings.conversions import as_string
from runnel.ops.strings.hash_buckets import string_to_hash_bucket_fast


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


class StaticHashTable(LookupInterface):
    """A table that an initializer fills, once.

    Example:
        >>> keys_and_values = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> table = tf.lookup.StaticHashTable(keys_and_values, default_value=-1)
        >>> sess.run(tf.tables_initializer())
        >>> sess.run(table.lookup(tf.constant(["b", "z"])))  # [2, -1]
    """

    def __init__(self, initializer: Any, default_value: Any, name: str | None = None) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self.resource_handle = table_ops.hash_table_op(
            key_dtype=self.key_dtype, value_dtype=self.value_dtype, name=name or "hash_table"
        )
        self._default = convert_to_tensor(default_value, self.value_dtype)
        self._initializer = initializer.initialize(self)

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

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        keys, values = table_ops.export_op(
            self.resource_handle, Tkeys=self.key_dtype, Tvalues=self.value_dtype, name=name
        )
        return keys, values


class StaticVocabularyTable(LookupInterface):
    """A table to int64 ids, with ids behind them for keys that it does not have.

    Unknown keys are sorted into ``num_oov_buckets`` by their hash.
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets < 0 or (not num_oov_buckets and initializer is None):
            raise ValueError(f"num_oov_buckets must be greater than 0, not {num_oov_buckets}")
        self._buckets = num_oov_buckets
        self._table: StaticHashTable | None = None
        key_dtype = lookup_key_dtype or dtypes.string
        if initializer is not None:
            if initializer.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"Invalid value dtype, expected int64 but got {initializer.value_dtype.name}."
                )
            self._table = StaticHashTable(initializer, default_value=-1)
            key_dtype = lookup_key_dtype or initializer.key_dtype
        super().__init__(key_dtype, dtypes.int64)
        self._name = name

    @property
    def initializer(self) -> Operation:
        """The operation that fills it."""
        if self._table is not None:
            return self._table.initializer
        return group()

    @property
    def init(self) -> Operation:
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """How many ids there are, those of unknown keys included."""
        known = convert_to_tensor(self._buckets, dtypes.int64)
        return known if self._table is None else self._table.size() + known

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        with name_scope(name, f"{self._name or 'vocabulary'}_Lookup", [keys]) as scope:
            if self._table is None:
                return self._hashed(keys)
            inner = keys
            if keys.dtype.base_dtype is not self._table.key_dtype:
                inner = get_op_def("Cast")(keys, DstT=self._table.key_dtype)
            ids = self._table.lookup(inner)
            if not self._buckets:
                return ids
            known = get_op_def("NotEqual")(ids, self._table.default_value)
            return where(known, ids, self._hashed(keys) + self._table.size(), name=scope)

    def _hashed(self, keys: Tensor) -> Tensor:
        texts = keys if keys.dtype.base_dtype is dtypes.string else as_string(keys)
        return string_to_hash_bucket_fast(texts, self._buckets)


class _TableSaveable(SaveableObject):
    """The keys and values of a table, as TensorFlow's checkpoints have them."""

    def __init__(self, table: MutableHashTable, name: str) -> None:
        self._handle = table.resource_handle
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table.resource_handle.op, specs, name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Operation:
        keys, values = restored_tensors
        graph = get_default_graph()
        with name_scope(f"{self.name}_table_restore"), graph.colocate_with(self._handle.op):
            return table_ops.import_op(self._handle, keys, values)


def _add_saveable(table: MutableHashTable, name: str) -> None:
    """Has savers save ``table``, under ``name`` as in TensorFlow unless another has that."""
    collection = get_default_graph().get_collection_ref(GraphKeys.SAVEABLE_OBJECTS)
    taken = {saveable.name for saveable in collection}
    collection.append(_TableSaveable(table, table.name if name in taken else name))


class MutableHashTable(LookupInterface):
    """A table that steps change; with ``checkpoint`` a ``Saver`` saves what is in it.

    Example:
        >>> table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
        >>> sess.run(table.insert(tf.constant(["a"]), tf.constant([1], tf.int64)))
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default = convert_to_tensor(default_value, self.value_dtype)
        if self._default.dims != ():
            raise ValueError(
                f"The values of a table are single ones; the default value has the shape "
                f"{self._default.shape}."
            )
        self.resource_handle = table_ops.mutable_op(
            key_dtype=self.key_dtype,
            value_dtype=self.value_dtype,
            shared_name=shared_name or "",
            name=name,
        )
        if checkpoint:
            _add_saveable(self, name)

    @property
    def name(self) -> str:
        return self.resource_handle.op.name

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        return table_ops.find_op(self.resource_handle, keys, self._default, name=name)

    def size(self, name: str | None = None) -> Tensor:
        return table_ops.size_op(self.resource_handle, name=name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Sets the values of some keys."""
        tensor = convert_to_tensor(values, self.value_dtype)
        return table_ops.insert_op(self.resource_handle, self._keys(keys), tensor, name=name)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Forgets some keys."""
        return table_ops.remove_op(self.resource_handle, self._keys(keys), name=name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        keys, values = table_ops.export_op(
            self.resource_handle, Tkeys=self.key_dtype, Tvalues=self.value_dtype, name=name
        )
        return keys, values


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that fills all tables of the graph."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


initialize_all_tables = tables_initializer  # its name in TensorFlow 0.12
