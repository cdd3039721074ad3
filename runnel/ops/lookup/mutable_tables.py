"""Tables that steps change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.ops.lookup import table_ops
from runnel.ops.lookup.tables import LookupInterface


class _TableSaveable(SaveableObject):
    """The keys and values of a table, as TensorFlow's checkpoints have them."""

    def __init__(self, table: MutableTable, name: str) -> None:
        self._handle = table.resource_handle
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table.resource_handle.op, specs, name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Operation:
        keys, values = restored_tensors
        graph = get_default_graph()
        with name_scope(f"{self.name}_table_restore"), graph.colocate_with(self._handle.op):
            return table_ops.import_op(self._handle, keys, values)


class MutableTable(LookupInterface):
    """What tables that steps change have in common; ``handle`` denotes the table."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Tensor,
        handle: Tensor,
        saved_as: str | None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default = default_value
        self.resource_handle = handle
        if saved_as is not None:
            self._be_saved(saved_as)

    def _be_saved(self, name: str) -> None:
        """Has savers save it, under ``name`` as in TensorFlow unless another has that."""
        collection = get_default_graph().get_collection_ref(GraphKeys.SAVEABLE_OBJECTS)
        taken = {saveable.name for saveable in collection}
        collection.append(_TableSaveable(self, self.name if name in taken else name))

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


class MutableHashTable(MutableTable):
    """A table that steps change; with ``checkpoint`` a ``Saver`` saves what is in it.

    A ``default_value`` that is a vector makes values vectors of that size.

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
        default = convert_to_tensor(default_value, value_dtype)
        described: dict[str, Any] = {
            "key_dtype": key_dtype,
            "value_dtype": value_dtype,
            "shared_name": shared_name or "",
            "use_node_name_sharing": checkpoint and shared_name is None,
            "name": name,
        }
        if default.dims == ():
            handle = table_ops.mutable_op(**described)
        else:
            handle = table_ops.mutable_of_tensors_op(value_shape=_known(default), **described)
        super().__init__(key_dtype, value_dtype, default, handle, name if checkpoint else None)

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        values = super()._values(keys, name)
        values.set_shape(keys.get_shape().concatenate(self._default.get_shape()))
        return values


class MutableDenseHashTable(MutableTable):
    """A table that steps change, in TensorFlow one of open addressing.

    ``empty_key`` and ``deleted_key`` are keys that it never has; keys have their shape, values that
    of ``default_value``. With ``checkpoint`` a ``Saver`` saves what is in it.

    Example:
        >>> table = tf.contrib.lookup.MutableDenseHashTable(
        ...     tf.int64, tf.float32, default_value=[0.0, 0.0], empty_key=-1, deleted_key=-2)
        >>> sess.run(table.insert(tf.constant([7], tf.int64), [[1.0, 2.0]]))
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        default = convert_to_tensor(default_value, value_dtype, name="default_value")
        handle = table_ops.dense_op(
            convert_to_tensor(empty_key, key_dtype, name="empty_key"),
            convert_to_tensor(deleted_key, key_dtype, name="deleted_key"),
            shared_name=shared_name or "",
            use_node_name_sharing=checkpoint and shared_name is None,
            value_dtype=value_dtype,
            value_shape=_known(default),
            initial_num_buckets=initial_num_buckets or 131072,
            name=name,
        )
        super().__init__(key_dtype, value_dtype, default, handle, name if checkpoint else None)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Sets the values of some keys."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        """Forgets some keys."""
        return self.remove(keys, name)


class DenseHashTable(MutableDenseHashTable):
    """``tf.lookup.experimental.DenseHashTable``; see :class:`MutableDenseHashTable`."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(
            key_dtype,
            value_dtype,
            default_value,
            empty_key,
            deleted_key,
            initial_num_buckets,
            None,
            name,
            checkpoint,
        )


def _known(default: Tensor) -> Any:
    shape = default.get_shape()
    if not shape.is_fully_defined():
        raise ValueError(
            f"The shape of the default value is that of all values: it must be known, not {shape}."
        )
    return shape
