"""Reading lines of comma-separated values by native code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.native.input_library import address
from runnel.native.joined_strings import joined_strings
from runnel.ops.parsing.numerals import NATIVE_INTEGER, NATIVE_REAL, NATIVE_STRING, of_type

_MISSING, _UNREAD = 1, 2
"""How a field was read; 0 is that it was."""


class NativeLines:
    """The fields of some columns of lines, if all lines are right."""

    def __init__(
        self,
        library: ctypes.CDLL,
        lines: list[bytes],
        types: Sequence[DType],
        delimiter: bytes,
        quotes: bool,
        missing: bytes,
        chosen: Sequence[int],
    ) -> None:
        self._content, ends = joined_strings(lines)
        self._quotes, self._types = quotes, types
        rows, count = len(lines), len(types)
        columns = list(chosen) or list(range(count))
        kinds = np.zeros(columns[-1] + 1, np.int64)
        kinds[columns] = [_kind(dtype) for dtype in types]
        self._places = np.empty((count, 3, rows), np.int64)
        self._flags = np.empty((count, rows), np.uint8)
        self.are_right = bool(
            library.runnel_read_csv(
                *(self._content, address(ends), rows, ord(delimiter), quotes),
                *(missing, len(missing), address(kinds), len(kinds), bool(chosen)),
                *(address(self._places), address(self._flags)),
            )
        )

    def texts(self, column: int) -> list[bytes]:
        """What stands in a column."""
        begins, ends, _ = self._places[column]
        content = self._content
        found = [
            content[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        if self._quotes:
            for row in np.flatnonzero(self._flags[column] == _UNREAD).tolist():
                found[row] = found[row].replace(b'""', b'"')
        return found

    def values(self, column: int, default: np.ndarray) -> np.ndarray | None:
        """The values of a column; None where its texts have to be looked at."""
        flags, dtype = self._flags[column], self._types[column]
        absent = flags == _MISSING if flags.any() else None
        if absent is not None and (not default.size or (flags == _UNREAD).any()):
            return None
        if dtype is dtypes.string:
            out = np.empty(len(flags), object)
            out[:] = self.texts(column)
        else:
            words = self._places[column, 2]
            if absent is not None:
                words[absent] = 0
            values = words if dtype.is_integer else words.view(np.float64)
            found = of_type(values, dtype)
            if found is None:
                return None
            out = found
        if absent is not None:
            out[absent] = default.reshape(-1)[0]
        return out


def _kind(dtype: Any) -> int:
    if dtype is dtypes.string:
        return NATIVE_STRING
    return NATIVE_INTEGER if dtype.is_integer else NATIVE_REAL
