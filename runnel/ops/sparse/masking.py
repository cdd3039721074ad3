"""Leaving slices out of ``IndexedSlices``."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.ops.gather import gather
from runnel.ops.unique import setdiff1d


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """``a`` without the slices whose index is one of ``mask_indices``.

    Example:
        >>> tf.sparse_mask(slices, [12, 45])
    """
    with name_scope(name, "sparse_mask", [a.values, mask_indices]) as scope:
        kept, places = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, places, name=scope), kept, a.dense_shape)
