"""``input_layer`` and ``linear_model``: columns as the inputs of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.sparse.arranging import sparse_reshape
from runnel.ops.sparse.embedding import safe_embedding_lookup_sparse
from runnel.variables.get_variable import get_variable
from runnel.variables.initialization import global_variables
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import variable_scope


def _sorted(columns: Any) -> list[Any]:
    given = [columns] if isinstance(columns, FeatureColumn) else list(columns)
    for column in given:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"Items of feature_columns must be columns of tf.feature_column, not {column!r}"
            )
    if not given:
        raise ValueError("feature_columns must not be empty.")
    names = [column.name for column in given]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Duplicate feature column name found for columns: {name}")
    return sorted(given, key=lambda column: column.name)


def _collections(given: Any) -> list[str]:
    standard = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return list(dict.fromkeys([*(given or ()), *standard]))


def _flat(column: DenseColumn, tensor: Tensor) -> Tensor:
    return reshape(tensor, stack([shape(tensor)[0], math.prod(column.variable_shape)]))


def _note(kept: dict[Any, Any] | None, column: Any, before: list[Any]) -> None:
    if kept is not None:
        known = {id(variable) for variable in before}
        kept[column] = [v for v in global_variables() if id(v) not in known]


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """What dense columns make of a batch, side by side in the order of their names.

    Example:
        >>> net = tf.feature_column.input_layer(features, columns)  # [batch, numbers]
    """
    columns = _sorted(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                f"input_layer takes dense columns, but {column.name} is categorical: "
                "use embedding_column or indicator_column"
            )
    given = Features(features)
    outputs = []
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        for column in columns:
            before = global_variables()
            with variable_scope(None, default_name=column.scope_name):
                made = column.dense(given, trainable, _collections(weight_collections))
                outputs.append(_flat(column, made))
            _note(cols_to_vars, column, before)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = outputs[-1]
        return concat(outputs, 1)


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """The weighted sum of columns, with a bias: [batch, units]."""
    columns = _sorted(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn | CategoricalColumn):
            raise ValueError(f"linear_model takes dense and categorical columns, not {column!r}")
    given = Features(features)
    collections = _collections(weight_collections)

    def weights(name: str, dims: list[int]) -> Any:
        return get_variable(
            name,
            shape=dims,
            dtype=float32,
            initializer=Zeros(),
            trainable=trainable,
            collections=collections,
        )

    sums = []
    with variable_scope(None, default_name="linear_model", values=list(features.values())):
        for column in columns:
            before = global_variables()
            with variable_scope(None, default_name=column.name):
                if isinstance(column, CategoricalColumn):
                    table = weights("weights", [column.num_buckets, units])
                    ids, counts = column.ids_and_weights(given)
                    sums.append(
                        safe_embedding_lookup_sparse(
                            table, _rows(ids), _rows(counts), combiner=sparse_combiner
                        )
                    )
                else:
                    matrix = weights("weights", [math.prod(column.variable_shape), units])
                    made = column.dense(given, trainable, collections)
                    sums.append(matmul(_flat(column, made), matrix))
            _note(cols_to_vars, column, before)
        total = add_n(sums, name="weighted_sum_no_bias")
        bias = weights("bias_weights", [units])
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return bias_add(total, bias, name="weighted_sum")


def _rows(given: SparseTensor | None) -> Any:
    """A sparse tensor with one row for each example."""
    if given is None or given.dense_shape.dims == (2,):
        return given  # as it is
    return sparse_reshape(given, stack([given.dense_shape[0], cast(-1, int64)]))


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """How ``tf.parse_example`` reads the features of columns.

    Example:
        >>> tf.parse_example(serialized, tf.feature_column.make_parse_example_spec(columns))
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be columns, not {column!r}")
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}: {value} and "
                    f"{spec[key]}"
                )
            spec[key] = value
    return spec
