"""Columns of categories: each value of a feature becomes a number below ``num_buckets``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.feature_column.features import Features
from runnel.gfile import GFile
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype, float32, int64, string
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import shape
from runnel.ops.assertions import assert_greater_equal, assert_less
from runnel.ops.casting import cast
from runnel.ops.comparison import logical_or
from runnel.ops.control import identity
from runnel.ops.fill import fill
from runnel.ops.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from runnel.ops.lookup.tables import StaticHashTable
from runnel.ops.lookup.vocabulary_tables import StaticVocabularyTable
from runnel.ops.parsing.feature_kinds import VarLenFeature
from runnel.ops.ranges import range as numbers_to
from runnel.ops.selection import where
from runnel.ops.strings.conversions import as_string
from runnel.ops.strings.feature_crosses import sparse_cross_hashed
from runnel.ops.strings.hash_buckets import string_to_hash_bucket_fast

IdsAndWeights = tuple[SparseTensor, SparseTensor | None]


class FeatureColumn:
    """What a model is told of a feature; columns are compared by what they are made of."""

    @property
    def name(self) -> str:
        """The name of its variables' scope."""
        raise NotImplementedError

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How ``tf.parse_example`` reads its features."""
        raise NotImplementedError


class CategoricalColumn(FeatureColumn):
    """A column whose values are categories."""

    @property
    def num_buckets(self) -> int:
        """How many categories there are."""
        raise NotImplementedError

    def ids_and_weights(self, features: Features) -> IdsAndWeights:
        """The categories of each example, and how much each counts (None: 1)."""
        return features.once(self, lambda: self._ids_and_weights(features))  # type: ignore[no-any-return]

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        raise NotImplementedError


def _with_values(given: SparseTensor, values: Tensor) -> SparseTensor:
    return SparseTensor(given.indices, values, given.dense_shape)


@dataclass(frozen=True)
class HashedCategoricalColumn(CategoricalColumn):
    """Categories by a hash."""

    key: str
    hash_bucket_size: int
    dtype: DType = string

    def __post_init__(self) -> None:
        if self.hash_bucket_size is None or self.hash_bucket_size < 1:
            raise ValueError(f"hash_bucket_size must be at least 1: {self.hash_bucket_size}")

    @property
    def name(self) -> str:
        return self.key

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        given = features.sparse(self.key)
        text = given.values if given.values.dtype.base_dtype is string else as_string(given.values)
        return _with_values(given, string_to_hash_bucket_fast(text, self.num_buckets)), None


@dataclass(frozen=True)
class IdentityCategoricalColumn(CategoricalColumn):
    """Categories that are numbers already."""

    key: str
    buckets: int
    default_value: int | None = None

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise ValueError(f"num_buckets {self.num_buckets} < 1, column_name {self.key}")
        if self.default_value is not None and not 0 <= self.default_value < self.num_buckets:
            raise ValueError(
                f"default_value {self.default_value} not in range [0, {self.num_buckets}), "
                f"column_name {self.key}"
            )

    @property
    def name(self) -> str:
        return self.key

    @property
    def num_buckets(self) -> int:
        return self.buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(int64)}

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        given = features.sparse(self.key)
        if not given.values.dtype.base_dtype.is_integer:
            raise ValueError(
                f"Invalid input, not integer. key: {self.key} dtype: {given.values.dtype.name}"
            )
        ids = cast(given.values, int64)
        if self.default_value is None:
            checks = [
                assert_less(
                    ids, cast(self.num_buckets, int64), name="assert_less_than_num_buckets"
                ),
                assert_greater_equal(ids, cast(0, int64), name="assert_greater_or_equal_0"),
            ]
            with control_dependencies(checks):
                ids = identity(ids)
        else:
            outside = logical_or(ids < 0, ids >= self.num_buckets)
            ids = where(outside, fill(shape(ids), cast(self.default_value, int64)), ids)
        return _with_values(given, ids), None


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(CategoricalColumn):
    """Categories by their places in a list."""

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int = -1
    num_oov_buckets: int = 0

    @property
    def name(self) -> str:
        return self.key

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        given = features.sparse(self.key)
        values = given.values
        if (values.dtype.base_dtype is string) != (self.dtype is string):
            raise ValueError(
                f"Column {self.key} has a vocabulary of {self.dtype.name}, but the feature is "
                f"{values.dtype.name}"
            )
        kind = string if self.dtype is string else int64
        with name_scope(f"{self.key}_lookup"):
            keys = convert_to_tensor(list(self.vocabulary_list), kind)
            places = numbers_to(len(self.vocabulary_list), dtype=int64)
            table = _table(KeyValueTensorInitializer(keys, places), self)
            values = values if kind is string else cast(values, int64)
            return _with_values(given, table.lookup(values)), None


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(CategoricalColumn):
    """Categories by their lines in a file."""

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int = 0
    default_value: int = -1
    dtype: DType = string

    @property
    def name(self) -> str:
        return self.key

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        given = features.sparse(self.key)
        text = self.dtype is string
        with name_scope(f"{self.key}_lookup"):
            lines = TextFileInitializer(
                self.vocabulary_file,
                string if text else int64,
                TextFileIndex.WHOLE_LINE,
                int64,
                TextFileIndex.LINE_NUMBER,
                vocab_size=self.vocabulary_size,
            )
            values = given.values if text else cast(given.values, int64)
            return _with_values(given, _table(lines, self).lookup(values)), None


def _table(lines: Any, column: Any) -> Any:
    if column.num_oov_buckets:
        return StaticVocabularyTable(lines, column.num_oov_buckets)
    return StaticHashTable(lines, column.default_value)


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """Categories of which another feature says how much they count."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType = float32

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        inner = self.categorical_column.parse_example_spec
        return {**inner, self.weight_feature_key: VarLenFeature(self.dtype)}

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        ids, _ = self.categorical_column.ids_and_weights(features)
        weights = features.sparse(self.weight_feature_key, 0)
        return ids, _with_values(weights, cast(weights.values, float32))


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Every combination of the categories of several features, by a hash."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None = None

    @property
    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for key in self.keys:
            found += key._leaves if isinstance(key, CrossedColumn) else [key]
        return found

    @property
    def name(self) -> str:
        names = [leaf if isinstance(leaf, str) else leaf.name for leaf in self._leaves]
        return "_X_".join(sorted(names))

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update(
                {key: VarLenFeature(string)} if isinstance(key, str) else key.parse_example_spec
            )
        return spec

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        crossed: list[Any] = []
        for leaf in self._leaves:
            if isinstance(leaf, str):
                crossed.append(features.raw(leaf))
                continue
            ids, weights = leaf.ids_and_weights(features)
            if weights is not None:
                raise ValueError(f"crossed_column does not support weighted columns: {leaf.name}")
            crossed.append(ids)
        return self._hashed(crossed), None

    def _hashed(self, crossed: list[Any]) -> SparseTensor:
        return sparse_cross_hashed(crossed, self.hash_bucket_size, self.hash_key)


