"""Where a traversal stands, as bytes: what a checkpoint holds of an iterator, a queue or a reader.

Values are written one after the other, each a letter for its kind and its content. Nothing that is
read runs code or is believed: a length beyond what is there is an error.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from runnel.checkpoint.varint import read_varint, varint
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import (
    DataLossError,
    OpError,
    UnknownError,
    exception_type_from_error_code,
)
from runnel.pipelines.batching import Kept
from runnel.pipelines.pipeline import Pipeline, not_saved

_MAGIC = b"runnel iterator 1\n"
_DEEP = 200


def encoded(state: Any) -> bytes:
    """``state`` as bytes."""
    pieces = [_MAGIC]
    _write(state, pieces)
    return b"".join(pieces)


def decoded(data: bytes) -> Any:
    """The state that :func:`encoded` wrote; a ``DataLossError`` for anything else."""
    if not data.startswith(_MAGIC):
        raise DataLossError(None, None, "This is not a saved state of input.")
    try:
        value, end = _Reader(data).value(len(_MAGIC), 0)
    except (ValueError, TypeError, KeyError, IndexError, UnicodeDecodeError) as error:
        raise _damaged(str(error)) from None
    if end != len(data):
        raise _damaged("something follows its end")
    return value


def _damaged(why: str) -> DataLossError:
    return DataLossError(None, None, f"The saved state of input is damaged: {why}")


def _write(value: Any, out: list[bytes]) -> None:
    if value is None:
        out.append(b"n")
    elif value is True or value is False:
        out.append(b"t" if value else b"f")
    elif isinstance(value, int):
        out.append(b"i")
        _write_bytes(str(value).encode(), out)
    elif isinstance(value, str):
        out.append(b"s")
        _write_bytes(value.encode(), out)
    elif isinstance(value, bytes):
        out.append(b"b")
        _write_bytes(value, out)
    elif isinstance(value, list):
        out.append(b"l" + varint(len(value)))
        for one in value:
            _write(one, out)
    elif isinstance(value, Kept):
        out.append(b"k")
        _write(value.elements, out)
    elif isinstance(value, Pipeline):
        raise not_saved(
            "An iterator that holds elements which are datasets",
            "keep what they are made of instead, and make the datasets after it.",
        )
    elif isinstance(value, Exception):
        error = value if isinstance(value, OpError) else UnknownError(None, None, str(value))
        out.append(b"e")
        _write([int(error.error_code), error.message], out)
    else:
        _write_array(value, out)


def _write_bytes(data: bytes, out: list[bytes]) -> None:
    out += [varint(len(data)), data]


def _write_array(value: Any, out: list[bytes]) -> None:
    array = np.asarray(value)
    # A number that stands for a component stays one: it is not an array of rank 0.
    out.append(b"g" if isinstance(value, np.generic) else b"a")
    _write_bytes(as_dtype(array.dtype).name.encode() if array.dtype != object else b"object", out)
    out.append(varint(array.ndim) + b"".join(map(varint, array.shape)))
    if array.dtype == object:
        for one in array.reshape(-1):
            _write(one, out)
    else:
        out.append(array.tobytes())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins at ``at``, and where it ends."""
        if depth > _DEEP:
            raise _damaged("it is nested too deeply")
        kind, at = self._data[at : at + 1], at + 1
        if kind in _CONSTANTS:
            return _CONSTANTS[kind], at
        if kind in b"isb" and kind:
            content, at = self._bytes(at)
            if kind == b"b":
                return content, at
            return (int(content) if kind == b"i" else content.decode()), at
        if kind == b"l":
            return self._list(at, depth)
        if kind == b"k":
            elements, at = self.value(at, depth + 1)
            return Kept(elements), at
        if kind == b"e":
            (code, message), at = self.value(at, depth + 1)
            return exception_type_from_error_code(code)(None, None, message), at
        if kind in (b"a", b"g"):
            return self._array(at, depth, kind == b"g")
        raise _damaged(f"it has a value of the unknown kind {kind!r}")

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        count, at = read_varint(self._data, at)
        self._require(at, count)
        out = []
        for _ in range(count):
            one, at = self.value(at, depth + 1)
            out.append(one)
        return out, at

    def _bytes(self, at: int) -> tuple[bytes, int]:
        length, at = read_varint(self._data, at)
        self._require(at, length)
        return self._data[at : at + length], at + length

    def _array(self, at: int, depth: int, is_number: bool) -> tuple[Any, int]:
        name, at = self._bytes(at)
        rank, at = read_varint(self._data, at)
        self._require(at, rank)
        shape = []
        for _ in range(rank):
            size, at = read_varint(self._data, at)
            shape.append(size)
        count = prod(shape)
        if name == b"object":
            self._require(at, count)
            array = np.empty(count, object)
            for place in range(count):
                array[place], at = self.value(at, depth + 1)
            return array.reshape(shape), at
        dtype = as_dtype(name.decode()).np_dtype
        self._require(at, count * dtype.itemsize)
        found = np.frombuffer(self._data, dtype, count, at).reshape(shape).copy()
        return (found[()] if is_number else found), at + count * dtype.itemsize

    def _require(self, at: int, count: int) -> None:
        if count > len(self._data) - at:
            raise _damaged("it is cut off")


_CONSTANTS: dict[bytes, Any] = {b"n": None, b"t": True, b"f": False}
