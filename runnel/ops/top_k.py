"""The k largest entries of each row, and whether a target is among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims, merge_dims
from runnel.ops.array_shape import reshape, shape
from runnel.ops.casting import cast
from runnel.ops.joining import concat
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_prod
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.stable_order import stable_order

_INDEX = "{int16, int32, int64} = DT_INT32"

top_k_v2_op = register_op(
    "TopKV2",
    inputs="input: T, k: Tk",
    outputs="values: T, indices: index_type",
    attrs=[
        "sorted: bool = true",
        "T: realnumbertype",
        f"Tk: {_INDEX}",
        f"index_type: {_INDEX}",
    ],
    static_inputs=("k",),
)
top_k_v1_op = register_op(
    "TopK",
    inputs="input: T",
    outputs="values: T, indices: int32",
    attrs=["k: int >= 0", "sorted: bool = true", "T: realnumbertype"],
)


def _top_dims(x: Tensor, k: int | None) -> list[Any]:
    if x.dims is None:
        return [None, None]
    if not x.dims:
        raise ValueError("top_k needs an input of at least one dimension, not a scalar,")
    last = x.dims[-1]
    if k is not None and k < 0:
        raise ValueError(f"k must be at least 0, not {k},")
    if k is not None and last is not None and last < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {last}")
    dims = (*x.dims[:-1], k)
    return [dims, dims]


@top_k_v2_op.shape
def _(x, k):
    value = constant_value(k)
    return _top_dims(x, None if value is None else int(value))


@top_k_v1_op.shape
def _(x, *, k):
    return _top_dims(x, k)


_BY_TURNS = 8
"""So many elements of a row are found one after the other faster than at once."""
_SHORT = 32
"""Rows up to this length are sorted as fast as searched."""


def _few_largest(x: np.ndarray, k: int) -> np.ndarray | None:
    """Where the ``k`` largest of each row are; None where sorting the rows is as good, or needed.

    It is needed for NaNs, which come last, and where equal elements are in part among the largest.
    """
    size = x.shape[-1]
    if not 0 < k <= size // 4 or size <= _SHORT or x.dtype.char not in "fdilq":
        return None
    rows = x.reshape(-1, size)
    if rows.size == 0 or np.isnan(rows.max()):
        return None
    found = _by_turns(rows, k) if k <= _BY_TURNS else _by_partition(rows, k)
    return None if found is None else found.reshape(*x.shape[:-1], k)


def _by_turns(rows: np.ndarray, k: int) -> np.ndarray | None:
    """The largest, then the largest of the others; the first one of equals each time."""
    lowest = -np.inf if rows.dtype.kind == "f" else np.iinfo(rows.dtype).min
    left = rows.copy()
    flat, starts = left.reshape(-1), np.arange(rows.shape[0]) * rows.shape[1]
    found = np.empty((rows.shape[0], k), np.int64)
    for turn in range(k):
        largest = left.argmax(axis=1)
        found[:, turn] = largest
        largest += starts
        if (flat[largest] == lowest).any():
            return None  # those that were found look like it
        flat[largest] = lowest
    return found


def _by_partition(rows: np.ndarray, k: int) -> np.ndarray | None:
    """All from the k-th largest up, in order."""
    place = rows.shape[1] - k
    least = np.partition(rows, place, axis=1)[:, place, None]
    chosen = rows >= least
    if np.count_nonzero(chosen) != k * rows.shape[0]:
        return None  # several are equal to the k-th
    places = (np.flatnonzero(chosen) % rows.shape[1]).reshape(-1, k)
    values = np.take_along_axis(rows, places, axis=1)
    # Descending, and stable: an ascending order of the reversed row, read backwards.
    order = k - 1 - np.argsort(values[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return np.take_along_axis(places, order, axis=1)


def _top(xp: Any, x: Any, k: int, index_type: np.dtype) -> tuple[Any, Any]:
    if x.ndim == 0 or not 0 <= k <= x.shape[-1]:
        raise InvalidArgumentError(
            None,
            None,
            f"input must have last dimension >= k = {k} >= 0, but its shape is {x.shape}",
        )
    if xp is np:
        found = _few_largest(x, k)
        if found is not None:
            return np.take_along_axis(x, found, axis=-1), found.astype(index_type)
        if x.dtype.kind in "fV":
            # NumPy sorts NaNs last; bfloat16's own order knows none.
            keys = -(x if x.dtype.kind == "f" else x.astype(np.float32))
            order = np.argsort(keys, axis=-1, kind="stable")[..., :k]
        elif x.ndim == 1:
            order = stable_order(x, descending=True)[:k]
        else:
            # A stable ascending sort of the reversed row, read backwards: descending, and of equal
            # entries the one with the lower index first. Works for unsigned types too.
            order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
            order = x.shape[-1] - 1 - order
        return np.take_along_axis(x, order, axis=-1), order.astype(index_type)
    from jax import lax

    if x.dtype.kind not in "fV":
        values, indices = lax.top_k(x, k)
        return values, indices.astype(index_type)
    # XLA's order is total: -NaN, numbers with -0 below 0, NaN. Ours has one zero, and NaNs below.
    one_zero = xp.where(x == 0, xp.zeros((), x.dtype), x)
    keys = xp.where(xp.isnan(x), np.array(np.copysign(np.nan, -1), x.dtype), one_zero)
    indices = lax.top_k(keys, k)[1]
    values = xp.take_along_axis(x, indices, axis=-1, mode="promise_in_bounds")
    return values, indices.astype(index_type)


@top_k_v2_op.kernel
def _(xp, x, k, *, index_type):
    return _top(xp, x, int(k), index_type.np_dtype)


@top_k_v1_op.kernel
def _(xp, x, *, k):
    return _top(xp, x, k, np.dtype(np.int32))


def _gradient(op: Any, grad: Tensor, _: Any) -> list[Tensor | None]:
    """``grad`` of the values at the places that they came from, zeros elsewhere."""
    dims = shape(op.inputs[0], out_type=dtypes.int64)
    row = dims[-1]
    starts = row * sequence(reduce_prod(dims[:-1]))
    places = cast(op.outputs[1], dtypes.int64) + reshape(starts, concat([dims[:-1], [1]], 0))
    flat = unsorted_segment_sum(reshape(grad, [-1]), reshape(places, [-1]), reduce_prod(dims))
    return [reshape(flat, dims), *[None] * (len(op.inputs) - 1)]


top_k_v2_op.gradient(_gradient)
top_k_v1_op.gradient(_gradient)


class TopKV2(NamedTuple):
    """The result of :func:`top_k`."""

    values: Tensor
    indices: Tensor


def top_k(
    input: Any,  # noqa: A002
    k: Any = 1,
    sorted: bool = True,  # noqa: A002
    name: str | None = None,
) -> TopKV2:
    """The ``k`` largest entries of each row (the last dimension) and their positions.

    In descending order; of equal entries the one with the lower index comes first. A NaN is less
    than any number, so it comes last.

    Example:
        >>> tf.Session().run(tf.nn.top_k([3, 1, 2, 3], 2))
        TopKV2(values=array([3, 3], dtype=int32), indices=array([0, 3], dtype=int32))
    """
    return TopKV2(*top_k_v2_op(input, k, sorted=sorted, name=name))


# Membership -----------------------------------------------------------------------------------

_TARGET = "T: {int32, int64} = DT_INT32"

in_top_k_v2_op = register_op(
    "InTopKV2",
    inputs="predictions: float, targets: T, k: T",
    outputs="precision: bool",
    attrs=_TARGET,
    differentiable=False,
)
in_top_k_v1_op = register_op(
    "InTopK",
    inputs="predictions: float, targets: T",
    outputs="precision: bool",
    attrs=["k: int", _TARGET],
    differentiable=False,
)


def _target_dims(predictions: Tensor, targets: Tensor) -> Any:
    for tensor, rank, what in ((predictions, 2, "predictions"), (targets, 1, "targets")):
        if tensor.dims is not None and len(tensor.dims) != rank:
            raise ValueError(f"{what} must have rank {rank}, not shape {format_dims(tensor.dims)},")
    batch = (None,) if predictions.dims is None else predictions.dims[:1]
    return merge_dims(batch, targets.dims)


@in_top_k_v2_op.shape
def _(predictions, targets, k):
    if k.dims:
        raise ValueError(f"k must be a scalar, not of shape {format_dims(k.dims)},")
    return _target_dims(predictions, targets)


@in_top_k_v1_op.shape
def _(predictions, targets):
    return _target_dims(predictions, targets)


def _in_top(xp: Any, predictions: Any, targets: Any, k: Any) -> Any:
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise InvalidArgumentError(
            None,
            None,
            "predictions must be a matrix and targets a vector with one class for each row, not "
            f"{predictions.shape} and {targets.shape}",
        )
    classes = predictions.shape[1]
    if classes == 0:
        return xp.zeros(targets.shape, bool)
    known = (targets >= 0) & (targets < classes)
    at = xp.where(known, targets, 0)[:, None]
    target = xp.take_along_axis(predictions, at, axis=1)
    # Ties are all in; a row with a NaN or an infinity, and an unknown class, are not.
    ahead = xp.sum(predictions > target, axis=1)
    return known & xp.all(xp.isfinite(predictions), axis=1) & (ahead < k)


@in_top_k_v2_op.kernel
def _(xp, predictions, targets, k):
    return _in_top(xp, predictions, targets, k)


@in_top_k_v1_op.kernel
def _(xp, predictions, targets, *, k):
    return _in_top(xp, predictions, targets, k)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each row's target class is among the ``k`` largest predictions of the row.

    Classes that tie with the k-th are all in. A row with a prediction that is not finite, or
    with a target that is no class, is not.

    Example:
        >>> tf.Session().run(tf.nn.in_top_k([[0.1, 0.7, 0.2]], [2], k=2))
        array([ True])
    """
    with name_scope(name, "in_top_k", [predictions, targets]):
        targets = convert_to_tensor(targets, name="targets", dtype_hint=dtypes.int32)
        return in_top_k_v2_op(predictions, targets, k)
