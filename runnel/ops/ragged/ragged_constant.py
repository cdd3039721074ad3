"""Ragged tensors from nested lists, and those that are fed."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.ops.constants import constant as dense_constant
from runnel.ops.constants import placeholder as dense_placeholder
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.ragged.ragged_value import RaggedTensorValue


def _depth(value: Any) -> tuple[int, bool]:
    """How deep lists are nested, and whether there are values at the bottom."""
    if not isinstance(value, list | tuple | np.ndarray):
        return 0, True
    if isinstance(value, np.ndarray):
        return value.ndim, bool(value.size)
    found = [_depth(item) for item in value]
    deepest = max((depth for depth, _ in found), default=0)
    for depth, filled in found:
        if (filled and depth != deepest) or depth > deepest:
            raise ValueError("all scalar values must have the same nesting depth")
    return deepest + 1, any(filled for _, filled in found)


def _parts(
    pylist: Any, dtype: Any, ragged_rank: int | None, inner_shape: Any
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The innermost values, and the splits of every ragged dimension."""
    if not isinstance(pylist, list | tuple | np.ndarray):
        if ragged_rank or inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with the given shape")
        return np.asarray(pylist, dtype), []
    depth, _ = _depth(pylist)
    inner = None if inner_shape is None else tuple(np.atleast_1d(inner_shape).tolist())
    if ragged_rank is None:
        ragged_rank = max(1, depth - 1 - (len(inner) if inner is not None else 0))
    elif inner is not None and depth > ragged_rank + 1 + len(inner):
        raise ValueError(f"pylist has scalar values deeper than {ragged_rank + 1 + len(inner)}")
    if depth <= ragged_rank:
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
    splits: list[np.ndarray] = []
    level: Any = pylist
    for _ in range(ragged_rank):
        lengths = [len(row) for row in level]
        splits.append(np.concatenate([[0], np.cumsum(lengths)]))
        level = [item for row in level for item in row]
    values = np.array(level, dtype)
    if inner is not None:
        values = values.reshape((len(level), *inner))
    elif not len(level) and depth > ragged_rank + 1:
        values = values.reshape((0,) * (depth - ragged_rank))
    if values.dtype == object and dtype is None:
        raise ValueError("rows of the inner dimensions must have the same lengths")
    return values, splits


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A ragged tensor of nested lists.

    ``ragged_rank`` says how many dimensions are ragged: all but the first, unless given.

    Example:
        >>> tf.ragged.constant([[1, 2], [3]])
    """
    with name_scope(name, "RaggedConstant"):
        values, splits = _parts(pylist, None, ragged_rank, inner_shape)
        flat: Any = values.tolist() if values.dtype.kind in "USO" else values
        if values.dtype == np.float64 and dtype is None:
            flat = values.astype(np.float32)
        elif values.dtype == np.int64 and dtype is None:
            flat = values.astype(np.int32)
        if not values.size:
            kind = dtypes.float32 if dtype is None else as_dtype(dtype)
            made = dense_constant(np.zeros(values.shape, kind.as_numpy_dtype), kind)
        else:
            made = convert_to_tensor(flat, dtype)
        kind = as_dtype(row_splits_dtype).as_numpy_dtype
        cuts = [convert_to_tensor(part.astype(kind)) for part in splits]
        if not cuts:
            return made
        return RaggedTensor.from_nested_row_splits(made, cuts, validate=False)


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """What a session gives for such a ragged tensor, with NumPy's types."""
    kind = None if dtype is None else np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
    result, splits = _parts(pylist, kind, ragged_rank, inner_shape)
    cuts = as_dtype(row_splits_dtype).as_numpy_dtype
    made: Any = result
    for part in reversed(splits):
        made = RaggedTensorValue(made, part.astype(cuts))
    return made


def placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """A ragged tensor whose value must be fed.

    Example:
        >>> x = tf.ragged.placeholder(tf.int32, ragged_rank=1)
        >>> sess.run(y, {x: tf.ragged.constant_value([[1, 2], [3]], np.int32)})
    """
    if ragged_rank == 0:
        return dense_placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder"):
        inner = [] if value_shape is None else list(value_shape)
        result: Any = dense_placeholder(
            dtype, None if value_shape is None else [None, *inner], "flat_values"
        )
        for level in reversed(range(ragged_rank)):
            splits = dense_placeholder(dtypes.int64, [None], f"row_splits_{level}")
            result = RaggedTensor(result, splits)
        return result
