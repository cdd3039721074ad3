"""The feature columns of ``tf.contrib.layers``: those of ``tf.feature_column``, by older names.

A column here also knows how a linear model combines several values of one example, and its
``order`` says where ``input_from_feature_columns`` puts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from runnel.feature_column.categorical_columns import (
    CategoricalColumn,
    CrossedColumn,
    FeatureColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    IdsAndWeights,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
    categorical_column_with_vocabulary_file,
)
from runnel.feature_column.dense_columns import (
    BucketizedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    NumericColumn,
)
from runnel.feature_column.features import Features
from runnel.graph.dtypes import as_dtype, float32, int32, int64, string
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.casting import cast
from runnel.ops.division import floormod
from runnel.ops.parsing.feature_kinds import VarLenFeature
from runnel.ops.strings.feature_crosses import sparse_feature_cross
from runnel.variables.initializers import TruncatedNormal


class ContribColumn(FeatureColumn):
    """What the columns of this file have beyond those of ``tf.feature_column``."""

    @property
    def order(self) -> str:
        """What columns are sorted by: their kind, then what they are made of."""
        raise NotImplementedError

    @property
    def config(self) -> dict[str, Any]:
        """How ``tf.parse_example`` reads the features of the column."""
        return self.parse_example_spec


class ContribSparseColumn(CategoricalColumn, ContribColumn):
    """A column of categories."""

    @property
    def length(self) -> int:
        """How many categories there are."""
        return self.num_buckets


@dataclass(frozen=True)
class RealValuedColumn(NumericColumn, ContribColumn):
    """Numbers as they are, or normalised."""

    @property
    def column_name(self) -> str:
        """The feature's name."""
        return self.name

    @property
    def dimension(self) -> int:
        """How many numbers an example has."""
        return self.shape[0]

    @property
    def order(self) -> str:
        return f"_RealValuedColumn(column_name='{self.name}'"


@dataclass(frozen=True)
class SparseColumnHashed(HashedCategoricalColumn, ContribSparseColumn):
    """Categories by a hash."""

    combiner: str = "sum"

    @property
    def order(self) -> str:
        return f"_SparseColumnHashed(column_name='{self.name}'"


@dataclass(frozen=True)
class SparseColumnIntegerized(IdentityCategoricalColumn, ContribSparseColumn):
    """Categories that are numbers already; larger ones wrap around."""

    combiner: str = "sum"

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        given = features.sparse(self.key)
        ids = floormod(cast(given.values, int64), cast(self.num_buckets, int64))
        return SparseTensor(given.indices, ids, given.dense_shape), None

    @property
    def order(self) -> str:
        return f"_SparseColumnIntegerized(column_name='{self.name}'"


@dataclass(frozen=True)
class SparseColumnKeys(VocabularyListCategoricalColumn, ContribSparseColumn):
    """Categories by their places in a list."""

    combiner: str = "sum"

    @property
    def order(self) -> str:
        return f"_SparseColumnKeys(column_name='{self.name}'"


@dataclass(frozen=True)
class SparseColumnVocabulary(VocabularyFileCategoricalColumn, ContribSparseColumn):
    """Categories by their lines in a file."""

    combiner: str = "sum"

    @property
    def order(self) -> str:
        return f"_SparseColumnVocabulary(column_name='{self.name}'"


@dataclass(frozen=True)
class WeightedSparseColumn(WeightedCategoricalColumn, ContribSparseColumn):
    """Categories of which another feature says how much they count."""

    @property
    def combiner(self) -> str:
        """How the values of an example are combined."""
        return combiner_of(self.categorical_column)

    @property
    def order(self) -> str:
        return f"_WeightedSparseColumn(sparse_id_column={order_key(self.categorical_column)}"


@dataclass(frozen=True)
class ContribBucketizedColumn(BucketizedColumn, ContribSparseColumn):
    """In which of several ranges a number is."""

    def ranges(self, features: Features) -> Tensor:
        """The number of the range that each number is in."""
        return cast(self._buckets(features), int32)

    @property
    def order(self) -> str:
        return f"_BucketizedColumn(source_column={order_key(self.source_column)}"


