"""Tables from words to ids, with buckets of ids for words that they do not have."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.ops.casting import cast
from runnel.ops.comparison import not_equal
from runnel.ops.control import group
from runnel.ops.lookup.tables import LookupInterface, StaticHashTable
from runnel.ops.selection import where
from runnel.ops.strings.conversions import as_string
from runnel.ops.strings.hash_buckets import (
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)


class HasherSpec(NamedTuple):
    """How unknown keys are sorted into buckets: ``"fasthash"``, or ``"stronghash"`` by a key."""

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """Unknown keys are sorted by a hash under two numbers that nobody else knows.

    Example:
        >>> tf.contrib.lookup.StrongHashSpec([0x1234, 0x5678])
    """

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {len(key)}.")
        if not all(isinstance(number, int) for number in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


class IdTableWithHashBuckets(LookupInterface):
    """A table to int64 ids, with ids behind them for keys that ``table`` does not have.

    ``table`` may be None: then all keys are sorted into ``num_oov_buckets`` by their hash.

    Example:
        >>> words = tf.contrib.lookup.HashTable(initializer, -1)
        >>> ids = tf.contrib.lookup.IdTableWithHashBuckets(words, num_oov_buckets=3)
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if table is None and num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec!r}")
        wanted = None if key_dtype is None else as_dtype(key_dtype)
        if table is not None:
            wanted = wanted or table.key_dtype
            if table.key_dtype not in (dtypes.int64, dtypes.string):
                raise TypeError(
                    f"Invalid key dtype, expected int64 or string, but got {table.key_dtype.name}."
                )
            if table.key_dtype.is_integer != wanted.is_integer:
                kind = "integer" if table.key_dtype.is_integer else "non-integer"
                raise TypeError(f"Invalid key dtype, expected {kind} but got {wanted.name}.")
            if table.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"Invalid value dtype, expected int64 but got {table.value_dtype.name}."
                )
        super().__init__(wanted or dtypes.string, dtypes.int64)
        if not (self.key_dtype.is_integer or self.key_dtype is dtypes.string):
            raise TypeError(
                f"Invalid key_dtype, expected integer or string, got {self.key_dtype.name}."
            )
        self._table = table
        self._buckets = num_oov_buckets
        self._hasher = hasher_spec
        self._name = name

    @property
    def name(self) -> str:
        """What its operations are called after."""
        return self._name or ("hash_bucket" if self._table is None else self._table.name)

    @property
    def initializer(self) -> Operation:
        """The operation that fills it."""
        return group() if self._table is None else self._table.initializer

    @property
    def init(self) -> Operation:
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """How many ids there are, those of unknown keys included."""
        buckets = convert_to_tensor(self._buckets, dtypes.int64)
        return buckets if self._table is None else self._table.size() + buckets

    def _values(self, keys: Tensor, name: str | None) -> Tensor:
        with name_scope(name, f"{self.name.rsplit('/', 1)[-1]}_Lookup", [keys]) as scope:
            if self._table is None:
                return self._hashed(keys)
            inner = keys
            if keys.dtype.base_dtype is not self._table.key_dtype:
                inner = cast(keys, self._table.key_dtype)
            ids: Tensor = self._table.lookup(inner)
            if not self._buckets:
                return ids
            known = not_equal(ids, self._table.default_value)
            return where(known, ids, self._hashed(keys) + self._table.size(), name=scope)

    def _hashed(self, keys: Tensor) -> Tensor:
        texts = keys if keys.dtype.base_dtype is dtypes.string else as_string(keys)
        if self._hasher.hasher == "fasthash":
            return string_to_hash_bucket_fast(texts, self._buckets)
        if self._hasher.hasher == "stronghash":
            return string_to_hash_bucket_strong(texts, self._buckets, self._hasher.key)
        raise ValueError(f"Unknown hasher {self._hasher.hasher}: fasthash or stronghash")


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A table to int64 ids that ``initializer`` fills, with ids behind them for other keys.

    Unknown keys are sorted into ``num_oov_buckets`` by their hash.
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError(f"num_oov_buckets must be greater than 0, not {num_oov_buckets}")
        table = None if initializer is None else StaticHashTable(initializer, default_value=-1)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)
