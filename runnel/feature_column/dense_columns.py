"""Columns of numbers: each example has the same count of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runnel.feature_column.categorical_columns import (
    CategoricalColumn,
    FeatureColumn,
    IdsAndWeights,
    WeightedCategoricalColumn,
)
from runnel.feature_column.features import Features
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype, float32, int64
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.casting import cast
from runnel.ops.comparison import greater_equal
from runnel.ops.gather import gather
from runnel.ops.joining import stack
from runnel.ops.one_hot import one_hot
from runnel.ops.padding import tile
from runnel.ops.parsing.feature_kinds import FixedLenFeature
from runnel.ops.ranges import range as numbers_to
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.scatter_nd import scatter_nd
from runnel.ops.selection import where
from runnel.ops.sparse.dense import sparse_tensor_to_dense
from runnel.ops.sparse.embedding import safe_embedding_lookup_sparse
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import TruncatedNormal


class DenseColumn(FeatureColumn):
    """A column that gives each example a tensor of ``variable_shape``."""

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """The shape of what one example has."""
        raise NotImplementedError

    @property
    def scope_name(self) -> str:
        """The name of the scope of its variables."""
        return self.name

    def dense(self, features: Features, trainable: bool = True, collections: Any = None) -> Tensor:
        """The tensor of a batch; variables are made in the current scope."""
        raise NotImplementedError


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are, or normalised."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Tensor], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> tuple[int, ...]:
        return self.shape

    def _numbers(self, features: Features) -> Tensor:
        found = features.raw(self.key)
        if isinstance(found, SparseTensor):
            raise ValueError(
                f"The feature {self.key} of a numeric_column must be dense, not a SparseTensor"
            )
        if self.normalizer_fn is not None:
            found = convert_to_tensor(self.normalizer_fn(found))
        return cast(found, float32)

    def dense(self, features: Features, trainable: bool = True, collections: Any = None) -> Tensor:
        return features.once(self, lambda: self._numbers(features))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """In which of several ranges a number is."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def _count(self) -> int:
        return len(self.boundaries) + 1

    @property
    def num_buckets(self) -> int:
        return self._count * math.prod(self.source_column.shape)

    @property
    def variable_shape(self) -> tuple[int, ...]:
        return (*self.source_column.shape, self._count)

    def _buckets(self, features: Features) -> Tensor:
        numbers = expand_dims(self.source_column.dense(features), -1)
        passed = greater_equal(numbers, convert_to_tensor(list(self.boundaries), float32))
        return reduce_sum(cast(passed, int64), -1)

    def dense(self, features: Features, trainable: bool = True, collections: Any = None) -> Tensor:
        return one_hot(self._buckets(features), self._count, 1.0, 0.0)

    def _ids_and_weights(self, features: Features) -> IdsAndWeights:
        buckets = self._buckets(features)
        width = math.prod(self.source_column.shape)
        batch = shape(buckets, out_type=int64)[0]
        rows = tile(expand_dims(numbers_to(batch), 1), [1, width])
        columns = tile(expand_dims(numbers_to(width, dtype=int64), 0), stack([batch, 1]))
        ids = reshape(buckets, [-1]) + self._count * reshape(columns, [-1])
        indices = stack([reshape(rows, [-1]), reshape(columns, [-1])], axis=1)
        return SparseTensor(indices, ids, stack([batch, cast(width, int64)])), None


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often each category occurs in an example."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> tuple[int, ...]:
        return (self.categorical_column.num_buckets,)

    def dense(self, features: Features, trainable: bool = True, collections: Any = None) -> Tensor:
        ids, weights = self.categorical_column.ids_and_weights(features)
        count = self.categorical_column.num_buckets
        if weights is not None:
            known = where(ids.values >= 0)[:, 0]
            places = stack([ids.indices[:, 0], ids.values], axis=1)
            dims = stack([ids.dense_shape[0], cast(count, int64)])
            return scatter_nd(gather(places, known), gather(weights.values, known), dims)
        # A missing value is category -1, of which one_hot makes zeros.
        return reduce_sum(
            one_hot(sparse_tensor_to_dense(ids, default_value=-1), count, 1.0, 0.0), -2
        )


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """Rows of a table for categories, combined to one for each example."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    max_norm: float | None = None
    trainable: bool = True
    shared_name: str | None = None

    @property
    def name(self) -> str:
        kind = "embedding" if self.shared_name is None else "shared_embedding"
        return f"{self.categorical_column.name}_{kind}"

    @property
    def scope_name(self) -> str:
        return self.shared_name or self.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> tuple[int, ...]:
        return (self.dimension,)

    @property
    def table_name(self) -> str:
        """The name of its variable, in its scope."""
        return "embedding_weights"

    def _table(self, trainable: bool, collections: Any) -> Any:
        dims = [self.categorical_column.num_buckets, self.dimension]
        # All columns that share a table find it in the graph.
        kept = (
            []
            if self.shared_name is None
            else get_default_graph().get_collection_ref(("__shared_embedding", self.shared_name))
        )
        if not kept:
            made = get_variable(
                self.table_name,
                shape=dims,
                dtype=float32,
                initializer=self.initializer,
                trainable=self.trainable and trainable,
                collections=collections,
            )
            kept.append(made)
        return kept[0]

    def dense(self, features: Features, trainable: bool = True, collections: Any = None) -> Tensor:
        ids, weights = self.categorical_column.ids_and_weights(features)
        return safe_embedding_lookup_sparse(
            self._table(trainable, collections),
            ids,
            weights,
            combiner=self.combiner,
            name=f"{self.name}_weights",
            max_norm=self.max_norm,
        )


# Made by users ------------------------------------------------------------------------------------


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Callable[[Tensor], Any] | None = None,
) -> NumericColumn:
    """Numbers.

    Example:
        >>> tf.feature_column.numeric_column("age", normalizer_fn=lambda x: x / 100.0)
    """
    sizes = tuple(int(n) for n in ([shape] if isinstance(shape, int) else shape))
    if any(n < 1 for n in sizes):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind.name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    if isinstance(default_value, list):
        default_value = tuple(default_value)
    return NumericColumn(key, sizes, default_value, kind, normalizer_fn)


def bucketized_column(source_column: NumericColumn, boundaries: Any) -> BucketizedColumn:
    """In which range a number is: below the first boundary, from it to the second, and so on."""
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). Given: "
            f"{source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    given = tuple(boundaries)
    if not given or any(a >= b for a, b in zip(given, given[1:], strict=False)):
        raise ValueError(f"boundaries must be a sorted list. Given: {boundaries}")
    return BucketizedColumn(source_column, given)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """How often each category occurs, as numbers."""
    if isinstance(categorical_column, WeightedCategoricalColumn | CategoricalColumn):
        return IndicatorColumn(categorical_column)
    raise ValueError(f"indicator_column takes a categorical column, not {categorical_column!r}")


def _default_initializer(dimension: int) -> Any:
    return TruncatedNormal(mean=0.0, stddev=1 / math.sqrt(dimension))


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Rows of a trained table for categories.

    Example:
        >>> tf.feature_column.embedding_column(occupation, dimension=8)
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise NotImplementedError(
            "embedding_column does not load checkpoints: use tf.train.init_from_checkpoint"
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified, not {initializer!r}")
    return EmbeddingColumn(
        *(categorical_column, dimension, combiner),
        *(initializer or _default_initializer(dimension), max_norm, trainable),
    )


def shared_embedding_columns(
    categorical_columns: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[EmbeddingColumn]:
    """Embedding columns that have one table between them."""
    columns = list(categorical_columns)
    sizes = {column.num_buckets for column in columns}
    if len(sizes) != 1:
        raise ValueError(f"Columns that share a table need one number of categories, not {sizes}")
    name = shared_embedding_collection_name
    if not name:
        name = "_".join(sorted(column.name for column in columns)) + "_shared_embedding"
    start = initializer or _default_initializer(dimension)
    return [
        EmbeddingColumn(column, dimension, combiner, start, max_norm, trainable, name)
        for column in columns
    ]
