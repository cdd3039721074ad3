"""Masks: selecting by one, and making one of sequence lengths."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import merge_dims
from runnel.ops.array_shape import expand_dims, reshape, squeeze
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.ranges import range as positions
from runnel.ops.selection import where


def boolean_mask(
    tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None
) -> Tensor:
    """The slices of ``tensor`` where ``mask`` holds; its rank must be known.

    Example:
        >>> tf.boolean_mask([0, 1, 2, 3], [True, False, True, False])  # [0, 2]
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        x = convert_to_tensor(tensor, name="tensor")
        chosen = convert_to_tensor(mask, name="mask")
        if chosen.dims is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None. "
                "E.g. shape=[None] is ok, but shape=None is not."
            )
        depth = len(chosen.dims)
        if depth == 0:
            raise ValueError("mask cannot be scalar.")
        if axis is not None and not isinstance(axis, int):
            known = constant_value(convert_to_tensor(axis))
            axis = None if known is None else int(known)
        first = axis or 0
        if first < 0:
            if x.dims is None:
                raise ValueError("A negative axis needs a tensor of known rank")
            first += len(x.dims)
        if x.dims is not None:
            merge_dims(x.dims[first : first + depth], chosen.dims)
        if depth > 1:
            own = shape_of(x)
            count = get_op_def("Prod")(own[first : first + depth], [0])
            flat = concat([own[:first], reshape(count, [1]), own[first + depth :]], 0)
            before = None if x.dims is None else x.dims
            x = reshape(x, flat)
            if before is not None:
                x.set_shape((*before[:first], None, *before[first + depth :]))
        places = squeeze(where(reshape(chosen, [-1])), [1])
        return gather(x, places, axis=first)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None
) -> Tensor:
    """For each length, ``maxlen`` elements of which the first that many are True.

    ``maxlen`` is the largest length unless given.

    Example:
        >>> tf.sequence_mask([1, 3], 4)  # [[T, F, F, F], [T, T, T, F]]
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        count = convert_to_tensor(lengths)
        kind = count.dtype.base_dtype
        if maxlen is None:
            from runnel.ops.reduce_functions import reduce_max

            largest = reduce_max(count)
            maxlen = get_op_def("Maximum")(largest, get_op_def("ZerosLike")(largest))
        else:
            maxlen = convert_to_tensor(maxlen)
            if maxlen.dims not in (None, ()):
                raise ValueError("maxlen must be scalar for sequence_mask")
        cast = get_op_def("Cast")
        steps = positions(0, maxlen, 1)
        if steps.dtype.base_dtype is not kind:
            steps = cast(steps, DstT=kind)
        mask = get_op_def("Less")(steps, expand_dims(count, -1))
        wanted = as_dtype(dtype)
        return mask if wanted.is_bool else cast(mask, DstT=wanted)
