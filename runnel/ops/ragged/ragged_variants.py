"""Ragged tensors as variants, which datasets hold: the splits, then the innermost values.

A ragged tensor is a vector of its parts, as a sparse one is; several are the rows of a matrix. Each
dimension before the last becomes a ragged one when they are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.ops.ragged.ragged_ops import SPLITS, dense_splits, require_splits

to_variant_op = register_op(
    "RaggedTensorToVariant",
    inputs="rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
    outputs="encoded_ragged: variant",
    attrs=["RAGGED_RANK: int >= 0", "Tvalues: type", SPLITS, "batched_input: bool"],
    host=True,
    differentiable=False,
)
from_variant_op = register_op(
    "RaggedTensorFromVariant",
    inputs="encoded_ragged: variant",
    outputs="output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
    attrs=[
        "input_ragged_rank: int >= -1",
        "output_ragged_rank: int >= 0",
        "Tvalues: type",
        SPLITS,
    ],
    host=True,
    differentiable=False,
)


@to_variant_op.shape
def _(splits, values, *, RAGGED_RANK, batched_input):  # noqa: N803
    if not batched_input:
        return (RAGGED_RANK + 1,)
    outer = splits[0] if splits else values
    count = outer.dims[0] if outer.dims else None
    return (None if count is None else count - bool(splits), max(RAGGED_RANK, 1))


@to_variant_op.kernel
def _(xp, splits, values, *, batched_input):
    for place, cuts in enumerate(splits):
        inner = splits[place + 1 :]
        require_splits(cuts, len(inner[0]) - 1 if inner else len(values))
    if not batched_input:
        return _vector([*splits, values])
    if not splits:
        rows = [[np.asarray(row)] for row in values]
    else:
        rows = [_row(splits, values, row) for row in range(len(splits[0]) - 1)]
    out = np.empty((len(rows), max(len(splits), 1)), object)
    for row, parts in enumerate(rows):
        out[row] = _vector(parts)
    return out


def _vector(parts: list[np.ndarray]) -> np.ndarray:
    out = np.empty(len(parts), object)
    for place, part in enumerate(parts):
        out[place] = part
    return out


def _row(splits: list[np.ndarray], values: np.ndarray, row: int) -> list[np.ndarray]:
    """The parts of one row: its splits begin with 0 again."""
    begin, end = splits[0][row], splits[0][row + 1]
    parts = []
    for cuts in splits[1:]:
        own = cuts[begin : end + 1]
        begin, end = own[0], own[-1]
        parts.append(own - begin)
    return [*parts, values[begin:end]]


@from_variant_op.shape
def _(encoded, *, output_ragged_rank):
    return [*[(None,)] * output_ragged_rank, None]


@from_variant_op.kernel
def _(xp, encoded, *, output_ragged_rank, Tvalues, Tsplits):  # noqa: N803
    outer = encoded.shape[:-1]
    rank = output_ragged_rank - len(outer)
    if not encoded.ndim or rank < -1 or encoded.shape[-1] != max(rank, 0) + 1:
        raise InvalidArgumentError(
            None,
            None,
            f"A variant of shape {list(encoded.shape)} holds no ragged tensor of ragged rank "
            f"{output_ragged_rank}.",
        )
    kind = Tsplits.np_dtype
    items = list(encoded.reshape(-1, encoded.shape[-1]))
    if not outer:
        *splits, values = items[0]
        return [*(cuts.astype(kind, copy=False) for cuts in splits), values]
    lengths = []
    if rank >= 0:
        lengths.append(np.array([len(item[0]) - bool(rank) for item in items], np.int64))
        for level in range(rank):
            lengths.append(_joined([np.diff(item[level]) for item in items], kind))
    values = _joined(
        [item[-1] if rank >= 0 else item[-1][None] for item in items], Tvalues.np_dtype
    )
    inner = [np.concatenate([[0], np.cumsum(one)]).astype(kind) for one in lengths]
    return [*dense_splits(outer, kind), *inner, values]


def _joined(arrays: list[np.ndarray], dtype: Any) -> np.ndarray:
    """The rows of all arrays."""
    if not arrays:
        return np.empty(0, dtype)
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None,
            None,
            "Cannot batch ragged tensors whose values have different shapes: "
            f"{sorted(map(list, shapes))}.",
        )
    return np.concatenate(arrays)
