"""The coordinates of sparse tensors: what must hold of them, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.stable_order import stable_order

NUMBERS = (
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
    "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}"
)
REALS = "realnumbertype"


def sparse_op(
    name: str, inputs: str, outputs: str, attrs: Any = "T: type", differentiable: bool = False
) -> OpDef:
    """An operation on the host: how many elements its outputs have is data."""
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        host=True,
        differentiable=differentiable,
    )


def require_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, what: str = "The input"
) -> None:
    """An error unless these are the parts of a sparse tensor."""
    if indices.ndim != 2 or values.ndim != 1 or shape.ndim != 1:
        raise _mistake(
            f"{what}: indices must be a matrix, values and shape vectors, but their shapes are "
            f"{indices.shape}, {values.shape} and {shape.shape}"
        )
    if len(indices) != len(values) or indices.shape[1] != len(shape):
        raise _mistake(
            f"{what}: indices {indices.shape} must have a row for each of {len(values)} values "
            f"and a column for each of {len(shape)} dimensions"
        )
    outside = (indices < 0) | (indices >= shape)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        raise _mistake(
            f"{what}: indices[{row}] = {indices[row].tolist()} is out of bounds: need 0 <= index < "
            f"{shape.tolist()}"
        )


def check_values(indices: Any, values: Any, rank: int, check: Any) -> None:
    """Checks the shapes of coordinates and values of a tensor of ``rank``, in either tier."""
    check(
        indices.ndim == 2 and indices.shape[1] == rank and values.shape == indices.shape[:1],
        lambda: (
            f"indices {indices.shape} must have a column for each of {rank} dimensions and a row "
            f"for each of the values {values.shape}"
        ),
    )


def _mistake(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)


_FEW = 64
"""So few rows are sorted before their keys could be made."""


def row_order(indices: np.ndarray) -> np.ndarray:
    """The permutation that sorts rows of coordinates; equal ones stay in their order."""
    if not indices.size:
        return np.arange(len(indices))
    keys = _row_keys(indices) if len(indices) >= _FEW else None
    if keys is None:
        return np.lexsort(indices.T[::-1])
    if (keys[1:] >= keys[:-1]).all():
        return np.arange(len(indices))
    return stable_order(keys)


def _row_keys(indices: np.ndarray) -> np.ndarray | None:
    """A number for each row of coordinates, in their order; None where 64 bits do not hold it."""
    keys, total = np.zeros(len(indices), np.int64), 1
    for column in indices.T:
        low, size = int(column.min()), int(column.max()) - int(column.min()) + 1
        total *= size
        if total >= 2**63:
            return None
        keys *= size
        keys += column
        keys -= low
    return keys


def new_group(indices: np.ndarray) -> np.ndarray:
    """For each row of sorted coordinates, whether it differs from the one before."""
    if not len(indices):
        return np.zeros(0, bool)
    return np.concatenate([[True], (indices[1:] != indices[:-1]).any(axis=1)])


def matrix_dims(indices: Tensor, shape: Tensor | None = None) -> tuple[int | None, int | None]:
    """The static shape of a matrix of coordinates of any number of elements."""
    rank = indices.dims[1] if indices.dims is not None and len(indices.dims) == 2 else None
    if rank is None and shape is not None and shape.dims is not None and len(shape.dims) == 1:
        rank = shape.dims[0]
    return (None, rank)


def as_sparse(value: Any, name: str = "sp_input") -> SparseTensor:
    """``value`` as a sparse tensor, which it has to be."""
    try:
        return SparseTensor.from_value(value)
    except TypeError:
        raise TypeError(
            f"{name} must be a SparseTensor, not {value!r}; tf.sparse.from_dense makes one"
        ) from None
