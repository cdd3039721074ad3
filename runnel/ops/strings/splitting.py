"""Splitting strings into parts, joining those of an axis or of a segment."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import string
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import reshape
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.strings.texts import encoded, in_pieces, one_by_one, string_op

_PARTS = "indices: int64, values: string, shape: int64"

split_op = string_op(
    "StringSplit", "input: string, delimiter: string", _PARTS, "skip_empty: bool = true"
)
split_v2_op = string_op("StringSplitV2", "input: string, sep: string", _PARTS, "maxsplit: int = -1")
reduce_join_op = string_op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32",
    "output: string",
    ["keep_dims: bool = false", "separator: string = ''"],
)
segment_join_op = string_op(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: string",
    [
        "separator: string = ''",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32",
    ],
)


def _split_dims(texts: Tensor, sep: Tensor) -> list[Any]:
    if texts.dims is not None and len(texts.dims) != 1:
        raise ValueError(f"input must be a vector of strings, not of shape {texts.shape}")
    return [(None, 2), (None,), (2,)]


split_op.shape(_split_dims)
split_v2_op.shape(_split_dims)


def _sparse(rows: list[list[bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(rows) == 1:  # as where a dataset splits its lines
        (row,) = rows
        places = np.zeros((len(row), 2), np.int64)
        places[:, 1] = np.arange(len(row))
        parts = np.empty(len(row), object)
        parts[:] = row
        return places, parts, np.array([1, len(row)], np.int64)
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    ends = np.cumsum(counts)
    total = int(ends[-1]) if rows else 0
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), counts)
    indices[:, 1] = np.arange(total) - np.repeat(ends - counts, counts)
    values = np.empty(total, object)
    values[:] = list(itertools.chain.from_iterable(rows))
    return indices, values, np.array([len(rows), counts.max(initial=0)], np.int64)


def _one(text: Any) -> bytes:
    if np.ndim(text):
        raise InvalidArgumentError(None, None, f"The separator must be one string, not {text}")
    return np.asarray(text).item()


@split_op.kernel
def _(xp, texts, delimiter, *, skip_empty):
    marks = _one(delimiter)
    if not marks:
        return _sparse([_bytes(text) for text in one_by_one(texts)])
    mark, all_alike = marks[:1], bytes.maketrans(marks, marks[:1] * len(marks))
    rows: list[list[bytes]] = []
    for piece in in_pieces(texts):
        plain = piece if len(marks) == 1 else [text.translate(all_alike) for text in piece]
        parts = [text.split(mark) for text in plain]
        if mark * 2 in mark.join([b"", *plain, b""]):  # there are empty parts
            if skip_empty:
                parts = [list(filter(None, row)) for row in parts]
            else:  # of nothing there is no part
                parts = [row if text else [] for row, text in zip(parts, plain, strict=True)]
        rows += parts
    return _sparse(rows)


def _bytes(text: bytes) -> list[bytes]:
    return [text[i : i + 1] for i in range(len(text))]


@split_v2_op.kernel
def _(xp, texts, sep, *, maxsplit):
    separator = _one(sep)
    limit = maxsplit if maxsplit > 0 else -1
    if separator:
        return _sparse([text.split(separator, limit) for text in one_by_one(texts)])
    if limit < 0:
        return _sparse([text.split() for text in one_by_one(texts)])
    return _sparse([_words(text, limit) for text in one_by_one(texts)])


def _words(text: bytes, limit: int) -> list[bytes]:
    """What stands between blanks; after ``limit`` words the rest, even if there is none."""
    words = text.split(None, limit)
    if limit == len(words):
        words.append(b"")
    return words


def _axes(axes: Any, rank: int) -> list[int]:
    found = []
    for axis in np.asarray(axes).reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {rank} dimensions")
        found.append(axis % rank)
    if len(set(found)) != len(found):
        raise ValueError(f"Duplicate reduction dimension in {found}")
    return found


@reduce_join_op.shape
def _(texts, axes, *, keep_dims):
    known = constant_value(axes)
    if texts.dims is None or known is None:
        return None
    gone = _axes(known, len(texts.dims))
    if keep_dims:
        return tuple(1 if d in gone else n for d, n in enumerate(texts.dims))
    return tuple(n for d, n in enumerate(texts.dims) if d not in gone)


@reduce_join_op.kernel
def _(xp, texts, axes, *, keep_dims, separator):
    texts = np.asarray(texts, object)
    try:
        gone = _axes(axes, texts.ndim)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None
    if not gone:
        return texts.copy()
    kept = [d for d in range(texts.ndim) if d not in gone]
    # The axis that is named last goes slowest.
    sizes = [int(np.prod([texts.shape[d] for d in some])) for some in (kept, gone)]
    rows = texts.transpose(kept + gone[::-1]).reshape(sizes)
    between = encoded(separator)
    out = np.empty(len(rows), object)
    out[:] = [between.join(row) for row in rows.tolist()]
    shape = [1 if d in gone else n for d, n in enumerate(texts.shape) if keep_dims or d not in gone]
    return out.reshape(shape)


def _joined(between: bytes, parts: list[bytes]) -> bytes:
    """``parts`` joined; as in TensorFlow, nothing stands before the first that is not empty."""
    if parts and not parts[0]:
        parts = list(itertools.dropwhile(operator.not_, parts))
    return between.join(parts)


@segment_join_op.shape
def _(texts, ids, count):
    known = constant_value(count)
    if texts.dims is None or ids.dims is None:
        return None
    return (None if known is None else int(known), *texts.dims[len(ids.dims) :])


@segment_join_op.kernel
def _(xp, texts, ids, count, *, separator):
    texts, total = np.asarray(texts, object), int(count)
    if texts.shape[: ids.ndim] != ids.shape:
        raise InvalidArgumentError(
            None, None, f"segment_ids {ids.shape} must be a prefix of the shape {texts.shape}"
        )
    if ids.size and (ids.max() >= total or ids.min() < 0):
        raise InvalidArgumentError(
            None, None, f"segment_ids must be in [0, {total}): {ids.tolist()}"
        )
    rest = texts.shape[ids.ndim :]
    rows = texts.reshape((ids.size, -1))
    width = rows.shape[1]
    joined: list[list[bytes]] = [[] for _ in range(total * width)]
    places = ids.reshape(-1).tolist()
    for column in range(width):
        for segment, text in zip(places, rows[:, column].tolist(), strict=True):
            joined[segment * width + column].append(text)
    between = encoded(separator)
    out = np.empty(total * width, object)
    out[:] = [_joined(between, parts) for parts in joined]
    return out.reshape((total, *rest))


def string_split(
    source: Any = None,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    input: Any = None,  # noqa: A002 (TensorFlow's name)
    name: str | None = None,
) -> Any:
    """The parts of each string of a vector, split at each character of ``sep`` (a blank).

    Example:
        >>> tf.string_split(["a b", "c"])  # "a" and "b" in the first row, "c" in the second
    """
    texts = convert_to_tensor(input if source is None else source, string)
    marks = sep if delimiter is None else delimiter
    marks = " " if marks is None else marks
    parts = SparseTensor(*split_op(texts, marks, skip_empty=skip_empty, name=name))
    return _in_form(parts, result_type)


def string_split_v2(
    input: Any = None,  # noqa: A002 (TensorFlow's name)
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """The parts of each string, split as Python's ``str.split`` does: one dimension more.

    Strings may be a tensor of any rank or a ragged tensor; a single one counts as a vector of one.
    ``result_type`` is "SparseTensor" or "RaggedTensor".

    Example:
        >>> tf.strings.split(["a,,b"], sep=",")  # "a", "" and "b"
    """
    given = source if input is None else input
    separator = "" if sep is None else sep
    with name_scope(name, "StringSplit", [given] if isinstance(given, Tensor) else []):
        texts = given if isinstance(given, RaggedTensor) else convert_to_tensor(given, string)
        if isinstance(texts, Tensor) and (texts.dims is None or len(texts.dims) <= 1):
            vector = texts if texts.dims != () else reshape(texts, [1])
            parts = SparseTensor(*split_v2_op(vector, separator, maxsplit=maxsplit))
            return _in_form(parts, result_type)

        def split(vector: Tensor) -> RaggedTensor:
            parts = SparseTensor(*split_v2_op(vector, separator, maxsplit=maxsplit))
            return _rows(parts)

        _require_result_type(result_type)
        ragged = _of_each(texts, split)
        return ragged if result_type == "RaggedTensor" else ragged.to_sparse()


def _of_each(texts: Any, split: Callable[[Tensor], RaggedTensor]) -> RaggedTensor:
    """What ``split`` makes of a vector of strings, in the place of each string of ``texts``."""
    rows = texts
    if isinstance(texts, Tensor):
        if texts.dims is None:
            raise ValueError("The rank of the strings must be known.")
        rows = RaggedTensor.from_tensor(texts, ragged_rank=len(texts.dims) - 1)
    flat = rows.flat_values
    rank = flat.get_shape().ndims
    if rank is not None and rank > 1:
        flat = RaggedTensor.from_tensor(flat, ragged_rank=rank - 1)
        return rows.with_flat_values(flat.with_flat_values(split(flat.flat_values)))
    return rows.with_flat_values(split(flat))


def _in_form(parts: SparseTensor, result_type: str) -> Any:
    """The parts of strings as a SparseTensor or a RaggedTensor."""
    _require_result_type(result_type)
    return parts if result_type == "SparseTensor" else _rows(parts)


def _require_result_type(result_type: str) -> None:
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError(
            f"result_type must be 'SparseTensor' or 'RaggedTensor', not {result_type!r}"
        )


def _rows(parts: SparseTensor) -> RaggedTensor:
    rows = parts.indices[:, 0]
    return RaggedTensor.from_value_rowids(parts.values, rows, parts.dense_shape[0], validate=False)


def string_bytes_split(input: Any, name: str | None = None) -> Any:  # noqa: A002
    """The bytes of each string, as strings of one byte: a ragged tensor with a dimension more.

    Example:
        >>> tf.strings.bytes_split(["ab", "c"])  # [["a", "b"], ["c"]]
    """

    def split(vector: Tensor) -> RaggedTensor:
        return _rows(SparseTensor(*split_op(vector, "", skip_empty=False)))

    with name_scope(name, "StringsByteSplit", []):
        texts = input if isinstance(input, RaggedTensor) else convert_to_tensor(input, string)
        if isinstance(texts, Tensor) and texts.dims == ():
            return split(reshape(texts, [1])).values
        if isinstance(texts, Tensor) and texts.dims is not None and len(texts.dims) == 1:
            return split(texts)
        return _of_each(texts, split)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings along ``axis``, or all of them, joined.

    Example:
        >>> tf.reduce_join([["a", "b"], ["c", "d"]], 1)  # ["ab", "cd"]
    """
    texts = convert_to_tensor(inputs, string)
    axes = reduction_indices if axis is None else axis
    if axes is None:
        if texts.dims is None:
            raise ValueError("axis must be given for strings of unknown rank")
        axes = convert_to_tensor(np.arange(len(texts.dims) - 1, -1, -1, dtype=np.int32))
    keep = keepdims if keep_dims is None else keep_dims
    return reduce_join_op(texts, axes, keep_dims=bool(keep), separator=separator, name=name)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """The strings of each segment, joined in their order."""
    return segment_join_op(inputs, segment_ids, num_segments, separator=separator, name=name)
