"""``tf.contrib.lookup``: tables from keys to values, and those of vocabularies."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.lookup.initializers import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from runnel.ops.lookup.mutable_tables import MutableDenseHashTable, MutableHashTable
from runnel.ops.lookup.tables import HashTable, InitializableLookupTableBase, LookupInterface
from runnel.ops.lookup.vocabulary_tables import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    StrongHashSpec,
)
from runnel.ops.ranges import range as numbers_to

__all__ = [
    "FastHashSpec",
    "HashTable",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "InitializableLookupTableBase",
    "KeyValueTensorInitializer",
    "LookupInterface",
    "MutableDenseHashTable",
    "MutableHashTable",
    "StrongHashSpec",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]

_LINE, _NUMBER = TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
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
    _require_file(vocabulary_file, vocab_size)
    dtype = as_dtype(key_dtype)
    filled_by = TextFileIdTableInitializer(
        vocabulary_file,
        key_column_index,
        value_column_index,
        vocab_size,
        delimiter,
        "table_init",
        dtypes.int64 if dtype.is_integer else dtypes.string,
    )
    return _index_table(filled_by, num_oov_buckets, default_value, hasher_spec, dtype, name)


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """An older name of :func:`index_table_from_file`, for words."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table from the words of a list to their numbers.

    Example:
        >>> table = tf.contrib.lookup.index_table_from_tensor(["emerson", "lake", "palmer"])
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    kind = as_dtype(dtype)
    keys = convert_to_tensor(mapping)
    if kind.is_integer != keys.dtype.is_integer:
        wanted = "integer" if kind.is_integer else "non-integer"
        raise TypeError(f"Expected {wanted}, got {keys.dtype.name}.")
    if kind.is_integer:
        keys = cast(keys, dtypes.int64)
    values = cast(numbers_to(size(keys)), dtypes.int64)
    filled_by = KeyValueTensorInitializer(keys, values)
    return _index_table(filled_by, num_oov_buckets, default_value, hasher_spec, kind, name)


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """An older name of :func:`index_table_from_tensor`, for words."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """The number of each word of ``tensor`` in the list ``mapping``; a table is made for it."""
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def _index_table(
    filled_by: Any,
    num_oov_buckets: int,
    default_value: int,
    hasher_spec: HasherSpec,
    dtype: Any,
    name: str | None,
) -> Any:
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be >= 0, got {num_oov_buckets}.")
    table = HashTable(filled_by, np.int64(default_value), name=name)
    if not num_oov_buckets:
        return table
    return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, name, dtype)


def _require_file(vocabulary_file: Any, vocab_size: int | None) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = _NUMBER,
    value_column_index: int = _LINE,
    delimiter: str = "\t",
) -> HashTable:
    """A table from numbers to the words of a file."""
    _require_file(vocabulary_file, vocab_size)
    filled_by = TextFileStringTableInitializer(
        vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
    )
    return HashTable(filled_by, default_value, name=name)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> HashTable:
    """A table from numbers to the words of a list."""
    if mapping is None:
        raise ValueError("mapping must be specified.")
    values = convert_to_tensor(mapping, dtypes.string)
    keys = cast(numbers_to(size(values)), dtypes.int64)
    return HashTable(KeyValueTensorInitializer(keys, values), default_value, name=name)


def index_to_string(
    tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The word of each number of ``tensor`` in the list ``mapping``; a table is made for it."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def __dir__() -> list[str]:
    return __all__
