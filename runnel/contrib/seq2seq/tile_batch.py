"""Repeating each element of a batch, once for each beam."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import ones
from runnel.ops.joining import concat
from runnel.ops.padding import tile


def tile_batch(t: Any, multiplier: Any, name: str | None = None) -> Any:
    """Each entry of the first axis of ``t`` (a structure of tensors) ``multiplier`` times in a row.

    What a decoder takes from an encoder (memory, lengths, the final state) is tiled by the beam
    width before a beam search.

    Example:
        >>> tf.contrib.seq2seq.tile_batch(tf.constant([[1], [2]]), 2)  # [[1], [1], [2], [2]]
    """
    with name_scope(name, "tile_batch", [*flatten(t), multiplier]):
        return map_leaves(lambda leaf: _tiled(leaf, multiplier), t)


def _tiled(value: Any, multiplier: Any) -> Tensor:
    tensor = convert_to_tensor(value, name="t")
    if tensor.dims is None:
        raise ValueError(f"tile_batch needs tensors of known rank, but {tensor.name}'s is unknown")
    if not tensor.dims:
        raise ValueError(f"tile_batch repeats the first axis, but {tensor.name} is a scalar")
    count = convert_to_tensor(multiplier, dtype="int32", name="multiplier")
    rank = len(tensor.dims)
    multiples = concat([[1], [count], ones([rank - 1], dtype="int32")], 0)
    full = shape_of(tensor)
    tiled = reshape(
        tile(expand_dims(tensor, 1), multiples), concat([[full[0] * count], full[1:]], 0)
    )
    known = constant_value(count)
    first = tensor.dims[0]
    size = None if known is None or first is None else first * int(known)
    tiled.set_shape((size, *tensor.dims[1:]))
    return tiled
