"""Numbers that are written as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType

# The texts come with the data: where no number can be, there must be one way only to see that.
_INTEGER = re.compile(rb"\s*([+-]?)(\d+)\s*")
_FLOAT = re.compile(
    rb"\s*[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)\s*",
    re.IGNORECASE,
)


def numbers_of(texts: Sequence[bytes], dtype: DType) -> np.ndarray | None:
    """The numbers that all of ``texts`` are; None where :func:`number_of` has to look at each."""
    # Python reads what the expressions above do, and an underscore between digits.
    if b"_" in b"".join(texts):
        return None
    try:
        if dtype.is_integer:
            values = np.array(list(map(int, texts)), np.int64)
            low, high = dtype.limits
            if texts and not low <= values.min() <= values.max() <= high:
                return None
        else:
            values = np.array(list(map(float, texts)), np.float64)
    except (ValueError, OverflowError):
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