@dataclass(frozen=True)
class ContribCrossedColumn(CrossedColumn, ContribSparseColumn):
    """Every combination of the values of several columns, by a hash."""

    combiner: str = "sum"
    columns: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for column in self.columns:
            spec.update(column.parse_example_spec)
        return spec

    def _hashed(self, crossed: list[Any]) -> SparseTensor:
        return sparse_feature_cross(crossed, True, self.hash_bucket_size, hash_key=self.hash_key)

    @property
    def order(self) -> str:
        inner = ", ".join(order_key(column) for column in self.columns)
        return f"_CrossedColumn(columns=({inner}"


@dataclass(frozen=True)
class OneHotColumn(IndicatorColumn, ContribColumn):
    """How often each category occurs in an example."""

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_one_hot"

    @property
    def order(self) -> str:
        return f"_OneHotColumn(sparse_id_column={order_key(self.categorical_column)}"


@dataclass(frozen=True)
class ContribEmbeddingColumn(EmbeddingColumn, ContribColumn):
    """Rows of a trained table for categories, combined to one for each example."""

    @property
    def scope_name(self) -> str:
        return self.name

    @property
    def table_name(self) -> str:
        return self.shared_name or "weights"

    @property
    def order(self) -> str:
        return f"_EmbeddingColumn(sparse_id_column={order_key(self.categorical_column)}"


def order_key(column: Any) -> str:
    """What a column is sorted by: its kind, then what it is made of."""
    return getattr(column, "order", None) or str(column.name)


def combiner_of(column: Any) -> str:
    """How a linear model combines several values of one example."""
    return getattr(column, "combiner", "sum")


def _combiner(given: str) -> str:
    if given not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"Combiner must be one of 'mean', 'sqrtn' or 'sum', not {given!r}")
    return given


# Made by users ------------------------------------------------------------------------------------


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = float32,
    normalizer: Any = None,
) -> RealValuedColumn:
    """Numbers: ``dimension`` of them for each example.

    Example:
        >>> age = tf.contrib.layers.real_valued_column("age")
    """
    if not isinstance(dimension, int):
        raise TypeError(f"dimension must be an integer. dimension: {dimension}, {column_name}")
    if dimension < 1:
        raise ValueError(f"dimension must be greater than 0. dimension: {dimension}, {column_name}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind.name}, {column_name}")
    if default_value is not None and not isinstance(default_value, list | tuple):
        default_value = (default_value,) * dimension
    if default_value is not None and len(default_value) != dimension:
        raise ValueError(f"The length of default_value must be {dimension}: {default_value}")
    if normalizer is not None and not callable(normalizer):
        raise TypeError(f"normalizer must be a callable. normalizer: {normalizer}")
    default = None if default_value is None else tuple(default_value)
    return RealValuedColumn(column_name, (dimension,), default, kind, normalizer)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = int64
) -> SparseColumnIntegerized:
    """Categories that are numbers already; those of ``bucket_size`` and more wrap around."""
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"dtype must be an integer, not {as_dtype(dtype).name}: {column_name}")
    return SparseColumnIntegerized(column_name, bucket_size, None, _combiner(combiner))


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: Any = string,
    hash_keys: Any = None,
) -> SparseColumnHashed:
    """Categories by a hash, for features of which not all values are known."""
    if hash_keys is not None:
        raise NotImplementedError("sparse_column_with_hash_bucket has no hash_keys")
    kind = as_dtype(dtype)
    return SparseColumnHashed(column_name, hash_bucket_size, kind, _combiner(combiner))


def sparse_column_with_keys(
    column_name: str,
    keys: Any,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = string,
) -> SparseColumnKeys:
    """Categories that are the places of values in ``keys``.

    Example:
        >>> tf.contrib.layers.sparse_column_with_keys("gender", ["female", "male"])
    """
    words = tuple(keys)
    if not words:
        raise ValueError(f"keys must be non-empty: {column_name}")
    return SparseColumnKeys(
        column_name, words, as_dtype(dtype), default_value, 0, _combiner(combiner)
    )


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = string,
) -> SparseColumnVocabulary:
    """Categories that are the lines of values in a file."""
    found = categorical_column_with_vocabulary_file(
        *(column_name, vocabulary_file, vocab_size, num_oov_buckets),
        *(None if num_oov_buckets else default_value, dtype),
    )
    return SparseColumnVocabulary(
        *(column_name, found.vocabulary_file, found.vocabulary_size, num_oov_buckets),
        *(default_value, found.dtype, _combiner(combiner)),
    )


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: Any = float32
) -> WeightedSparseColumn:
    """Categories of which the feature ``weight_column_name`` says how much they count."""
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {kind.name}")
    return WeightedSparseColumn(sparse_id_column, weight_column_name, kind)


