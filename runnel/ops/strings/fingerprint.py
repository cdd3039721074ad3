"""Fingerprints of the rows of tensors of any type."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims
from runnel.ops.strings.hashes import fingerprint64, hashed

fingerprint_op = register_op(
    "Fingerprint",
    inputs="data: T, method: string",
    outputs="fingerprint: uint8",
    attrs="T: type",
    host=True,
    differentiable=False,
)


@fingerprint_op.shape
def _(data, method):
    if method.dims not in (None, ()):
        raise ValueError(f"method must be one string, but has shape {format_dims(method.dims)}")
    if data.dims == ():
        raise ValueError("data must have rows, but it is a scalar")
    return (None if data.dims is None else data.dims[0], 8)


@fingerprint_op.kernel
def _(xp, data, method, *, check):
    name = np.asarray(method).item()
    check(
        name == b"farmhash64",
        lambda: f"Unsupported data fingerprinting method: {name!r}; the one there is: farmhash64",
    )
    if data.ndim == 0:
        raise ValueError("data must have rows, but it is a scalar")
    count = len(data)
    if data.dtype != object:
        rows = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        return _fingerprints([row.tobytes() for row in rows.reshape(count, -1)] if count else [])
    prints = _fingerprints([bytes(text) for text in data.reshape(-1)])
    if data.size == count:
        return prints
    return _fingerprints([row.tobytes() for row in prints.reshape(count, -1)] if count else [])


def _fingerprints(texts: list[bytes]) -> np.ndarray:
    """The fingerprint of each, as a row of eight bytes, the lowest first."""
    words = hashed(texts, fingerprint64).astype("<u8")
    return words.view(np.uint8).reshape(len(texts), 8)


def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """Eight bytes for each row of ``data``, equal for equal rows.

    Strings are taken one by one first, so that rows of them differ wherever a string does.

    Example:
        >>> tf.fingerprint(["a", "b", "a"])  # [3, 8], of which the first and the last row are equal
    """
    return fingerprint_op(convert_to_tensor(data, name="data"), method, name=name)
