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
_SHORT = 40
"""Integers up to this length Python reads at once."""
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


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
    # Beyond what C reads Python takes an underscore between digits.
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
    if b"_" in text:
        return None
    try:
        if not dtype.is_integer:
            value = float(text)
            if abs(value) <= _LARGEST_SINGLE:
                return dtype.np_dtype.type(value)
            with np.errstate(over="ignore"):
                return dtype.np_dtype.type(value)
        number = int(text) if len(text) <= _SHORT else _long_integer(text)
    except ValueError:
        return None
    low, high = dtype.limits
    return number if low <= number <= high else None


def _long_integer(text: bytes) -> int:
    """An integer that may begin with many zeros; Python refuses to read thousands of digits."""
    found = _INTEGER.fullmatch(text)
    digits = found[2].lstrip(b"0") or b"0" if found is not None else b""
    if found is None or len(digits) > 20:  # more than any type has
        raise ValueError("no integer of 64 bits")
    return int(found[1] + digits)
