"""Element types for tests of ops that move elements without looking at them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

MOVABLE = [
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.bool_,
    np.complex64,
    np.complex128,
]


def sample(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """An array of small distinct-looking values of ``dtype``."""
    values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) % 7
    return (values % 2 == 0) if dtype is np.bool_ else values.astype(dtype)


def strings(shape: tuple[int, ...]) -> np.ndarray:
    """An array of byte strings."""
    out = np.empty(shape, object)
    flat = out.reshape(-1)
    for i in range(flat.size):
        flat[i] = b"s%d" % i
    return out
