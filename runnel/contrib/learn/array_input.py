"""Input from arrays: ``x`` and ``y`` of ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from runnel.estimator.numpy_input import numpy_input_fn
from runnel.graph.operation import Tensor


def array_of(given: Any) -> np.ndarray:
    """An array, with the element type that models get: float64 becomes float32."""
    if isinstance(given, Tensor):
        raise ValueError("Inputs cannot be tensors. Please provide input_fn.")
    if not hasattr(given, "__len__"):
        raise TypeError(
            f"x and y must be arrays, not {type(given).__name__}: make an array of what it gives, "
            "or give an input_fn"
        )
    found = np.asarray(given)
    if found.dtype.kind == "O" and len(found) and not isinstance(found.flat[0], str | bytes):
        found = np.asarray([np.asarray(row) for row in given])
    return found.astype(np.float32) if found.dtype == np.float64 else found


def _features(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: _feature(value) for name, value in given.items()}
    return _feature(given)


def _feature(given: Any) -> np.ndarray:
    """An array of at least two dimensions: models get a column where rows are numbers."""
    found = array_of(given)
    return found[:, np.newaxis] if found.ndim == 1 else found


def _labels(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: _label(value) for name, value in given.items()}
    return _label(given)


def _label(given: Any) -> np.ndarray:
    """An array whose rows are no columns of one number: models get the numbers."""
    found = array_of(given)
    return found[:, 0] if found.ndim > 1 and found.shape[1] == 1 else found


def array_input_fn(
    x: Any, y: Any, batch_size: int | None, shuffle: bool, epochs: int | None
) -> Callable[[], Any]:
    """An ``input_fn`` for arrays; without a ``batch_size`` all rows are one batch."""
    features, labels = _features(x), None if y is None else _labels(y)
    rows = len(next(iter(features.values())) if isinstance(features, Mapping) else features)
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"Invalid batch_size {batch_size}.")
    made = numpy_input_fn(features, labels, batch_size or rows, epochs, shuffle)

    def input_fn() -> Any:
        found = made()
        return found if labels is not None else (found, None)

    return input_fn


def check_input(x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: Any) -> None:
    """Refuses input that is given twice, or not at all."""
    if input_fn is None:
        if x is None:
            raise ValueError("Either x or input_fn must be provided.")
        if feed_fn is not None:
            raise ValueError("Can not provide both feed_fn and x or y.")
        return
    if x is not None or y is not None:
        raise ValueError("Can not provide both input_fn and x or y.")
    if batch_size is not None:
        raise ValueError("Can not provide both input_fn and batch_size.")
