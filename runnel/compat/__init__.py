"""``tf.compat``: strings and bytes; TensorFlow 1 under its name in TensorFlow 2."""

from __future__ import annotations

import numbers
import os
from importlib import import_module
from typing import Any

import numpy as np

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
]

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text, encoded; bytes as they are.

    Example:
        >>> tf.compat.as_bytes("cat")
        b'cat'
    """
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes, decoded; text as it is."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Bytes, decoded; ``str`` of all else."""
    return as_str(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; all else as it is."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def forward_compatible(year: int, month: int, day: int) -> bool:
    """False: what TensorFlow has changed since 1.15 is not expected of readers."""
    return False


def __getattr__(name: str) -> Any:
    if name == "v1":
        return import_module("runnel.compat.v1")
    hint = "; runnel is TensorFlow 1: use tf.compat.v1" if name == "v2" else ""
    raise AttributeError(f"module 'runnel.compat' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return __all__
