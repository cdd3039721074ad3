"""Crosses of features: every combination of the values that an example has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.sparse_tensor import SparseTensor, SparseTensorValue
from runnel.ops.casting import cast
from runnel.ops.sparse.coordinates import sparse_op
from runnel.ops.strings.hashes import U64, Words, fingerprint64, hashed

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


_FACTOR = U64(0xC6A4A7935BD1E995)


def _shifted(value: Words) -> Words:
    return value ^ (value >> U64(47))


def joined_fingerprints(first: Words, second: Words) -> Words:
    """Fingerprints of pairs of fingerprints, in their order (as Murmur's hash mixes words)."""
    mixed = first ^ _FACTOR
    mixed = (mixed ^ _shifted(second * _FACTOR) * _FACTOR) * _FACTOR
    return _shifted(_shifted(mixed) * _FACTOR)


_STEP = U64(0x9E3779B97F4A7800)


def stirred_hashes(first: Words, second: Words) -> Words:
    """Hashes of pairs of hashes, as boost's ``hash_combine`` mixes signed numbers."""
    signed = (first.view(np.int64) >> 4).view(U64)
    return first ^ (second + _STEP + (first << U64(10)) + signed)


@dataclass(frozen=True, slots=True)
class _Feature:
    """The values of a feature, those of an example together, and how many each example has."""

    values: np.ndarray
    counts: np.ndarray
    is_single: bool = False
    """Whether each example has one."""


def _features(
    indices: list[np.ndarray],
    values: list[np.ndarray],
    shapes: list[np.ndarray],
    dense: list[np.ndarray],
) -> list[_Feature]:
    """The features; sparse ones come first."""
    rows = _row_count(shapes, dense)
    found = []
    for places, numbers in zip(indices, values, strict=True):
        row = places[:, 0]
        outside = (row < 0) | (row >= rows)
        if outside.any():
            first = row[outside][0]
            raise InvalidArgumentError(None, None, f"row {first} is outside of {rows} examples")
        if (row[1:] < row[:-1]).any():
            order = np.argsort(row, kind="stable")
            row, numbers = row[order], numbers[order]
        counts = np.bincount(row, minlength=rows)
        found.append(_Feature(numbers, counts, bool((counts == 1).all())))
    for matrix in dense:
        width = matrix.shape[1]
        found.append(_Feature(matrix.reshape(-1), np.full(rows, width, np.int64), width == 1))
    return found


def _row_count(shapes: list[np.ndarray], dense: list[np.ndarray]) -> int:
    counts = {int(shape[0]) for shape in shapes} | {len(matrix) for matrix in dense}
    if len(counts) != 1 or any(matrix.ndim != 2 for matrix in dense):
        raise InvalidArgumentError(
            None, None, f"All features must be matrices with as many rows, not {sorted(counts)}"
        )
    return counts.pop()


def _crossed(
    features: list[_Feature],
    hashed_output: bool,
    num_buckets: int,
    mix: Callable[[Words, Words], Words] = joined_fingerprints,
    hash_key: int = HASH_KEY,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = [_numbers(feature.values) if hashed_output else feature.values for feature in features]
    if all(feature.is_single for feature in features):
        rows, parts = len(values[0]), values
        crosses = _joined(parts, rows, hashed_output, num_buckets, mix, hash_key)
        places = np.zeros((rows, 2), np.int64)
        places[:, 0] = np.arange(rows)
        return places, crosses, np.array([rows, min(rows, 1)], np.int64)
    totals = functools.reduce(np.multiply, [feature.counts for feature in features])
    ends = np.cumsum(totals)
    rows, count = len(totals), int(totals.sum())
    row = np.repeat(np.arange(rows), totals)
    place = np.arange(count) - np.repeat(ends - totals, totals)
    # The last feature goes fastest: the place of a cross is a number with a digit for each.
    chosen: list[np.ndarray] = []
    rest = place
    for feature in features[::-1]:
        begins = np.cumsum(feature.counts) - feature.counts
        width = feature.counts[row]
        chosen.append(begins[row] + rest % width)
        rest = rest // width
    parts = [part[at] for part, at in zip(values, chosen[::-1], strict=True)]
    crosses = _joined(parts, count, hashed_output, num_buckets, mix, hash_key)
    shape = np.array([rows, totals.max(initial=0)], np.int64)
    return np.stack([row, place], 1), crosses, shape


def _joined(
    parts: list[np.ndarray],
    count: int,
    hashed_output: bool,
    num_buckets: int,
    mix: Callable[[Words, Words], Words],
    hash_key: int,
) -> np.ndarray:
    """``count`` crosses, of what each feature has for them: texts and numbers, or hashes."""
    if hashed_output:
        with np.errstate(over="ignore"):
            first = np.full(count, hash_key & 2**64 - 1, U64)
            limit = U64(num_buckets or 2**63 - 1)
            return (functools.reduce(mix, parts, first) % limit).astype(np.int64)
    crosses = np.empty(count, object)
    crosses[:] = list(map(b"_X_".join, zip(*[_texts(values) for values in parts], strict=True)))
    return crosses


def _numbers(values: np.ndarray) -> Words:
    """Values as 64 bits: strings by their fingerprints."""
    if values.dtype != object:
        return values.astype(np.int64, copy=False).view(U64)
    return hashed(values.tolist(), fingerprint64)


def _texts(values: np.ndarray) -> list[bytes]:
    found: list[Any] = values.tolist()
    return found if values.dtype == object else [b"%d" % value for value in found]


@cross_op.kernel
def _(xp, indices, values, shapes, dense_inputs, *, hashed_output, num_buckets, hash_key):
    features = _features(indices, values, shapes, dense_inputs)
    return _crossed(features, hashed_output, num_buckets, hash_key=hash_key)


@contrib_cross_v2_op.kernel
def _(xp, indices, values, shapes, dense, *, hashed_output, num_buckets, hash_key):
    features = _features(indices, values, shapes, dense)
    return _crossed(features, hashed_output, num_buckets, hash_key=hash_key)


@contrib_cross_op.kernel
def _(xp, indices, values, shapes, dense, *, hashed_output, num_buckets):
    features = _features(indices, values, shapes, dense)
    return _crossed(features, hashed_output, num_buckets, stirred_hashes)


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
