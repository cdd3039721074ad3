"""Doing the same to each string of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from runnel.graph.registry import OpDef, register_op
from runnel.step_time import current_look

_PIECE = 4096


def string_op(name: str, inputs: str, outputs: str, attrs: Any = "") -> OpDef:
    """An operation on strings: they live on the host, and have no gradient."""
    return register_op(
        name, inputs=inputs, outputs=outputs, attrs=attrs, host=True, differentiable=False
    )


def each(function: Callable[[bytes], Any], texts: Any, dtype: Any = object) -> np.ndarray:
    """``function`` of each string, in an array of the same shape."""
    array = np.asarray(texts, object)
    out = np.empty(array.size, dtype)
    out[:] = [function(text) for text in one_by_one(array)]
    return out.reshape(array.shape)


def one_by_one(array: np.ndarray) -> Iterable[Any]:
    """The elements of ``array``, between any two of which a step that has to stop does so."""
    elements: list[Any] = array.reshape(-1).tolist()
    look = current_look()
    return elements if look is None else _looking(elements, look)


def _looking(elements: list[Any], look: Callable[[], None]) -> Iterator[Any]:
    for element in elements:
        look()
        yield element


def in_pieces(array: np.ndarray) -> Iterator[list[Any]]:
    """The elements of ``array``, together; some at a time in a step that may have to stop."""
    elements: list[Any] = array.reshape(-1).tolist()
    look = current_look()
    size = _PIECE if look is not None else max(len(elements), 1)
    for begin in range(0, len(elements), size):
        if look is not None:
            look()
        yield elements[begin : begin + size]


def encoded(text: str | bytes) -> bytes:
    """An attribute's text as bytes."""
    return text.encode() if isinstance(text, str) else text
