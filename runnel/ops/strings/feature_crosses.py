"""Crosses of features: every combination of the values that an example has."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
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

_INPUTS = "indices: N * int64, values: sparse_types, shapes: N * int64"
_OUTPUTS = "output_indices: int64, output_values: out_type, output_shape: int64"
_ATTRS = [
    "N: int >= 0",
    "hashed_output: bool",
    "num_buckets: int >= 0",
    "hash_key: int",
    f"sparse_types: {_KINDS}",
    f"dense_types: {_KINDS}",
    "out_type: {int64, string}",
    "internal_type: {int64, string}",
]
cross_op = sparse_op("SparseCross", f"{_INPUTS}, dense_inputs: dense_types", _OUTPUTS, _ATTRS)
# Those of tf.contrib.layers; the older one has no key, and mixes hashes in another way.
contrib_cross_v2_op = sparse_op(
    "SparseFeatureCrossV2", f"{_INPUTS}, dense: dense_types", _OUTPUTS, _ATTRS
)
contrib_cross_op = sparse_op(
    "SparseFeatureCross",
    f"{_INPUTS}, dense: dense_types",
    _OUTPUTS,
    [attr for attr in _ATTRS if not attr.startswith("hash_key")],
)


@cross_op.shape
def _(indices, values, shapes, dense_inputs):
    return [(None, 2), (None,), (2,)]


@contrib_cross_v2_op.shape
@contrib_cross_op.shape
def _(indices, values, shapes, dense):
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


_STEP = 0x9E3779B97F4A7800


def _stirred(first: int, second: int) -> int:
    """A hash of two hashes, as boost's ``hash_combine`` mixes signed numbers."""
    signed = first - (1 << 64) if first >> 63 else first
    return first ^ (second + _STEP + (first << 10) + (signed >> 4)) & _MASK


def _columns(
    indices: list[np.ndarray],
    values: list[np.ndarray],
    shapes: list[np.ndarray],
    dense: list[np.ndarray],
) -> list[list[list[Any]]]:
    """For each feature the values of each example; sparse features come first."""
    rows = _row_count(shapes, dense)
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


def _crossed(
    columns: list[list[list[Any]]],
    hashed_output: bool,
    num_buckets: int,
    mix: Callable[[int, int], int] = joined_fingerprints,
    hash_key: int = HASH_KEY,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = len(columns[0])
    if hashed_output:
        columns = [[list(map(_number, row)) for row in column] for column in columns]
        limit = num_buckets or 2**63 - 1

        def made(parts: tuple[Any, ...]) -> Any:
            return functools.reduce(mix, parts, hash_key & _MASK) % limit
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


@cross_op.kernel
def _(xp, indices, values, shapes, dense_inputs, *, hashed_output, num_buckets, hash_key):
    columns = _columns(indices, values, shapes, dense_inputs)
    return _crossed(columns, hashed_output, num_buckets, hash_key=hash_key)


@contrib_cross_v2_op.kernel
def _(xp, indices, values, shapes, dense, *, hashed_output, num_buckets, hash_key):
    columns = _columns(indices, values, shapes, dense)
    return _crossed(columns, hashed_output, num_buckets, hash_key=hash_key)


@contrib_cross_op.kernel
def _(xp, indices, values, shapes, dense, *, hashed_output, num_buckets):
    columns = _columns(indices, values, shapes, dense)
    return _crossed(columns, hashed_output, num_buckets, _stirred)


def _number(value: Any) -> int:
    """A value as 64 bits: a string by its fingerprint."""
    if not isinstance(value, bytes):
        return value & _MASK
    return int(hashed([value], fingerprint64)[0])


def _cross(op_def: Any, inputs: Any, as_hashes: bool, buckets: int, **options: Any) -> SparseTensor:
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
    parts = op_def(
        [one.indices for one in sparse],
        values,
        [one.dense_shape for one in sparse],
        dense,
        hashed_output=as_hashes,
        num_buckets=buckets,
        out_type=dtypes.int64 if as_hashes else dtypes.string,
        internal_type=internal,
        **options,
    )
    return SparseTensor(*parts)


def sparse_cross(inputs: Any, name: str | None = None) -> SparseTensor:
    """Every combination of an example's values, joined by "_X_".

    ``inputs`` is a list of features: matrices, sparse or dense, with a row for each example.

    Example:
        >>> tf.sparse.cross([[["a"], ["b"]], [["x", "y"], ["z", "w"]]])
        # rows of "a_X_x", "a_X_y" and "b_X_z", "b_X_w"
    """
    return _cross(cross_op, inputs, False, 0, hash_key=HASH_KEY, name=name)


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Every combination of an example's values, as a hash below ``num_buckets``."""
    key = HASH_KEY if hash_key is None else hash_key
    return _cross(cross_op, inputs, True, num_buckets, hash_key=key, name=name)


def sparse_feature_cross(
    inputs: Any,
    hashed_output: bool = False,
    num_buckets: int = 0,
    name: str | None = None,
    hash_key: int | None = None,
) -> SparseTensor:
    """Every combination of an example's values, with the hashes of ``tf.contrib.layers``.

    Without a ``hash_key`` these are others than those of ``tf.sparse.cross_hashed``.
    """
    if hash_key is None:
        return _cross(contrib_cross_op, inputs, hashed_output, num_buckets, name=name)
    op_def = contrib_cross_v2_op
    return _cross(op_def, inputs, hashed_output, num_buckets, hash_key=hash_key, name=name)
