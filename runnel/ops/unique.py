"""Distinct values, and values that are in one list but not in another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.stable_order import distances, stable_order

_OUT = "out_idx: {int32, int64} = DT_INT32"

unique_op = register_op(
    "Unique",
    inputs="x: T",
    outputs="y: T, idx: out_idx",
    attrs=["T: type", _OUT],
    host=True,
    differentiable=False,
)
unique_with_counts_op = register_op(
    "UniqueWithCounts",
    inputs="x: T",
    outputs="y: T, idx: out_idx, count: out_idx",
    attrs=["T: type", _OUT],
    host=True,
    differentiable=False,
)
list_diff_op = register_op(
    "ListDiff",
    inputs="x: T, y: T",
    outputs="out: T, idx: out_idx",
    attrs=["T: type", _OUT],
    host=True,
    differentiable=False,
)


class Unique(NamedTuple):
    """The distinct values ``y`` in order of appearance, and for each element its place in it."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Like :class:`Unique`, with how often each value occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment] # TensorFlow's name hides tuple.count


class ListDiff(NamedTuple):
    """The values ``out`` that are only in the first list, and their places ``idx`` in it."""

    out: Tensor
    idx: Tensor


def _require_vector(x: Tensor) -> None:
    if x.dims is not None and len(x.dims) != 1:
        raise ValueError(f"x must be a vector, not of shape {x.shape}")


@unique_op.shape
def _(x):
    _require_vector(x)
    return [(None,), x.dims if x.dims is not None else (None,)]


@unique_with_counts_op.shape
def _(x):
    _require_vector(x)
    return [(None,), x.dims if x.dims is not None else (None,), (None,)]


@list_diff_op.shape
def _(x, y):
    return [(None,), (None,)]


def _by_appearance(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if x.dtype == object:
        place: dict[Any, int] = {}
        order = np.array([place.setdefault(v, len(place)) for v in x.tolist()], np.int64)
        y = np.empty(len(place), object)
        y[:] = list(place)
        return y, order, np.bincount(order, minlength=len(place))
    if x.dtype.kind in "iu" and x.size:
        low = int(x.min())
        if int(x.max()) - low < 4 * x.size:
            return _in_a_table(x, distances(x, low))
    by_value = stable_order(x)
    ordered = x[by_value]
    begins = np.ones(x.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])  # a NaN equals nothing
    starts = np.flatnonzero(begins)
    first = by_value[starts]
    order = stable_order(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    inverse = np.empty_like(by_value)
    inverse[by_value] = rank[np.cumsum(begins) - 1]
    return x[first[order]], inverse, np.diff(starts, append=x.size)[order]


def _in_a_table(x: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By where each value is seen first, in a table of all values that there may be."""
    first = np.empty(int(places.max()) + 1, np.int64)
    positions = np.arange(x.size)
    first[places[::-1]] = positions[::-1]  # the last one that is written stays
    seen = first.take(places)
    new = seen == positions
    inverse = (np.cumsum(new) - 1).take(seen)
    return x[new], inverse, np.bincount(inverse)


@unique_op.kernel
def _(xp, x, *, out_idx):
    y, idx, _ = _by_appearance(x)
    return y, idx.astype(out_idx.np_dtype)


@unique_with_counts_op.kernel
def _(xp, x, *, out_idx):
    y, idx, count = _by_appearance(x)
    return y, idx.astype(out_idx.np_dtype), count.astype(out_idx.np_dtype)


@list_diff_op.kernel
def _(xp, x, y, *, out_idx):
    gone = set(y.tolist())
    kept = np.array([i for i, v in enumerate(x.tolist()) if v not in gone], out_idx.np_dtype)
    return x[kept], kept


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of the vector ``x``, in order of first appearance.

    Example:
        >>> y, idx = tf.unique([1, 1, 2, 4, 4, 4, 7])  # [1, 2, 4, 7], [0, 0, 1, 2, 2, 2, 3]
    """
    return Unique(*unique_op(x, out_idx=as_dtype(out_idx), name=name))


def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """The distinct elements of the vector ``x`` and how often each occurs.

    Example:
        >>> y, idx, count = tf.unique_with_counts([1, 1, 2])  # [1, 2], [0, 0, 1], [2, 1]
    """
    return UniqueWithCounts(*unique_with_counts_op(x, out_idx=as_dtype(out_idx), name=name))


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of ``x`` that are not in ``y``, with duplicates and in order.

    Example:
        >>> out, idx = tf.setdiff1d([1, 2, 3, 4], [2, 4])  # [1, 3], [0, 2]
    """
    return ListDiff(*list_diff_op(x, y, out_idx=as_dtype(index_dtype), name=name))


def listdiff(x: Any, y: Any, out_idx: Any = None, name: str | None = None) -> ListDiff:
    """An older name of ``tf.setdiff1d``."""
    return setdiff1d(x, y, dtypes.int32 if out_idx is None else out_idx, name)
