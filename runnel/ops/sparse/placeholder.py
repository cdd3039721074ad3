"""Sparse tensors that are fed."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.constants import placeholder, placeholder_with_default


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value must be fed.

    Example:
        >>> x = tf.sparse_placeholder(tf.float32)
        >>> sess.run(y, {x: tf.SparseTensorValue([[0, 1]], [5.0], [2, 2])})
    """
    prefix = None if name is None else f"{name}/"

    def named(part: str) -> str | None:
        return None if prefix is None else prefix + part

    rank = None
    if shape is None:
        dense_shape = placeholder(dtypes.int64, [None], name=named("shape"))
    elif isinstance(shape, Tensor):
        dense_shape, rank = shape, shape.dims[0] if shape.dims else None
    else:
        dims = TensorShape(shape).as_list()
        rank = len(dims)
        sizes = np.array([-1 if d is None else d for d in dims], np.int64)
        default = convert_to_tensor(sizes)
        known = None not in dims
        dense_shape = (
            default if known else placeholder_with_default(default, [rank], name=named("shape"))
        )
    return SparseTensor(
        values=placeholder(dtype, [None], name=named("values")),
        indices=placeholder(dtypes.int64, [None, rank], name=named("indices")),
        dense_shape=dense_shape,
    )
