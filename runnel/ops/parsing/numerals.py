"""Numbers that are written as text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType

_INTEGER = re.compile(rb"\s*[+-]?\d+\s*")
_FLOAT = re.compile(
    rb"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE
)


def number_of(text: bytes, dtype: DType) -> Any:
    """The number that ``text`` is, or None where it is none of ``dtype``."""
    if dtype.is_integer:
        if _INTEGER.fullmatch(text) is None:
            return None
        value = int(text)
        low, high = dtype.limits
        return value if low <= value <= high else None
    if _FLOAT.fullmatch(text) is None:
        return None
    with np.errstate(over="ignore"):
        return dtype.np_dtype.type(float(text))
