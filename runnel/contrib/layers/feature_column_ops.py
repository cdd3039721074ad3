"""Feature columns as the inputs of models: joined, weighted, parsed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runnel.contrib.layers.feature_columns import (
    ContribBucketizedColumn,
    RealValuedColumn,
    combiner_of,
    feature_spec,
    order_key,
    real_valued_column,
)
from runnel.feature_column.categorical_columns import CategoricalColumn, FeatureColumn
from runnel.feature_column.dense_columns import DenseColumn
from runnel.feature_column.features import Features
from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import float32, int64
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.arithmetic import add_n
from runnel.ops.array_shape import reshape, shape
from runnel.ops.bias import bias_add
from runnel.ops.casting import cast
from runnel.ops.comparison import less
from runnel.ops.constants import placeholder
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.parsing.feature_kinds import VarLenFeature
from runnel.ops.parsing.parse_example import parse_example
from runnel.ops.selection import where
from runnel.ops.sparse.arranging import sparse_reshape
from runnel.ops.sparse.embedding import safe_embedding_lookup_sparse
from runnel.ops.sparse.placeholder import sparse_placeholder
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import variable_scope


def check_feature_columns(feature_columns: Any) -> None:
    """Refuses columns of which two have one name."""
    seen: set[str] = set()
    for column in feature_columns:
        if column.name in seen:
            raise ValueError(f"Duplicate feature column key found for column: {column.name}.")
        seen.add(column.name)


def _sorted(feature_columns: Any) -> list[Any]:
    given = list(feature_columns)
    if not given:
        raise ValueError("feature_columns must not be empty.")
    for column in given:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"Items of feature_columns must be columns, not {column!r}")
    check_feature_columns(given)
    return sorted(given, key=order_key)


def _collections(given: Any) -> list[str]:
    standard = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return list(dict.fromkeys([*(given or ()), *standard]))


def _flat(column: DenseColumn, tensor: Tensor) -> Tensor:
    # The shape of a real_valued_column that does not say its dimension is that of its feature.
    known = [None] if tensor.shape.rank is None else tensor.shape.as_list()[1:]
    dims = [size for size in known if size is not None]
    size = math.prod(dims if dims == known else column.variable_shape)
    return reshape(tensor, stack([shape(tensor)[0], size]))


def _scope_name(column: Any) -> str:
    return getattr(column, "scope_name", column.name)


def input_from_feature_columns(
    columns_to_tensors: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[Any, Any] | None = None,
) -> Tensor:
    """What dense columns make of a batch, side by side in the order of their kinds and names.

    Example:
        >>> net = tf.contrib.layers.input_from_feature_columns(features, columns)
    """
    columns = _sorted(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                f"Error creating input layer for column: {column.name}. It is sparse: use "
                "embedding_column or one_hot_column"
            )
    given = Features(columns_to_tensors)
    collections = _collections(weight_collections)
    values = list(columns_to_tensors.values())
    outputs = []
    with variable_scope(scope, "input_from_feature_columns", values):
        for column in columns:
            with variable_scope(None, _scope_name(column), values):
                outputs.append(_flat(column, column.dense(given, trainable, collections)))
            if cols_to_outs is not None:
                cols_to_outs[column] = outputs[-1]
        return concat(outputs, 1)


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[str, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, dict[Any, list[Any]], Any]:
    """The weighted sum of columns with a bias, each column's variables, and the bias.

    Example:
        >>> logits, variables, bias = tf.contrib.layers.weighted_sum_from_feature_columns(
        ...     features, [gender, education], num_outputs=1)
    """
    columns = _sorted(feature_columns)
    given = Features(columns_to_tensors)
    collections = _collections(weight_collections)
    values = list(columns_to_tensors.values())
    sums, variables = [], {}
    with variable_scope(scope, "weighted_sum_from_feature_columns", values):
        for column in columns:
            with variable_scope(None, _scope_name(column), values):
                if isinstance(column, CategoricalColumn):
                    dims = [column.num_buckets, num_outputs]
                    table = _zeros("weights", dims, trainable, collections)
                    ids, counts = column.ids_and_weights(given)
                    found = safe_embedding_lookup_sparse(
                        table, _rows(ids), _rows(counts), combiner=combiner_of(column)
                    )
                elif isinstance(column, DenseColumn):
                    dims = [math.prod(column.variable_shape), num_outputs]
                    table = _zeros("weight", dims, trainable, collections)
                    made = column.dense(given, trainable, collections)
                    found = matmul(_flat(column, made), table)
                else:
                    raise ValueError(f"Error creating weighted sum for column: {column.name}.")
                sums.append(found)
                variables[column] = [table]
        bias = _zeros("bias_weight", [num_outputs], trainable, collections)
        return bias_add(add_n(sums), bias), variables, bias


def _zeros(name: str, dims: list[int], trainable: bool, collections: list[str]) -> Any:
    return get_variable(
        name,
        shape=dims,
        dtype=float32,
        initializer=Zeros(),
        trainable=trainable,
        collections=collections,
    )


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[str, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, dict[Any, list[Any]], Any]:
    """:func:`weighted_sum_from_feature_columns` with the weights of all columns in one variable.

    The columns must be sparse ones whose values are summed.
    """
    columns = _sorted(feature_columns)
    for column in columns:
        if not isinstance(column, CategoricalColumn) or combiner_of(column) != "sum":
            raise ValueError(f"{column.name} must be a sparse column with the combiner 'sum'")
    given = Features(columns_to_tensors)
    collections = _collections(weight_collections)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, "joint_weighted_sum_from_feature_columns", values):
        with variable_scope(None, "linear_weights", values):
            dims = [sum(column.num_buckets for column in columns), num_outputs]
            table = _zeros("weights", dims, trainable, collections)
        sums, first = [], 0
        for column in columns:
            ids, weights = column.ids_and_weights(given)
            if weights is not None:
                raise ValueError(f"{column.name} has weights: the weights have one variable here")
            here = where(less(ids.values, 0), ids.values, ids.values + first)
            moved = SparseTensor(ids.indices, here, ids.dense_shape)
            sums.append(safe_embedding_lookup_sparse(table, _rows(moved), combiner="sum"))
            first += column.num_buckets
        bias = _zeros("bias_weight", [num_outputs], trainable, collections)
        return bias_add(add_n(sums), bias), {column: [table] for column in columns}, bias


def _rows(given: SparseTensor | None) -> Any:
    """A sparse tensor with one row for each example."""
    if given is None:
        return None
    return sparse_reshape(given, stack([given.dense_shape[0], cast(-1, int64)]))


# Features from files and from graphs --------------------------------------------------------------


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """How ``tf.parse_example`` reads the features of columns."""
    return feature_spec(feature_columns)


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of columns, from serialized ``tf.train.Example``."""
    check_feature_columns(feature_columns)
    return parse_example(serialized, feature_spec(feature_columns), name, example_names)


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """A placeholder for each feature of columns."""
    made: dict[str, Any] = {}
    for name, kind in feature_spec(feature_columns).items():
        if isinstance(kind, VarLenFeature):
            made[name] = sparse_placeholder(kind.dtype, name=f"Placeholder_{name}")
        else:
            dims = [None, *kind.shape]
            made[name] = placeholder(kind.dtype, dims, name=f"Placeholder_{name}")
    return made


