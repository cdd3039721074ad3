"""Python's ``x[...]`` on ragged tensors."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.ragged.ragged_rows import ragged_gather, ragged_range
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.ragged.row_partitions import lengths_to_splits
from runnel.ops.ranges import range as sequence
from runnel.ops.selection import where_v2

_ALL = slice(None)


def ragged_getitem(ragged: RaggedTensor, key: Any) -> Any:
    """``ragged[key]``: rows by number, slices of rows and of what is in them, ``tf.newaxis``.

    A number may not stand where rows have different lengths: it might be in some only.

    Example:
        >>> rt = tf.ragged.constant([[1, 2, 3], [4]])
        >>> rt[0], rt[:, :2], rt[1:]
    """
    keys = list(key) if isinstance(key, list | tuple) else [key]
    return _item(ragged, _without_ellipsis(ragged, keys))


def _without_ellipsis(ragged: RaggedTensor, keys: list[Any]) -> list[Any]:
    places = [i for i, key in enumerate(keys) if key is Ellipsis]
    if not places:
        return keys
    rank = ragged.shape.rank
    if len(places) > 1 or rank is None:
        raise ValueError("Only one Ellipsis may stand in an index, where the rank is known")
    missing = rank - sum(key is not None for key in keys) + 1
    return keys[: places[0]] + [_ALL] * missing + keys[places[0] + 1 :]


def _item(value: Any, keys: list[Any]) -> Any:
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)] if keys else value
    if not keys:
        return value
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _inside(value, rest)
        ends = stack([cast(0, dtypes.int64), cast(value.nrows(), dtypes.int64)])
        return RaggedTensor.from_row_splits(inner, ends, validate=False)
    if isinstance(first, slice):
        return _inside(_rows(value, first), rest)
    splits = value.row_splits
    row: Any = first if isinstance(first, Tensor) else int(first)
    if isinstance(row, Tensor):
        place = cast(row, splits.dtype)
        place = where_v2(place < 0, place + value.nrows(), place)
        return _item(value.values[splits[place] : splits[place + 1]], rest)
    row = row if row >= 0 else row - 1
    start = splits[row]
    limit = splits[row + 1] if row != -1 else splits[-1]
    return _item(value.values[start:limit], rest)


def _rows(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """Some of the rows."""
    if key == _ALL:
        return ragged
    if key.step not in (None, 1):
        return ragged_gather(ragged, sequence(ragged.nrows())[key])
    splits = ragged.row_splits
    starts, limits = splits[:-1][key], splits[1:][key]
    nothing = cast([0], splits.dtype)
    begin = concat([starts, nothing], 0)[0]
    end = concat([nothing, limits], 0)[-1]
    return RaggedTensor(ragged.values[begin:end], lengths_to_splits(limits - starts))


def _inside(ragged: RaggedTensor, keys: list[Any]) -> Any:
    """``ragged[:, *keys]``."""
    if not keys:
        return ragged
    first, rest = keys[0], keys[1:]
    if first is None:
        single = RaggedTensor(
            _inside(ragged, rest), sequence(ragged.nrows() + 1, dtype=ragged.row_splits.dtype)
        )
        return single
    if not isinstance(first, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    if first != _ALL:
        ragged = _sliced(ragged, first)
    if not rest:
        return ragged
    if isinstance(ragged.values, RaggedTensor):
        return ragged.with_values(_inside(ragged.values, rest))
    return ragged.with_values(ragged.values[(_ALL, *rest)])


def _sliced(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """A slice of every row."""
    starts, lengths = ragged.row_starts(), ragged.row_lengths()
    kind = lengths.dtype.base_dtype
    step = 1 if key.step is None else int(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, lengths) if step > 0 else (-1, lengths - 1)

    def bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        place = cast(value, kind)
        place = where_v2(place < 0, place + lengths, place + 0 * lengths)
        return minimum(maximum(place, cast(low, kind)), high)

    begin = bound(key.start, 0 * lengths if step > 0 else lengths - 1)
    end = bound(key.stop, lengths if step > 0 else 0 * lengths - 1)
    places = ragged_range(starts + begin, starts + end, cast(step, kind), row_splits_dtype=kind)
    values = ragged.values
    chosen = (
        ragged_gather(values, places.values)
        if isinstance(values, RaggedTensor)
        else gather(values, places.values)
    )
    return places.with_values(chosen)