# Made by users ------------------------------------------------------------------------------------


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = string
) -> HashedCategoricalColumn:
    """Categories by a hash, for features of which not all values are known."""
    return HashedCategoricalColumn(key, hash_bucket_size, as_dtype(dtype))


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Categories that are numbers below ``num_buckets`` already."""
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Any,
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Categories that are the places of values in a list.

    Example:
        >>> tf.feature_column.categorical_column_with_vocabulary_list("sex", ["Female", "Male"])
    """
    words = tuple(vocabulary_list) if vocabulary_list is not None else ()
    if not words:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    if num_oov_buckets and default_value != -1:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
    if dtype is None:
        dtype = string if np.asarray(words).dtype.kind in "USO" else int64
    return VocabularyListCategoricalColumn(
        key, words, as_dtype(dtype), default_value, num_oov_buckets
    )


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> VocabularyFileCategoricalColumn:
    """Categories that are the lines of values in a file."""
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        with GFile(vocabulary_file) as file:
            vocabulary_size = sum(1 for _ in file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    if num_oov_buckets and default_value is not None:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    return VocabularyFileCategoricalColumn(
        *(key, str(vocabulary_file), vocabulary_size, num_oov_buckets),
        *(-1 if default_value is None else default_value, as_dtype(dtype)),
    )


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedCategoricalColumn:
    """Categories of which the feature ``weight_feature_key`` says how much they count."""
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, as_dtype(dtype))


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Every combination of the values of several features, or of categorical columns."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    given = tuple(keys) if not isinstance(keys, str) else (keys,)
    if len(given) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in given:
        if not isinstance(key, str | CategoricalColumn):
            raise ValueError(f"Unsupported key type: a string or a categorical column, not {key}")
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before "
                f"crossing will increase probability of collision. Instead, use {key.key!r}"
            )
    return CrossedColumn(given, hash_bucket_size, hash_key)
