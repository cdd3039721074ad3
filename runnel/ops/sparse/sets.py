"""Sets as the rows of tensors: unions, intersections, differences, sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.sparse.coordinates import as_sparse, require_sparse, sparse_op

_TYPES = "T: {int8, int16, int32, int64, uint8, uint16, string}"
_HOW = ["set_operation: string", "validate_indices: bool = true", _TYPES]
_RESULT = "result_indices: int64, result_values: T, result_shape: int64"


def _sparse_input(name: str) -> str:
    return f"{name}_indices: int64, {name}_values: T, {name}_shape: int64"


dense_dense_op = sparse_op("DenseToDenseSetOperation", "set1: T, set2: T", _RESULT, _HOW)
dense_sparse_op = sparse_op(
    "DenseToSparseSetOperation", f"set1: T, {_sparse_input('set2')}", _RESULT, _HOW
)
sparse_sparse_op = sparse_op(
    "SparseToSparseSetOperation",
    f"{_sparse_input('set1')}, {_sparse_input('set2')}",
    _RESULT,
    _HOW,
)
set_size_op = sparse_op(
    "SetSize", _sparse_input("set"), "size: int32", ["validate_indices: bool = true", _TYPES]
)


def _result_dims(rank: int | None) -> list[Any]:
    return [(None, rank), (None,), (rank,)]


@dense_dense_op.shape
def _(set1, set2):
    return _result_dims(None if set1.dims is None else len(set1.dims))


@dense_sparse_op.shape
def _(set1, indices, values, shape):
    return _result_dims(None if set1.dims is None else len(set1.dims))


@sparse_sparse_op.shape
def _(*parts):
    return _result_dims(None)


@set_size_op.shape
def _(indices, values, shape):
    rank = shape.dims[0] if shape.dims else None
    return None if rank is None else (None,) * (rank - 1)


Sets = dict[tuple[int, ...], set[Any]]


def _of_dense(array: np.ndarray) -> tuple[Sets, tuple[int, ...]]:
    if array.ndim < 2:
        raise InvalidArgumentError(
            None, None, f"A tensor of sets must have at least 2 dimensions, not {array.shape}"
        )
    groups = array.shape[:-1]
    rows = array.reshape(-1, array.shape[-1])
    return dict(zip(np.ndindex(groups), map(set, rows.tolist()), strict=True)), groups


def _of_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, validate: bool
) -> tuple[Sets, tuple[int, ...]]:
    if validate:
        require_sparse(indices, values, shape, "A tensor of sets")
    found: Sets = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place), set()).add(value)
    return found, tuple(shape[:-1].tolist())


_OPERATIONS = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _combined(first: Any, second: Any, operation: Any, dtype: np.dtype) -> tuple[Any, Any, Any]:
    name = operation.decode() if isinstance(operation, bytes) else operation
    if name not in _OPERATIONS:
        raise InvalidArgumentError(None, None, f"Invalid set_operation {name}")
    (a, groups), (b, other_groups) = first, second
    if groups != other_groups:
        raise InvalidArgumentError(
            None, None, f"The sets are in groups of shapes {list(groups)} and {list(other_groups)}"
        )
    indices, values, longest = [], [], 0
    for place in sorted({*a, *b}):
        members = sorted(_OPERATIONS[name](a.get(place, set()), b.get(place, set())))
        longest = max(longest, len(members))
        indices += [(*place, i) for i in range(len(members))]
        values += members
    rank = len(groups) + 1
    out = np.empty(len(values), dtype)
    out[:] = values
    places = np.array(indices, np.int64).reshape(-1, rank)
    return places, out, np.array([*groups, longest], np.int64)


@dense_dense_op.kernel
def _(xp, set1, set2, *, set_operation):
    return _combined(_of_dense(set1), _of_dense(set2), set_operation, set1.dtype)


@dense_sparse_op.kernel
def _(xp, set1, indices, values, shape, *, set_operation, validate_indices):
    second = _of_sparse(indices, values, shape, validate_indices)
    return _combined(_of_dense(set1), second, set_operation, set1.dtype)


@sparse_sparse_op.kernel
def _(xp, i1, v1, s1, i2, v2, s2, *, set_operation, validate_indices):
    first = _of_sparse(i1, v1, s1, validate_indices)
    second = _of_sparse(i2, v2, s2, validate_indices)
    return _combined(first, second, set_operation, v1.dtype)


@set_size_op.kernel
def _(xp, indices, values, shape, *, validate_indices):
    sets, groups = _of_sparse(indices, values, shape, validate_indices)
    sizes = np.zeros(groups, np.int32)
    for place, members in sets.items():
        sizes[place] = len(members)
    return sizes


# Functions ------------------------------------------------------------------------------------


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different values each row of a sparse tensor has."""
    sparse = as_sparse(a, "a")
    return set_size_op(
        sparse.indices, sparse.values, sparse.dense_shape, validate_indices=validate_indices
    )


def _operation(a: Any, b: Any, name: str, validate: bool) -> SparseTensor:
    how: dict[str, Any] = {"set_operation": name, "validate_indices": validate}
    sparse_a, sparse_b = (isinstance(x, SparseTensor) for x in (a, b))
    if sparse_a and not sparse_b:
        # The operation wants the dense one first.
        flipped = {"a-b": "b-a", "b-a": "a-b"}.get(name, name)
        return _operation(b, a, flipped, validate)
    if not sparse_a:
        a = convert_to_tensor(a, name="a")
    if sparse_b:
        parts = (b.indices, b.values, b.dense_shape)
        if not sparse_a:
            return SparseTensor(*dense_sparse_op(a, *parts, **how))
        return SparseTensor(*sparse_sparse_op(a.indices, a.values, a.dense_shape, *parts, **how))
    return SparseTensor(*dense_dense_op(a, convert_to_tensor(b, a.dtype, name="b"), **how))


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The values that each row of ``a`` and of ``b`` have in common, as a sparse tensor.

    Example:
        >>> tf.sets.intersection([[1, 2]], [[2, 3]])  # a row with 2
    """
    return _operation(a, b, "intersection", validate_indices)


def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The values of each row of ``a`` that ``b`` does not have, or the other way around."""
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The values that each row of ``a`` or of ``b`` has."""
    return _operation(a, b, "union", validate_indices)
