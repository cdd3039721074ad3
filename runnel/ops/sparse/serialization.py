"""Sparse tensors as strings: their three parts, each a serialized ``TensorProto``."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.serialized_tensor import parsed, serialized
from runnel.ops.sparse.coordinates import as_sparse, require_sparse, row_order, sparse_op

_PARTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_OUT_TYPE = "out_type: {string, variant} = DT_STRING"
_SPARSE = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64"

serialize_op = sparse_op(
    "SerializeSparse", _PARTS, "serialized_sparse: out_type", ["T: type", _OUT_TYPE]
)
serialize_many_op = sparse_op(
    "SerializeManySparse", _PARTS, "serialized_sparse: out_type", ["T: type", _OUT_TYPE]
)
deserialize_many_op = sparse_op(
    "DeserializeManySparse", "serialized_sparse: string", _SPARSE, "dtype: type"
)
deserialize_op = sparse_op(
    "DeserializeSparse",
    "serialized_sparse: Tserialized",
    _SPARSE,
    ["dtype: type", "Tserialized: {string, variant} = DT_STRING"],
)


def _parts(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dtype: DType, out_type: DType
) -> np.ndarray:
    """The parts of a sparse tensor as strings, or as they are in variants."""
    out = np.empty(3, object)
    if out_type is not dtypes.string:
        for i, part in enumerate((indices, values, shape)):
            out[i] = part
        return out
    out[:] = [
        serialized(indices, dtypes.int64),
        serialized(values, dtype, raw_strings=True),
        serialized(shape, dtypes.int64),
    ]
    return out


def _part(content: Any, dtype: DType) -> np.ndarray:
    return content if isinstance(content, np.ndarray) else parsed(content, dtype)


@serialize_op.shape
def _(indices, values, shape):
    return (3,)


@serialize_op.kernel
def _(xp, indices, values, shape, *, T, out_type):  # noqa: N803 (TensorFlow's name)
    require_sparse(indices, values, shape)
    return _parts(indices, values, shape, T.base_dtype, out_type)


@serialize_many_op.shape
def _(indices, values, shape):
    return (None, 3)


@serialize_many_op.kernel
def _(xp, indices, values, shape, *, T, out_type):  # noqa: N803 (TensorFlow's name)
    require_sparse(indices, values, shape)
    if len(shape) < 2:
        raise InvalidArgumentError(
            None, None, f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
        )
    out = np.empty((int(shape[0]), 3), object)
    for row in range(int(shape[0])):
        chosen = indices[:, 0] == row
        out[row] = _parts(indices[chosen, 1:], values[chosen], shape[1:], T.base_dtype, out_type)
    return out


def _joined(items: list[Any], outer: tuple[int, ...], dtype: DType) -> Any:
    """The sparse tensor of those that the strings hold, with the dimensions ``outer`` before."""
    places: list[np.ndarray] = []
    values: list[np.ndarray] = []
    shapes: list[np.ndarray] = []
    for item, place in zip(items, np.ndindex(outer), strict=True):
        indices, found, shape = (
            _part(item[0], dtypes.int64),
            _part(item[1], dtype),
            _part(item[2], dtypes.int64),
        )
        require_sparse(indices, found, shape, f"serialized_sparse{list(place)}")
        if shapes and len(shapes[0]) != len(shape):
            raise InvalidArgumentError(
                None,
                None,
                f"Inconsistent rank across SparseTensors: rank prior to "
                f"serialized_sparse{list(place)} was {len(shapes[0])} but rank of it is "
                f"{len(shape)}",
            )
        before = np.broadcast_to(np.array(place, np.int64), (len(indices), len(place)))
        places.append(np.concatenate([before, indices], axis=1))
        values.append(found)
        shapes.append(shape)
    if not shapes:
        raise InvalidArgumentError(None, None, "There is no serialized sparse tensor.")
    whole = np.concatenate([np.array(outer, np.int64), np.max(shapes, axis=0)]).astype(np.int64)
    indices, found = np.concatenate(places), np.concatenate(values)
    order = row_order(indices)
    return indices[order], found[order], whole


@deserialize_many_op.shape
def _(text):
    return [(None, None), (None,), (None,)]


@deserialize_many_op.kernel
def _(xp, text, *, dtype):
    if text.ndim != 2 or text.shape[1] != 3:
        raise InvalidArgumentError(
            None, None, f"Serialized sparse should have 3 columns but has shape {text.shape}"
        )
    return _joined(list(text), text.shape[:1], dtype)


@deserialize_op.shape
def _(text):
    return [(None, None), (None,), (None,)]


@deserialize_op.kernel
def _(xp, text, *, dtype):
    if not text.ndim or text.shape[-1] != 3:
        raise InvalidArgumentError(
            None, None, f"Serialized sparse should have 3 as the last dimension, not {text.shape}"
        )
    return _joined(list(text.reshape(-1, 3)), text.shape[:-1], dtype)


def serialize_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """A sparse tensor as three strings."""
    sparse = as_sparse(sp_input)
    return serialize_op(
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        out_type=as_dtype(out_type),
        name=name,
    )


def serialize_many_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """The rows of a sparse tensor as three strings each."""
    sparse = as_sparse(sp_input)
    return serialize_many_op(
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        out_type=as_dtype(out_type),
        name=name,
    )


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor whose rows :func:`serialize_many_sparse` made strings of."""
    indices, values, shape = deserialize_many_op(
        serialized_sparse, dtype=as_dtype(dtype), name=name
    )
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


def deserialize_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor that :func:`serialize_sparse` made strings of, or several as one."""
    indices, values, shape = deserialize_op(serialized_sparse, dtype=as_dtype(dtype), name=name)
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)
