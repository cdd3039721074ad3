"""One-hot vectors of indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op

one_hot_op = register_op(
    "OneHot",
    inputs="indices: TI, depth: int32, on_value: T, off_value: T",
    outputs="output: T",
    attrs=["axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = DT_INT64"],
    static_inputs=("depth",),
    differentiable=False,
)


_MANY = 2048
"""Elements that are chosen one by one in less time than places are found."""


def _place(axis: int, rank: int) -> int:
    if not -1 <= axis <= rank:
        raise ValueError(f"axis must be -1 or in [0, {rank}], not {axis}")
    return rank if axis == -1 else axis


@one_hot_op.shape
def _(indices, depth, on_value, off_value, *, axis):
    for label, value in (("on_value", on_value), ("off_value", off_value), ("depth", depth)):
        if value.dims not in (None, ()):
            raise ValueError(f"{label} must be a scalar, not of shape {value.shape}")
    size = constant_value(depth)
    if size is not None and int(size) < 0:
        raise ValueError(f"depth must not be negative, but is {int(size)}")
    if indices.dims is None:
        return None
    at = _place(axis, len(indices.dims))
    return (*indices.dims[:at], None if size is None else int(size), *indices.dims[at:])


@one_hot_op.kernel
def _(xp, indices, depth, on_value, off_value, *, axis):
    size = int(depth)
    if size < 0:
        raise InvalidArgumentError(None, None, f"depth must not be negative, but is {size}")
    at = _place(axis, indices.ndim)
    if xp is np and indices.size * size >= _MANY:
        return _filled(indices, size, on_value, off_value, at)
    classes = np.arange(size).reshape([-1 if d == at else 1 for d in range(indices.ndim + 1)])
    # In 64 bits: an index of few bits may not reach the depth.
    hot = xp.expand_dims(indices, at).astype(np.int64) == classes
    return xp.where(hot, on_value, off_value)


def _filled(indices: np.ndarray, size: int, on: Any, off: Any, at: int) -> np.ndarray:
    """``off`` everywhere, then ``on`` at the indices that are in range."""
    out = np.full((*indices.shape[:at], size, *indices.shape[at:]), off, np.asarray(on).dtype)
    inner = math.prod(indices.shape[at:])
    classes = indices.reshape(-1, inner).astype(np.int64) if out.size else np.zeros((0, 1), int)
    places = (np.arange(len(classes)) * (size * inner))[:, None] + np.arange(classes.shape[1])
    places += classes * inner
    if classes.size and (classes.min() < 0 or classes.max() >= size):
        places = places[(classes >= 0) & (classes < size)]
    out.reshape(-1)[places] = on
    return out


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Vectors of ``depth`` elements with ``on_value`` at the index and ``off_value`` elsewhere.

    An index out of range gives a vector of ``off_value``. The new dimension is the last, or
    ``axis``.

    Example:
        >>> tf.one_hot([0, 2], 3)  # [[1., 0., 0.], [0., 0., 1.]]
    """
    with name_scope(name, "one_hot", [indices, depth]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        given = []
        for label, value in (("on_value", on_value), ("off_value", off_value)):
            if value is not None:
                tensor = convert_to_tensor(value, dtype_hint=wanted, name=label)
                if wanted is not None and tensor.dtype.base_dtype is not wanted:
                    raise TypeError(
                        f"dtype {wanted.name} of one_hot and the type {tensor.dtype.name} of "
                        f"{label} do not match"
                    )
                wanted = wanted or tensor.dtype.base_dtype
            given.append(value)
        wanted = wanted or dtypes.float32
        on, off = given
        return one_hot_op(
            convert_to_tensor(indices, name="indices"),
            convert_to_tensor(depth, dtypes.int32, name="depth"),
            convert_to_tensor(_one(wanted) if on is None else on, wanted, name="on_value"),
            convert_to_tensor(_zero(wanted) if off is None else off, wanted, name="off_value"),
            axis=-1 if axis is None else axis,
            name=scope,
        )


def _one(dtype: dtypes.DType) -> Any:
    return True if dtype.is_bool else 1


def _zero(dtype: dtypes.DType) -> Any:
    return False if dtype.is_bool else 0
