"""What fills static tables: tensors, and text files."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.lookup.table_ops import (
    LINE_NUMBER,
    WHOLE_LINE,
    initialize_from_file_op,
    initialize_op,
)


class TextFileIndex:
    """What of a text file's lines is a key or a value, unless it is a column."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TableInitializerBase:
    """Fills a table from keys of one type to values of another."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = as_dtype(key_dtype)
        self._value_dtype = as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    def initialize(self, table: Any) -> Operation:
        """The operation that fills ``table``."""
        raise NotImplementedError


class KeyValueTensorInitializer(TableInitializerBase):
    """Keys and values that are tensors.

    Example:
        >>> tf.lookup.KeyValueTensorInitializer(["emerson", "lake"], [0, 1])
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = name
        super().__init__(self._keys.dtype.base_dtype, self._values.dtype.base_dtype)

    def initialize(self, table: Any) -> Operation:
        made = initialize_op(
            table.resource_handle, self._keys, self._values, name=self._name or "table_init"
        )
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        return made


class TextFileInitializer(TableInitializerBase):
    """Keys and values that are columns, numbers or the whole of the lines of a text file.

    Example:
        >>> words = tf.lookup.TextFileInitializer(
        ...     "vocabulary.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
        ...     tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        for what, index, dtype in (
            ("Key", key_index, self.key_dtype),
            ("Value", value_index, self.value_dtype),
        ):
            if index < -2:
                raise ValueError(f"Invalid {what.lower()} index {index}.")
            if index == LINE_NUMBER and dtype is not dtypes.int64:
                raise ValueError(
                    f"Signature mismatch. {what}s must be dtype int64, got {dtype.name}."
                )
            if index == WHOLE_LINE and not (dtype.is_integer or dtype is dtypes.string):
                raise ValueError(
                    f"Signature mismatch. {what}s must be integer or string, got {dtype.name}."
                )
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._filename = convert_to_tensor(filename, dtypes.string, name="asset_filepath")
        self._how: dict[str, Any] = {
            "key_index": key_index,
            "value_index": value_index,
            "vocab_size": -1 if vocab_size is None else vocab_size,
            "delimiter": delimiter,
        }
        self._name = name

    def initialize(self, table: Any) -> Operation:
        graph = get_default_graph()
        made = initialize_from_file_op(
            table.resource_handle, self._filename, **self._how, name=self._name or "table_init"
        )
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)
        return made


class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table from the words of a text file, one in each line, to their int64 ids."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = WHOLE_LINE,
        value_column_index: int = LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_column_index,
            dtypes.int64,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )


class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table from int64 ids to the words of a text file, one in each line."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = LINE_NUMBER,
        value_column_index: int = WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename,
            dtypes.int64,
            key_column_index,
            dtypes.string,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )
