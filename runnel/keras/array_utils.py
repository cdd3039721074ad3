"""Labels as vectors, arrays of unit norm."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """A row for each number of a class, which is 1 at that class and else 0.

    Example:
        >>> tf.keras.utils.to_categorical([1, 0], 3).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    classes = np.array(y, dtype=np.int64)
    shape = classes.shape[:-1] if classes.ndim > 1 and classes.shape[-1] == 1 else classes.shape
    flat = classes.ravel()
    count = int(flat.max()) + 1 if num_classes is None else num_classes
    rows = np.zeros((flat.size, count), dtype)
    rows[np.arange(flat.size), flat] = 1
    return rows.reshape((*shape, count))


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """``x`` with the norm 1 along ``axis``; what is 0 stays 0."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return np.asarray(x) / np.expand_dims(norms, axis)
