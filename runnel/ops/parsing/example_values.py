"""The values of features of examples as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.shapes import TensorShape
from runnel.native.input_library import input_library
from runnel.ops.parsing.example_bytes import AnotherType
from runnel.ops.parsing.example_layout import Group, whole_group
from runnel.ops.parsing.example_native import NativeExamples
from runnel.ops.parsing.example_template import AlikeExamples
from runnel.ops.parsing.example_waves import ExampleWaves

_FIELDS = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
Values = Sequence[Any] | np.ndarray
_SEVERAL = 8
"""From how many messages on they are read together."""
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
    """The features of serialized ``Example`` messages, by their keys; those of ``keys`` only."""

    def __init__(
        self, kind: Any, contents: list[bytes], names: list[str], keys: Iterable[str]
    ) -> None:
        self._kind, self._contents, self._names = kind, contents, names
        self._others: dict[int, Any] = {}
        self._together: NativeExamples | AlikeExamples | ExampleWaves | None = None
        library = input_library()
        self._group = whole_group(contents) if library is None else None
        if self._group is not None:
            return
        if library is not None and contents:
            self._together = native = NativeExamples(library, contents, keys)
            if not native.usual.all():
                self._leave(np.flatnonzero(~native.usual).tolist())
            return
        if len(contents) < _SEVERAL:
            self._leave(range(len(contents)))
            return
        self._together = AlikeExamples.of(contents)
        if self._together is None:
            self._together = waves = ExampleWaves(contents)
            self._leave(np.flatnonzero(~waves.usual).tolist())

    def _leave(self, places: Iterable[int]) -> None:
        """Leaves messages to the general parser."""
        for place in places:
            if place not in self._others:
                found = message(self._kind, self._contents[place], self._names[place])
                self._others[place] = found.features.feature

    def column(self, key: str, dtype: DType) -> Column:
        """The values of a feature of each message."""
        if self._group is not None:
            return self._of_group(self._group, key, dtype)
        if self._together is None:
            return self._parsed(key, dtype, [None] * len(self._names))
        return self._of_several(self._together, key, dtype)

    def _of_group(self, group: Group, key: str, dtype: DType) -> Column:
        found, count = group.type_of(key), len(self._names)
        if found is None:
            return Column(np.empty(0, dtype.np_dtype), np.full(count, -1))
        if found is not dtype:
            raise _another_type(self._names[0], key, dtype, found.name)
        values = group.values(key)
        return Column(values.reshape(-1), np.full(count, values.shape[1]))

    def _of_several(
        self, together: NativeExamples | AlikeExamples | ExampleWaves, key: str, dtype: DType
    ) -> Column:
        try:
            values, counts = together.column(key, dtype)
        except AnotherType as mistake:
            raise _another_type(self._names[mistake.row], key, dtype, mistake.found) from None
        column = Column(array_of(values, dtype), counts)
        return self._parsed(key, dtype, column.rows) if self._others else column

    def _parsed(self, key: str, dtype: DType, rows: list[Values | None]) -> Column:
        """``rows``, with those that the general parser has read."""
        for place, features in self._others.items():
            rows[place] = in_features(features, key, dtype, self._names[place])
        return Column.of_rows(rows, dtype)


class Column:
    """The values of a feature of several messages, one after the other, and how many each has.

    Where it is missing that number is -1.
    """

    def __init__(self, flat: np.ndarray, counts: np.ndarray) -> None:
        self.flat, self.counts = flat, counts

    @classmethod
    def of_rows(cls, rows: list[Values | None], dtype: DType) -> Column:
        """That of the values of each message; None where it is missing."""
        given = [row for row in rows if row is not None]
        counts = [-1 if row is None else len(row) for row in rows]
        return cls(joined(given, dtype), np.array(counts, np.int64))

    @property
    def rows(self) -> list[Values | None]:
        """The values of each message; None where it is missing."""
        found: list[Values | None] = []
        at = 0
        for count in self.counts.tolist():
            found.append(None if count < 0 else self.flat[at : at + count])
            at += max(count, 0)
        return found


def array_of(values: Values, dtype: DType) -> np.ndarray:
    """``values`` as an array."""
    if dtype is dtypes.string:
        out = np.empty(len(values), object)
        out[:] = list(values)
        return out
    return np.asarray(values, dtype.np_dtype)


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


def sparse_of(column: Column) -> list[np.ndarray]:
    """The indices, values and shape of a sparse matrix with the rows of ``column``."""
    lengths, values = np.maximum(column.counts, 0), column.flat
    starts = np.cumsum(lengths) - lengths
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
    indices[:, 1] = np.arange(len(values)) - np.repeat(starts, lengths)
    return [indices, values, np.array([len(lengths), lengths.max(initial=0)], np.int64)]


def dense_of(
    column: Column,
    names: list[str],
    key: str,
    dtype: DType,
    shape: TensorShape,
    default: np.ndarray,
) -> np.ndarray:
    """The features of one key of several examples, one below the other."""
    dims = shape.as_list()
    if dims and dims[0] is None:
        return _padded(column, names, key, dtype, [d or 0 for d in dims[1:]], default)
    wanted = shape.num_elements()
    assert wanted is not None
    if (column.counts == wanted).all():
        return column.flat.reshape((len(names), *[d or 0 for d in dims]))
    missing = column.counts < 0
    wrong = (column.counts != wanted) & ~(missing & bool(default.size or not wanted))
    if wrong.any():
        place = int(np.argmax(wrong))
        if missing[place]:
            raise _required(names[place], key, dtype)
        raise InvalidArgumentError(
            None,
            None,
            f"Name: {names[place]}, Key: {key}.  Number of {dtype.name} values != expected.  "
            f"values size: {column.counts[place]} but output shape: {shape}",
        )
    out = np.empty((len(names), wanted), dtype.np_dtype)
    out[missing] = default.reshape(-1)
    out[~missing] = column.flat.reshape(-1, wanted)
    return out.reshape((len(names), *[d or 0 for d in dims]))


def _padded(
    column: Column,
    names: list[str],
    key: str,
    dtype: DType,
    dims: list[int],
    default: np.ndarray,
) -> np.ndarray:
    """Sequences of elements of ``dims``, filled up with ``default`` to the longest of them."""
    each = int(np.prod(dims, dtype=np.int64))
    counts = np.maximum(column.counts, 0)
    wrong = counts % each != 0 if each else np.zeros(len(counts), bool)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidArgumentError(
            None,
            None,
            f"Name: {names[place]}, Key: {key}.  The number of {dtype.name} values, "
            f"{counts[place]}, is not a multiple of those of an element of shape {tuple(dims)}",
        )
    longest = int(counts.max(initial=0))
    out = np.empty((len(counts), longest), dtype.np_dtype)
    out[...] = default.reshape(-1)[0] if default.size else (b"" if dtype is dtypes.string else 0)
    out[np.arange(longest) < counts[:, None]] = column.flat
    return out.reshape((len(counts), longest // each if each else 0, *dims))


def _required(name: str, key: str, dtype: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"Name: {name}, Feature: {key} (data type: {dtype.name}) is required but could not be "
        "found. Give it a default_value if it may be missing.",
    )
