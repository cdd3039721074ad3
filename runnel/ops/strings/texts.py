"""Doing the same to each string of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.registry import OpDef, register_op


def string_op(name: str, inputs: str, outputs: str, attrs: Any = "") -> OpDef:
    """An operation on strings: they live on the host, and have no gradient."""
    return register_op(
        name, inputs=inputs, outputs=outputs, attrs=attrs, host=True, differentiable=False
    )


def each(function: Callable[[bytes], Any], texts: Any, dtype: Any = object) -> np.ndarray:
    """``function`` of each string, in an array of the same shape."""
    array = np.asarray(texts, object)
    out = np.empty(array.size, dtype)
    out[:] = [function(text) for text in array.reshape(-1).tolist()]
    return out.reshape(array.shape)


def encoded(text: str | bytes) -> bytes:
    """An attribute's text as bytes."""
    return text.encode() if isinstance(text, str) else text
