"""The values of features of examples as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.shapes import TensorShape
from runnel.ops.parsing.example_layout import Group, groups_of

_FIELDS = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
Values = Sequence[Any] | np.ndarray
_LONG = 32
"""From how many floats on their bytes are taken as they are."""


def text(value: Any) -> str:
    """The text of a string element."""
    content = np.asarray(value).item()
    return content if isinstance(content, str) else content.decode()


def texts(values: Any) -> list[str]:
    """The texts of string elements."""
    return [text(value) for value in np.asarray(values, object).reshape(-1)]


def message(kind: Any, content: bytes, name: str) -> Any:
    """The message that ``content`` is."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(content)
    except DecodeError:
        raise InvalidArgumentError(
            None, None, f"Name: {name}, could not parse example input, value: {content[:60]!r}"
        ) from None


def values_of(feature: Any, dtype: DType, key: str, name: str) -> Values | None:
    """The values of a feature, which are of ``dtype``; None where it has none of any kind."""
    field = feature.WhichOneof("kind")
    if field is None:
        return None
    if field != _FIELDS[dtype]:
        raise _another_type(name, key, dtype, field)
    found = getattr(feature, field)
    if field == "float_list" and len(found.value) >= _LONG:
        # All of them stand in one run of bytes at the end of the message.
        return np.frombuffer(found.SerializeToString()[-4 * len(found.value) :], "<f4")
    return found.value


def _another_type(name: str, key: str, dtype: DType, found: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"Name: {name}, Key: {key}.  Data types don't match. Expected type: {dtype.name}, but the "
        f"feature is a list of {found}",
    )


def in_features(features: Mapping[str, Any], key: str, dtype: DType, name: str) -> Values | None:
    """The values of the feature ``key``; None where it is missing."""
    return values_of(features[key], dtype, key, name) if key in features else None


class Examples:
    """The features of serialized ``Example`` messages, by their keys."""

    def __init__(self, kind: Any, contents: list[bytes], names: list[str]) -> None:
        self._names = names
        self._groups, others = groups_of(contents)
        self._others = {
            place: message(kind, contents[place], names[place]).features.feature for place in others
        }

    def column(self, key: str, dtype: DType) -> Column:
        """The values of a feature of each message."""
        if len(self._groups) == 1 and not self._others:
            group = self._groups[0]
            if self._has(group, key, dtype):
                return Column(group.values(key))
        rows: list[Values | None] = [None] * len(self._names)
        for group in self._groups:
            if self._has(group, key, dtype):
                for place, values in zip(group.rows.tolist(), group.values(key), strict=True):
                    rows[place] = values
        for place, features in self._others.items():
            rows[place] = in_features(features, key, dtype, self._names[place])
        return Column(rows)

    def _has(self, group: Group, key: str, dtype: DType) -> bool:
        found = group.type_of(key)
        if found is not None and found is not dtype:
            raise _another_type(self._names[group.rows[0]], key, dtype, found.name)
        return found is not None


class Column:
    """The values of a feature of several messages: None where it is missing."""

    def __init__(self, rows: list[Values | None] | np.ndarray) -> None:
        self.whole = rows if isinstance(rows, np.ndarray) else None
        """All of them in a matrix, if there are as many of each."""
        self.rows: list[Values | None] = list(rows)


def array_of(values: Values, dtype: DType) -> np.ndarray:
    """``values`` as an array."""
    if dtype is dtypes.string:
        out = np.empty(len(values), object)
        out[:] = list(values)
        return out
    return np.array(values, dtype.np_dtype)


def joined(parts: list[Values], dtype: DType) -> np.ndarray:
    """The values of all ``parts`` in one array."""
    if any(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(
            [part if isinstance(part, np.ndarray) else array_of(part, dtype) for part in parts]
        )
    flat: list[Any] = []
    for part in parts:
        flat.extend(part)
    return array_of(flat, dtype)


def sparse_of(column: Column, dtype: DType) -> list[np.ndarray]:
    """The indices, values and shape of a sparse matrix with the rows of ``column``."""
    rows = column.rows
    lengths = np.array([0 if row is None else len(row) for row in rows], np.int64)
    values = joined([row for row in rows if row is not None], dtype)
    row_of = np.repeat(np.arange(len(rows)), lengths)
    starts = np.cumsum(lengths) - lengths
    column_of = np.arange(len(values)) - np.repeat(starts, lengths)
    indices = np.stack([row_of, column_of], axis=1).astype(np.int64)
    return [indices, values, np.array([len(rows), lengths.max(initial=0)], np.int64)]


def dense_of(
    column: Column,
    names: list[str],
    key: str,
    dtype: DType,
    shape: TensorShape,
    default: np.ndarray,
) -> np.ndarray:
    """The features of one key of several examples, one below the other."""
    dims, rows, whole = shape.as_list(), column.rows, column.whole
    if dims and dims[0] is None:
        return _padded(rows, names, key, dtype, [d or 0 for d in dims[1:]], default)
    wanted = shape.num_elements()
    assert wanted is not None
    if whole is not None and whole.shape[1] == wanted:
        return whole.reshape((len(rows), *[d or 0 for d in dims]))
    parts: list[Values] = []
    for row, name in zip(rows, names, strict=True):
        if row is None:
            if not default.size and wanted:
                raise _required(name, key, dtype)
            parts.append(default.reshape(-1).tolist())
            continue
        if len(row) != wanted:
            raise InvalidArgumentError(
                None,
                None,
                f"Name: {name}, Key: {key}.  Number of {dtype.name} values != expected.  values "
                f"size: {len(row)} but output shape: {shape}",
            )
        parts.append(row)
    flat = joined(parts, dtype) if parts else np.empty(0, dtype.np_dtype)
    return flat.reshape((len(rows), *[d or 0 for d in dims]))


def _padded(
    rows: list[Values | None],
    names: list[str],
    key: str,
    dtype: DType,
    dims: list[int],
    default: np.ndarray,
) -> np.ndarray:
    """Sequences of elements of ``dims``, filled up with ``default`` to the longest of them."""
    each = int(np.prod(dims, dtype=np.int64))
    for row, name in zip(rows, names, strict=True):
        if row is not None and each and len(row) % each:
            raise InvalidArgumentError(
                None,
                None,
                f"Name: {name}, Key: {key}.  The number of {dtype.name} values, {len(row)}, is "
                f"not a multiple of those of an element of shape {tuple(dims)}",
            )
    longest = max([0 if row is None else len(row) for row in rows], default=0)
    out = np.empty((len(rows), longest), dtype.np_dtype)
    out[...] = default.reshape(-1)[0] if default.size else (b"" if dtype is dtypes.string else 0)
    for i, row in enumerate(rows):
        if row is not None and len(row):
            out[i, : len(row)] = array_of(row, dtype)
    return out.reshape((len(rows), longest // each if each else 0, *dims))


def _required(name: str, key: str, dtype: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"Name: {name}, Feature: {key} (data type: {dtype.name}) is required but could not be "
        "found. Give it a default_value if it may be missing.",
    )