def bucketized_column(source_column: Any, boundaries: Any) -> ContribBucketizedColumn:
    """In which range a number is: below the first boundary, from it to the second, and so on."""
    if not isinstance(source_column, RealValuedColumn):
        raise TypeError(f"source_column must be a real_valued_column, not {source_column!r}")
    if not isinstance(boundaries, list | tuple) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. Given: {boundaries}")
    if any(a > b for a, b in zip(boundaries, boundaries[1:], strict=False)):
        raise ValueError(f"boundaries must be a sorted list. Given: {boundaries}")
    return ContribBucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> ContribCrossedColumn:
    """Every combination of the values of several columns.

    Example:
        >>> tf.contrib.layers.crossed_column([education, occupation], hash_bucket_size=10000)
    """
    _no_checkpoint("crossed_column", ckpt_to_load_from, tensor_name_in_ckpt)
    given = tuple(sorted(columns, key=lambda column: column.name))
    if len(given) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(f"hash_bucket_size must be at least 2, not {hash_bucket_size}")
    raw = SparseColumnHashed | SparseColumnKeys | SparseColumnIntegerized | SparseColumnVocabulary
    for column in given:
        if not isinstance(column, raw | ContribBucketizedColumn | ContribCrossedColumn):
            raise TypeError(
                "columns must be sparse columns, bucketized or crossed columns, not "
                f"{getattr(column, 'name', column)!r}"
            )
    # The values of sparse columns are crossed as they are, not their numbers.
    keys = tuple(column.key if isinstance(column, raw) else column for column in given)
    return ContribCrossedColumn(keys, hash_bucket_size, hash_key, _combiner(combiner), given)


def one_hot_column(sparse_id_column: Any) -> OneHotColumn:
    """How often each category occurs, as numbers."""
    return OneHotColumn(sparse_id_column)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> ContribEmbeddingColumn:
    """Rows of a trained table for categories.

    Example:
        >>> tf.contrib.layers.embedding_column(occupation, dimension=8)
    """
    [made] = _embeddings(
        *([sparse_id_column], dimension, combiner, initializer, None),
        *(ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable),
    )
    return made


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[ContribEmbeddingColumn]:
    """Embedding columns that have one table between them."""
    columns = list(sparse_id_columns)
    if not columns:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    if len({column.num_buckets for column in columns}) > 1:
        raise ValueError("Columns that share a table need one number of categories")
    names = sorted(column.name for column in columns)
    shared = shared_embedding_name or "_".join(names) + "_shared_embedding"
    return _embeddings(
        *(columns, dimension, combiner, initializer, shared),
        *(ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable),
    )


def _embeddings(
    columns: list[Any],
    dimension: int,
    combiner: str,
    initializer: Any,
    shared: str | None,
    checkpoint: str | None,
    tensor_name: str | None,
    max_norm: float | None,
    trainable: bool,
) -> list[ContribEmbeddingColumn]:
    _no_checkpoint("embedding_column", checkpoint, tensor_name)
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified, not {initializer!r}")
    start = initializer or TruncatedNormal(stddev=1 / math.sqrt(columns[0].num_buckets))
    return [
        ContribEmbeddingColumn(
            column, dimension, _combiner(combiner), start, max_norm, trainable, shared
        )
        for column in columns
    ]


def _no_checkpoint(what: str, *given: str | None) -> None:
    if any(value is not None for value in given):
        raise NotImplementedError(
            f"{what} does not load checkpoints: use tf.train.init_from_checkpoint"
        )


def feature_spec(columns: Any) -> dict[str, Any]:
    """How ``tf.parse_example`` reads the features of ``columns``."""
    spec: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"Items of feature_columns must be columns, not {column!r}")
        for name, value in column.parse_example_spec.items():
            known = spec.get(name)
            if known is not None and type(known) is not type(value):
                raise ValueError(f"Columns read the feature {name} as {known} and as {value}")
            spec[name] = value if known is None or not isinstance(known, VarLenFeature) else known
    return spec
