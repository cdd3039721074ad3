"""Sparse tensors of ids and of values put together: the ids become coordinates."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import expand_dims
from runnel.ops.casting import cast
from runnel.ops.joining import concat, stack
from runnel.ops.sparse.arranging import sparse_reorder
from runnel.ops.sparse.coordinates import as_sparse


def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """``sp_values`` with the ids of ``sp_ids`` as their last coordinates.

    Both have the same rows; ``sp_ids`` may be a list, with as many sizes in ``vocab_size``.

    Example:
        >>> ids = tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1])
        >>> values = tf.SparseTensor([[0, 0], [1, 0]], [0.5, 0.7], [2, 1])
        >>> tf.sparse.merge(ids, values, 3)  # 0.5 at [0, 2], 0.7 at [1, 0]
    """
    if not isinstance(sp_ids, list):
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    elif not isinstance(vocab_size, list):
        raise TypeError(f"vocab_size has to be a list of sizes, as sp_ids is one: {vocab_size!r}")
    if len(sp_ids) != len(vocab_size):
        raise ValueError(f"There are {len(sp_ids)} tensors of ids and {len(vocab_size)} sizes.")
    ids = [as_sparse(one, "sp_ids") for one in sp_ids]
    values = as_sparse(sp_values, "sp_values")
    with name_scope(name, "SparseMerge", [*[one.values for one in ids], values.values]):
        rows = ids[0].indices[:, :-1]
        columns = [expand_dims(cast(one.values, dtypes.int64), 1) for one in ids]
        sizes = [cast(convert_to_tensor(size), dtypes.int64) for size in vocab_size]
        shape = concat([ids[0].dense_shape[:-1], stack(sizes)], 0)
        merged = SparseTensor(concat([rows, *columns], 1), values.values, shape)
        return merged if already_sorted else sparse_reorder(merged)
