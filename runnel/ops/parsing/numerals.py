"""Numbers that are written as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.native.input_library import address, carried_library
from runnel.native.joined_strings import joined_strings

NATIVE_STRING, NATIVE_REAL, NATIVE_INTEGER = 1, 2, 3
"""How native code calls kinds of values."""
FEWEST = 8
"""Of fewer texts Python is done before native code has their addresses."""

# The texts come with the data: where no number can be, there must be one way only to see that.
_INTEGER = re.compile(rb"\s*([+-]?)(\d+)\s*")
_FLOAT = re.compile(
    rb"\s*[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)\s*",
    re.IGNORECASE,
)


def numbers_of(texts: Sequence[bytes], dtype: DType) -> np.ndarray | None:
    """The numbers that all of ``texts`` are; None where :func:`number_of` has to look at each."""
    library = carried_library() if len(texts) >= FEWEST else None
    if library is not None:
        content, ends = joined_strings(texts)
        count = len(texts)
        words = np.empty(count, np.int64 if dtype.is_integer else np.float64)
        kind = NATIVE_INTEGER if dtype.is_integer else NATIVE_REAL
        if (
            library.runnel_read_numbers(content, address(ends), count, kind, address(words))
            == count
        ):
            return of_type(words, dtype)
    # Python reads what the expressions above do, and an underscore between digits.
    if b"_" in b"".join(texts):
        return None
    try:
        if dtype.is_integer:
            return of_type(np.array(list(map(int, texts)), np.int64), dtype)
        return of_type(np.array(list(map(float, texts)), np.float64), dtype)
    except (ValueError, OverflowError):
        return None


def of_type(values: np.ndarray, dtype: DType) -> np.ndarray | None:
    """``values``, of the widest type of their kind, in another; None for one that is too large."""
    if dtype.is_integer and values.size:
        low, high = dtype.limits
        if not low <= values.min() <= values.max() <= high:
            return None
    with np.errstate(over="ignore"):
        return values.astype(dtype.np_dtype)


def number_of(text: bytes, dtype: DType) -> Any:
    """The number that ``text`` is, or None where it is none of ``dtype``."""
    if dtype.is_integer:
        found = _INTEGER.fullmatch(text)
        if found is None:
            return None
        digits = found[2].lstrip(b"0") or b"0"
        if len(digits) > 20:  # more than any type has; Python refuses to read thousands
            return None
        value = int(found[1] + digits)
        low, high = dtype.limits
        return value if low <= value <= high else None
    if _FLOAT.fullmatch(text) is None:
        return None
    with np.errstate(over="ignore"):
        return dtype.np_dtype.type(float(text))
