"""Looking up rows of a table for sparse ids, and combining those of each example."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.padding import tile
from runnel.ops.selection import where
from runnel.ops.sorted_segments import segment_sum
from runnel.ops.sparse.arranging import sparse_reshape, sparse_retain
from runnel.ops.sparse.coordinates import as_sparse
from runnel.ops.sparse.pieces import sparse_fill_empty_rows
from runnel.ops.sparse_segments import (
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)
from runnel.ops.unique import unique

_COMBINERS = {
    "sum": sparse_segment_sum,
    "mean": sparse_segment_mean,
    "sqrtn": sparse_segment_sqrt_n,
}


def _combiner(name: str | None) -> str:
    if name is None:
        return "mean"
    if name not in _COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', not {name!r}")
    return name


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
) -> Tensor:
    """For each row of ``sp_ids`` the rows of ``params`` that it names, combined.

    ``combiner`` is "sum", "mean" or "sqrtn" (the weighted sum over the root of the sum of squared
    weights); ``sp_weights`` are the weights, None for ones. Every row must have an id.

    Example:
        >>> ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 0], [2, 2])
        >>> tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    """
    how = _combiner(combiner)
    ids = as_sparse(sp_ids, "sp_ids")
    shards = list(params) if isinstance(params, list | tuple) else params
    with name_scope(name, "embedding_lookup_sparse", [ids.values]) as scope:
        rows = cast(ids.indices[:, 0], dtypes.int32)
        distinct, places = unique(ids.values)
        found = embedding_lookup(shards, distinct, partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            return _COMBINERS[how](found, places, rows, name=scope)
        weights = as_sparse(sp_weights, "sp_weights").values
        if not weights.dtype.base_dtype.is_floating and not weights.dtype.base_dtype.is_integer:
            raise TypeError(f"sp_weights must be numbers, not {weights.dtype.name}")
        return _weighted(gather(found, places), weights, rows, how, scope)


def _weighted(found: Tensor, weights: Tensor, rows: Tensor, how: str, name: str) -> Tensor:
    if weights.dtype.base_dtype is not found.dtype.base_dtype:
        weights = cast(weights, found.dtype.base_dtype)
    rest = get_op_def("ExpandDims")(get_op_def("Rank")(found) - 1, 0)
    ones = get_op_def("Fill")(rest, 1)
    wide = reshape(weights, concat([shape_of(weights), ones], 0))
    if found.dims is not None:
        wide.set_shape((*(weights.dims or (None,)), *[1] * (len(found.dims) - 1)))
    scaled = found * wide
    if how == "sum":
        return segment_sum(scaled, rows, name=name)
    total = segment_sum(scaled, rows)
    if how == "mean":
        return get_op_def("RealDiv")(total, segment_sum(wide, rows), name=name)
    root = get_op_def("Sqrt")(segment_sum(get_op_def("Pow")(wide, 2.0), rows))
    return get_op_def("RealDiv")(total, root, name=name)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """:func:`embedding_lookup_sparse` for ids that may be missing or invalid.

    Negative ids, and with "mean" and "sqrtn" ids whose weight is not positive, are left out; a row
    without any gets the row of ``default_id``, or zeros.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    if hasattr(embedding_weights, "_get_variable_list"):
        embedding_weights = embedding_weights._get_variable_list()
    shards = (
        list(embedding_weights)
        if isinstance(embedding_weights, list | tuple)
        else [embedding_weights]
    )
    if not shards:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    ids = as_sparse(sparse_ids, "sparse_ids")
    weights = None if sparse_weights is None else as_sparse(sparse_weights, "sparse_weights")
    with name_scope(name, "embedding_lookup", [ids.values]) as scope:
        original = ids.dense_shape
        rank = original.dims[0] if original.dims is not None else None
        last = get_op_def("Size")(original) - 1
        flat = stack(
            [get_op_def("Prod")(original[:-1], 0), gather(original, cast(last, dtypes.int64))]
        )
        ids = sparse_reshape(ids, flat)
        if weights is not None:
            weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
        ids, weights = _valid(ids, weights, _combiner(combiner) != "sum")
        filled, empty = sparse_fill_empty_rows(ids, 0 if default_id is None else default_id)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        result = embedding_lookup_sparse(
            shards,
            filled,
            weights,
            partition_strategy=partition_strategy,
            combiner=combiner,
            name=None if default_id is None else scope,
            max_norm=max_norm,
        )
        if default_id is None:
            wide = tile(reshape(empty, [-1, 1]), stack([convert_to_tensor(1), shape_of(result)[1]]))
            result = where(wide, zeros_like(result), result, name=scope)
        if rank == 2:
            known = constant_value_as_dims(original)
            if known is not None and result.dims is not None:
                result.set_shape((known[0], *result.dims[1:]))
            return result
        outer = cast(original[:-1], dtypes.int32)
        return reshape(result, concat([outer, shape_of(result)[1:]], 0))


def _valid(
    ids: SparseTensor, weights: SparseTensor | None, positive: bool
) -> tuple[SparseTensor, SparseTensor | None]:
    """Without negative ids and, if asked, without those whose weight is not positive."""
    kept = get_op_def("GreaterEqual")(ids.values, zeros_like(ids.values))
    if weights is not None and positive:
        above = get_op_def("Greater")(weights.values, zeros_like(weights.values))
        kept = get_op_def("LogicalAnd")(kept, above)
    left = None if weights is None else sparse_retain(weights, kept)
    return sparse_retain(ids, kept), left
