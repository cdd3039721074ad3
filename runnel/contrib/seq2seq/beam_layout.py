"""Tensors of beams: [batch * beam, ...] for a cell, [batch, beam, ...] for the search."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.gather import gather, gather_nd
from runnel.ops.gather_tree import gather_tree
from runnel.ops.joining import concat, stack
from runnel.ops.masking import sequence_mask
from runnel.ops.padding import tile
from runnel.ops.ranges import range as positions
from runnel.ops.reduce_functions import reduce_max
from runnel.ops.selection import where
from runnel.ops.transposition import transpose


def split_beams(value: Any, batch_size: Any, beam_width: int) -> Any:
    """[batch * beam, ...] as [batch, beam, ...]; TensorArrays and scalars stay as they are."""
    if isinstance(value, TensorArray):
        return value
    tensor = convert_to_tensor(value)
    if tensor.dims is None:
        raise ValueError(f"A beam search needs tensors of known rank, but not so {tensor.name}")
    if not tensor.dims:
        return tensor
    first = tensor.dims[0]
    result = reshape(tensor, concat([[batch_size, beam_width], shape_of(tensor)[1:]], 0))
    batch = None if first is None else first // beam_width
    result.set_shape((batch, beam_width, *tensor.dims[1:]))
    return result


def merge_beams(value: Any, batch_size: Any, beam_width: int) -> Any:
    """[batch, beam, ...] as [batch * beam, ...]; TensorArrays and scalars stay as they are."""
    if isinstance(value, TensorArray):
        return value
    tensor = convert_to_tensor(value)
    if tensor.dims == ():
        return tensor
    if tensor.dims is None or len(tensor.dims) < 2:
        raise ValueError(
            f"A beam search needs [batch, beam, ...] tensors, but {tensor.name} has the shape "
            f"{format_dims(tensor.dims)}"
        )
    batch = tensor.dims[0]
    result = reshape(tensor, concat([[batch_size * beam_width], shape_of(tensor)[2:]], 0))
    result.set_shape((None if batch is None else batch * beam_width, *tensor.dims[2:]))
    return result


def select_beams(value: Any, beam_ids: Tensor) -> Any:
    """``value[b, beam_ids[b, k]]`` for [batch, beam, ...] values; others stay as they are."""
    if isinstance(value, TensorArray) or value.dims == ():
        return value
    selected = gather(value, beam_ids, axis=1, batch_dims=1)
    selected.set_shape(value.dims)
    return selected


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Tensor:
    """What each final beam has seen: ``t`` reordered along the histories of the beams.

    ``t`` is [time, batch * beam, ...] or [time, batch, beam, ...] in the order in which the beams
    stood at each step; ``parent_ids`` is [time, batch, beam], ``sequence_length`` [batch, beam].

    Example:
        >>> history = gather_tree_from_array(state.alignment_history.stack(), parents, lengths)
    """
    t = convert_to_tensor(t, name="t")
    parents = convert_to_tensor(parent_ids, dtype="int32", name="parent_ids")
    lengths = convert_to_tensor(sequence_length, name="sequence_length")
    full = shape_of(parents)
    time, batch, width = full[0], full[1], full[2]
    if parents.dims is not None and parents.dims[2] is not None:
        width = convert_to_tensor(parents.dims[2])
    places = tile(expand_dims(expand_dims(positions(width), 0), 0), stack([time, batch, 1]))
    mask = transpose(sequence_mask(lengths, maxlen=time), [2, 0, 1])
    ordered = gather_tree(
        step_ids=places,
        parent_ids=parents,
        max_sequence_lengths=cast(reduce_max(lengths, axis=1), "int32"),
        end_token=width,  # a number that no beam has: no history ends early
    )
    ordered = where(mask, ordered, places)
    times = tile(expand_dims(expand_dims(positions(time), 1), 1), stack([1, batch, width]))
    batches = tile(expand_dims(expand_dims(positions(batch), 0), 2), stack([time, 1, width]))
    beams = reshape(t, stack([time, batch, width, -1]))
    found = gather_nd(beams, stack([times, batches, ordered], axis=-1))
    result = reshape(found, shape_of(t))
    result.set_shape(t.dims)
    return result


def after_selection(t: Tensor, parent_ids: Tensor) -> Tensor:
    """[time, batch * beam, ...] that a cell wrote, in the order of the beams after each step.

    A cell sees the beams as the step before left them; ``parent_ids`` says which of them each
    beam of this step continues.
    """
    full = shape_of(parent_ids)
    beams = reshape(t, concat([full, [-1]], 0))
    selected = reshape(gather(beams, parent_ids, axis=2, batch_dims=2), shape_of(t))
    selected.set_shape(t.dims)
    return selected