def transform_features(features: Mapping[str, Any], feature_columns: Any) -> dict[Any, Any]:
    """What each column makes of ``features``: numbers, ranges, or a sparse tensor of categories."""
    check_feature_columns(feature_columns)
    given = Features(features)
    return {
        column: _transformed(column, given) for column in sorted(feature_columns, key=order_key)
    }


def _transformed(column: Any, given: Features) -> Any:
    if isinstance(column, ContribBucketizedColumn):
        return column.ranges(given)
    if isinstance(column, RealValuedColumn):
        return column.dense(given)
    if not isinstance(column, CategoricalColumn):
        return _transformed(column.categorical_column, given)
    ids, weights = column.ids_and_weights(given)
    return ids if weights is None else (ids, weights)


def infer_real_valued_columns(features: Any) -> list[RealValuedColumn]:
    """A column of numbers for each of the dense features, or for the only one.

    Example:
        >>> tf.contrib.layers.infer_real_valued_columns({"x": tf.zeros([8, 4])})
    """
    if not isinstance(features, Mapping):
        return [_column_for("", features)]
    return [_column_for(name, features[name]) for name in sorted(features)]


def _column_for(name: str, tensor: Any) -> RealValuedColumn:
    if isinstance(tensor, SparseTensor):
        raise ValueError(f"SparseTensor is not supported for auto detection: {name!r}")
    kind = tensor.dtype.base_dtype
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"Non integer or non floating types are not supported: {name!r}, {kind!r}")
    dims = tensor.shape.with_rank_at_least(1).with_rank_at_most(2).as_list()
    if len(dims) == 2 and dims[1] is None:
        raise ValueError(f"The second dimension of {name!r} must be known, but is {dims}")
    return real_valued_column(name, dims[1] if len(dims) == 2 else 1, dtype=kind)
