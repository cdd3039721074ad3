"""Crosses of features: every combination of the values that an example has."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.sparse_tensor import SparseTensor, SparseTensorValue
from runnel.ops.casting import cast
from runnel.ops.sparse.coordinates import sparse_op
from runnel.ops.strings.hashes import fingerprint64, hashed

_KINDS = "list({int64, string}) >= 0"
HASH_KEY = 0xDECAFCAFFE
"""TensorFlow's, where none is given."""

cross_op = sparse_op(
    "SparseCross",
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types",
    "output_indices: int64, output_values: out_type, output_shape: int64",
    [
        "N: int >= 0",
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        f"sparse_types: {_KINDS}",
        f"dense_types: {_KINDS}",
        "out_type: {int64, string}",
        "internal_type: {int64, string}",
    ],
)


@cross_op.shape
def _(indices, values, shapes, dense_inputs):
    return [(None, 2), (None,), (2,)]


_FACTOR = 0xC6A4A7935BD1E995
_MASK = 2**64 - 1


def _shifted(value: int) -> int:
    return value ^ (value >> 47)


def joined_fingerprints(first: int, second: int) -> int:
    """A fingerprint of two fingerprints, in their order (as Murmur's hash mixes words)."""
    mixed = first ^ _FACTOR
    mixed ^= _shifted(second * _FACTOR & _MASK) * _FACTOR & _MASK
    mixed = mixed * _FACTOR & _MASK
    mixed = _shifted(mixed) * _FACTOR & _MASK
    return _shifted(mixed)


def _columns(
    indices: list[np.ndarray], values: list[np.ndarray], dense: list[np.ndarray], rows: int
) -> list[list[list[Any]]]:
    """For each feature the values of each example; sparse features come first."""
    found = []
    for places, numbers in zip(indices, values, strict=True):
        column: list[list[Any]] = [[] for _ in range(rows)]
        for (row, _), value in zip(places.tolist(), numbers.tolist(), strict=True):
            if not 0 <= row < rows:
                raise InvalidArgumentError(None, None, f"row {row} is outside of {rows} examples")
            column[row].append(value)
        found.append(column)
    return found + [list(matrix.tolist()) for matrix in dense]


def _row_count(shapes: list[np.ndarray], dense: list[np.ndarray]) -> int:
    counts = {int(shape[0]) for shape in shapes} | {len(matrix) for matrix in dense}
    if len(counts) != 1 or any(matrix.ndim != 2 for matrix in dense):
        raise InvalidArgumentError(
            None, None, f"All features must be matrices with as many rows, not {sorted(counts)}"
        )
    return counts.pop()


@cross_op.kernel
def _(xp, indices, values, shapes, dense_inputs, *, hashed_output, num_buckets, hash_key):
    rows = _row_count(shapes, dense_inputs)
    columns = _columns(indices, values, dense_inputs, rows)
    if hashed_output:
        columns = [[list(map(_number, row)) for row in column] for column in columns]
        limit = num_buckets or 2**63 - 1
        key = hash_key & _MASK

        def made(parts: tuple[Any, ...]) -> Any:
            mixed = key
            for part in parts:
                mixed = joined_fingerprints(mixed, part)
            return mixed % limit
    else:

        def made(parts: tuple[Any, ...]) -> Any:
            return b"_X_".join(p if isinstance(p, bytes) else b"%d" % p for p in parts)

    places, crosses, longest = [], [], 0
    for row in range(rows):
        found = [made(parts) for parts in itertools.product(*(c[row] for c in columns))]
        longest = max(longest, len(found))
        places += [(row, i) for i in range(len(found))]
        crosses += found
    out = np.empty(len(crosses), np.int64 if hashed_output else object)
    out[:] = crosses
    return (
        np.array(places, np.int64).reshape(-1, 2),
        out,
        np.array([rows, longest], np.int64),
    )


def _number(value: Any) -> int:
    """A value as 64 bits: a string by its fingerprint."""
    if not isinstance(value, bytes):
        return value & _MASK
    return int(hashed([value], fingerprint64)[0])


def _cross(inputs: Any, as_hashes: bool, buckets: int, key: int | None, name: Any) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    sparse, dense = [], []
    for one in inputs:
        if isinstance(one, SparseTensor | SparseTensorValue):
            sparse.append(SparseTensor.from_value(one))
        else:
            dense.append(convert_to_tensor(one))
    internal = dtypes.string

    def prepared(tensor: Any) -> Any:
        nonlocal internal
        if tensor.dtype.base_dtype is dtypes.string:
            return tensor
        internal = dtypes.int64
        return cast(tensor, dtypes.int64)

    values = [prepared(one.values) for one in sparse]
    dense = [prepared(one) for one in dense]
    parts = cross_op(
        [one.indices for one in sparse],
        values,
        [one.dense_shape for one in sparse],
        dense,
        hashed_output=as_hashes,
        num_buckets=buckets,
        hash_key=HASH_KEY if key is None else key,
        out_type=dtypes.int64 if as_hashes else dtypes.string,
        internal_type=internal,
        name=name,
    )
    return SparseTensor(*parts)


def sparse_cross(inputs: Any, name: str | None = None) -> SparseTensor:
    """Every combination of an example's values, joined by "_X_".

    ``inputs`` is a list of features: matrices, sparse or dense, with a row for each example.

    Example:
        >>> tf.sparse.cross([[["a"], ["b"]], [["x", "y"], ["z", "w"]]])
        # rows of "a_X_x", "a_X_y" and "b_X_z", "b_X_w"
    """
    return _cross(inputs, False, 0, None, name)


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Every combination of an example's values, as a hash below ``num_buckets``."""
    return _cross(inputs, True, num_buckets, hash_key, name)
