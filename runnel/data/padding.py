"""The shapes to which elements are filled up."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.shapes import Dims, TensorShape


def padded_shape(given: Any) -> tuple[Tensor, Dims]:
    """A shape as a vector, in which -1 stands for the largest, and what is known of it.

    It is what a ``TensorShape`` is made of, a vector, or a list of which some are scalar tensors.
    """
    try:
        dims = None if isinstance(given, Tensor) else TensorShape(given)._dims
        if dims is None and not isinstance(given, Tensor):
            raise ValueError("A padded shape must have a known rank.")
    except TypeError:  # some of it is known only when the dataset is made
        dims = None
    if dims is not None:
        numbers = np.array([-1 if d is None else d for d in dims], np.int64)
        return convert_to_tensor(numbers), tuple(None if d == -1 else d for d in dims)
    if isinstance(given, list | tuple):
        sizes = [convert_to_tensor(-1 if size is None else size, dtypes.int64) for size in given]
        values = [constant_value(size) for size in sizes]
        known = tuple(None if value is None or value < 0 else int(value) for value in values)
        return convert_to_tensor(sizes), known
    vector = convert_to_tensor(given, dtypes.int64)
    if vector.shape.rank not in (None, 1):
        raise ValueError(f"A padded shape is a vector of int64 values, not of shape {vector.shape}")
    value = constant_value(vector)
    if value is not None:
        return vector, tuple(None if size < 0 else size for size in value.tolist())
    rank = vector.dims[0] if vector.dims else None
    return vector, None if rank is None else (None,) * rank
