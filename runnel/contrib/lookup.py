"""``tf.contrib.lookup``: tables from keys to values, and those of vocabularies."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.registry import get_op_def
from runnel.ops.array_shape import size
from runnel.ops.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from runnel.ops.lookup.tables import MutableHashTable, StaticHashTable, StaticVocabularyTable
from runnel.ops.ranges import range as numbers_to

__all__ = [
    "HashTable",
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "TextFileIndex",
    "TextFileInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]

_LINE, _NUMBER = TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER


class HashTable(StaticHashTable):
    """A table that an initializer fills, once."""

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        del shared_name  # a static table is the same wherever it is filled alike
        super().__init__(initializer, default_value, name)


def index_table_from_file(
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = _LINE,
    value_column_index: int = _NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from the words of a file, one in each line, to their numbers.

    Example:
        >>> table = tf.contrib.lookup.index_table_from_file("vocabulary.txt", num_oov_buckets=1)
    """
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    dtype = as_dtype(key_dtype)
    filled_by = TextFileInitializer(
        vocabulary_file,
        dtypes.int64 if dtype.is_integer else dtypes.string,
        key_column_index,
        dtypes.int64,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return _index_table(filled_by, num_oov_buckets, default_value, dtype, name)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table from the words of a list to their numbers."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    kind = as_dtype(dtype)
    keys = convert_to_tensor(vocabulary_list)
    if kind.is_integer:
        keys = get_op_def("Cast")(keys, DstT=dtypes.int64)
    values = get_op_def("Cast")(numbers_to(size(keys)), DstT=dtypes.int64)
    filled_by = KeyValueTensorInitializer(keys, values)
    return _index_table(filled_by, num_oov_buckets, default_value, kind, name)


def _index_table(
    filled_by: Any, num_oov_buckets: int, default_value: int, dtype: Any, name: str | None
) -> Any:
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be >= 0, got {num_oov_buckets}.")
    if num_oov_buckets:
        return StaticVocabularyTable(filled_by, num_oov_buckets, dtype, name)
    return StaticHashTable(filled_by, np.int64(default_value), name)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = _NUMBER,
    value_column_index: int = _LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table from numbers to the words of a file."""
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    filled_by = TextFileInitializer(
        vocabulary_file,
        dtypes.int64,
        key_column_index,
        dtypes.string,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return StaticHashTable(filled_by, default_value, name)


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: str = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from numbers to the words of a list."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    values = convert_to_tensor(vocabulary_list, dtypes.string)
    keys = get_op_def("Cast")(numbers_to(size(values)), DstT=dtypes.int64)
    return StaticHashTable(KeyValueTensorInitializer(keys, values), default_value, name)


def __dir__() -> list[str]:
    return __all__
