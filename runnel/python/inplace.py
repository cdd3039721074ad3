"""``inplace_ops``: some rows of a tensor replaced.

TensorFlow writes into the tensor that it is given, and whoever holds that sees it. Here the result
is a tensor of its own, which XLA writes in place where nobody else reads the one before.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.casting import cast
from runnel.ops.scatter_nd import tensor_scatter_add, tensor_scatter_sub, tensor_scatter_update

__all__ = [
    "alias_inplace_add",
    "alias_inplace_sub",
    "alias_inplace_update",
    "inplace_add",
    "inplace_sub",
    "inplace_update",
]


def _rows(scatter: Any, x: Any, i: Any, v: Any) -> Tensor:
    x = convert_to_tensor(x)
    v = convert_to_tensor(v, x.dtype)
    i = cast(convert_to_tensor(i), int32)
    if i.shape.rank == 0:
        i, v = reshape(i, [1]), v[None]
    return scatter(x, i[:, None], v)


def alias_inplace_update(x: Any, i: Any, v: Any) -> Tensor:
    """``x`` with its rows ``i`` replaced by ``v``; without ``i``, all of them."""
    return convert_to_tensor(v) if i is None else _rows(tensor_scatter_update, x, i, v)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Tensor:
    """``x`` with ``v`` added to its rows ``i``; without ``i``, to all of it."""
    return convert_to_tensor(x) + v if i is None else _rows(tensor_scatter_add, x, i, v)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Tensor:
    """``x`` with ``v`` subtracted from its rows ``i``; without ``i``, from all of it."""
    return convert_to_tensor(x) - v if i is None else _rows(tensor_scatter_sub, x, i, v)


inplace_update = alias_inplace_update
inplace_add = alias_inplace_add
inplace_sub = alias_inplace_sub
