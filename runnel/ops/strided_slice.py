"""Parts of a tensor with steps, new and dropped dimensions: what ``x[1:, ::2, i]`` becomes.

A slice whose place is data but whose size is not (``x[i]`` with a tensor ``i``) compiles for any
place: see the functions that ``needs_static`` registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.ops.array_shape import at_run_time
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import ones_like

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_MASK_ATTRS = [f"{mask}: int = 0" for mask in _MASKS]

ELLIPSIS, NEW_AXIS, SHRINK, RANGE = "ellipsis", "new axis", "shrink", "range"


class Masks(NamedTuple):
    """What each entry of a strided slice means, bit by bit."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int

    def kind(self, entry: int) -> str:
        bit = 1 << entry
        if self.ellipsis & bit:
            return ELLIPSIS
        if self.new_axis & bit:
            return NEW_AXIS
        return SHRINK if self.shrink & bit else RANGE

    def entries(self, count: int, rank: int) -> Iterator[tuple[int, str, int]]:
        """(entry, kind, the input's dimension that it is about) for each of ``count`` entries."""
        kinds = [self.kind(i) for i in range(count)]
        if kinds.count(ELLIPSIS) > 1:
            raise ValueError("Multiple ellipses in a slice are not allowed")
        used = kinds.count(SHRINK) + kinds.count(RANGE)
        if used > rank:
            raise ValueError(f"Too many indices: {used} for a tensor of rank {rank}")
        dimension = 0
        for entry, kind in enumerate(kinds):
            yield entry, kind, dimension
            if kind == ELLIPSIS:
                dimension += rank - used
            elif kind != NEW_AXIS:
                dimension += 1

    def bounds(self, entry: int, begin: Any, end: Any, stride: int) -> slice:
        """A range entry as a Python slice, which has the same rules."""
        bit = 1 << entry
        if stride == 0:
            raise ValueError(f"strides[{entry}] must be non-zero")
        return slice(
            None if self.begin & bit else int(begin), None if self.end & bit else int(end), stride
        )


def _require_index(index: int, size: int, dimension: int) -> int:
    if not -size <= index < size:
        raise ValueError(f"slice index {index} of dimension {dimension} out of bounds")
    return index + size if index < 0 else index


# StridedSlice ---------------------------------------------------------------------------------

strided_slice_op = register_op(
    "StridedSlice",
    inputs="input: T, begin: Index, end: Index, strides: Index",
    outputs="output: T",
    attrs=["T: type", "Index: {int16, int32, int64}", *_MASK_ATTRS],
    static_inputs=("begin", "end", "strides"),
)
strided_slice_grad_op = register_op(
    "StridedSliceGrad",
    inputs="shape: Index, begin: Index, end: Index, strides: Index, dy: T",
    outputs="output: T",
    attrs=["T: type", "Index: {int32, int64}", *_MASK_ATTRS],
    static_inputs=("shape", "begin", "end", "strides"),
)


def _masks_of(op: Operation) -> Masks:
    return Masks(*[op.attrs[mask] for mask in _MASKS])


def _only_place_is_data(op: Operation, begin: Tensor) -> bool:
    """True when the bounds decide where the slice lies, but not how large it is."""
    masks = _masks_of(op)
    if begin.dims is None or len(begin.dims) != 1 or begin.dims[0] is None:
        return False
    both = masks.begin & masks.end
    return all(masks.kind(i) != RANGE or both >> i & 1 for i in range(begin.dims[0]))


@strided_slice_op.needs_static
def _(op):
    return ("strides",) if _only_place_is_data(op, op.inputs[1]) else ("begin", "end", "strides")


@strided_slice_grad_op.needs_static
def _(op):
    if _only_place_is_data(op, op.inputs[1]):
        return ("shape", "strides")
    return ("shape", "begin", "end", "strides")


def elements_of(vector: Tensor) -> list[int | None] | None:
    """The elements of a vector, None where they are not known; None if not even their number."""
    value = constant_value(vector)
    if value is not None:
        return value.tolist()
    if vector.op.type == "Pack":
        known = [constant_value(item) for item in vector.op.inputs]
        return [None if v is None or v.ndim else int(v) for v in known]
    count = vector.dims[0] if vector.dims is not None and len(vector.dims) == 1 else None
    return None if count is None else [None] * count


@strided_slice_op.shape
def _(
    x, begin, end, strides, *, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
):
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    begins, ends, steps = elements_of(begin), elements_of(end), elements_of(strides)
    if x.dims is None or begins is None or ends is None or steps is None:
        return None
    if not len(begins) == len(ends) == len(steps):
        raise ValueError("begin, end and strides must have the same length")
    rank = len(x.dims)
    out: list[int | None] = []
    reached = 0
    for entry, kind, dimension in masks.entries(len(begins), rank):
        out += x.dims[reached:dimension]  # what an ellipsis stood for
        reached = dimension + (kind in (SHRINK, RANGE))
        if kind == NEW_AXIS:
            out.append(1)
        elif kind == RANGE:
            out.append(
                _range_length(
                    masks, entry, begins[entry], ends[entry], steps[entry], x.dims[dimension]
                )
            )
        elif kind == SHRINK:
            size, index, stride = x.dims[dimension], begins[entry], steps[entry]
            if stride is not None and stride <= 0:
                raise ValueError("only stride 1 allowed on non-range indexing")
            if size is not None and index is not None:
                _require_index(index, size, dimension)
    return (*out, *x.dims[reached:])


def _range_length(
    masks: Masks,
    entry: int,
    begin: int | None,
    end: int | None,
    stride: int | None,
    size: int | None,
) -> int | None:
    if stride is None:
        return None
    bit = 1 << entry
    if (begin is None and not masks.begin & bit) or (end is None and not masks.end & bit):
        return None
    bounds = masks.bounds(entry, begin, end, stride)
    if size is not None:
        return len(range(*bounds.indices(size)))
    from_same_side = (
        bounds.start is not None
        and bounds.stop is not None
        and (bounds.start < 0) == (bounds.stop < 0)
    )
    if from_same_side and len(range(bounds.start, bounds.stop, stride)) == 0:
        return 0  # whatever the size is
    return None


class _Place(NamedTuple):
    """A strided slice of a concrete tensor."""

    key: tuple[Any, ...]
    """The NumPy index, with 0 for entries whose place is data."""
    moving: dict[int, Any]
    """The place, where it is data, by dimension; it has been checked."""


def _locate(
    xp: Any, shape: tuple[int, ...], begin: Any, end: Any, strides: Any, masks: Masks, check: Any
) -> _Place:
    steps = tuple(strides.tolist())
    ends = tuple(end.tolist()) if isinstance(end, np.ndarray) else (0,) * len(steps)
    if isinstance(begin, np.ndarray):
        return _Place(_numpy_key(shape, tuple(begin.tolist()), ends, steps, masks), {})
    # Only the places of dropped dimensions are data; with 0 there, the rest is as always.
    key = _numpy_key(tuple(max(size, 1) for size in shape), (0,) * len(steps), ends, steps, masks)
    moving = {}
    for entry, kind, dimension in masks.entries(len(steps), len(shape)):
        if kind == SHRINK:
            size, place = shape[dimension], begin[entry]
            if size == 0:
                raise ValueError(f"slice index of dimension {dimension}, which is empty")
            check((place >= -size) & (place < size), None)
            moving[dimension] = xp.where(place < 0, place + size, place)
    return _Place(key, moving)


@lru_cache(maxsize=4096)
def _numpy_key(
    shape: tuple[int, ...],
    begins: tuple[int, ...],
    ends: tuple[int, ...],
    steps: tuple[int, ...],
    masks: Masks,
) -> tuple[Any, ...]:
    """The NumPy index that a strided slice is; it is checked. Cached: steps repeat."""
    if not len(begins) == len(ends) == len(steps):
        raise ValueError("begin, end and strides must have the same length")
    key: list[Any] = []
    for entry, kind, dimension in masks.entries(len(steps), len(shape)):
        if kind == ELLIPSIS:
            key.append(Ellipsis)
        elif kind == NEW_AXIS:
            key.append(None)
        elif kind == RANGE:
            key.append(masks.bounds(entry, begins[entry], ends[entry], steps[entry]))
        elif steps[entry] <= 0:
            raise ValueError("only stride 1 allowed on non-range indexing")
        else:
            key.append(_require_index(begins[entry], shape[dimension], dimension))
    if Ellipsis not in key:
        key.append(Ellipsis)  # so that a scalar stays an array
    return tuple(key)


def _cut(x: Any, moving: dict[int, Any]) -> Any:
    """``x`` with size 1 in the dimensions whose place is data."""
    from jax import lax

    sizes = [1 if d in moving else s for d, s in enumerate(x.shape)]
    return lax.dynamic_slice(x, _starts(moving, x.ndim), sizes)


def _starts(moving: dict[int, Any], rank: int) -> list[Any]:
    kind = next(iter(moving.values())).dtype  # JAX wants all of one type
    return [moving.get(d, np.zeros((), kind)) for d in range(rank)]


@strided_slice_op.kernel
def _(
    xp,
    x,
    begin,
    end,
    strides,
    *,
    begin_mask,
    end_mask,
    ellipsis_mask,
    new_axis_mask,
    shrink_axis_mask,
    check,
):
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    place = at_run_time(_locate, xp, x.shape, begin, end, strides, masks, check)
    return (_cut(xp.asarray(x), place.moving) if place.moving else x)[place.key]


@strided_slice_op.gradient
def _(op, grad):
    x, begin, end, strides = op.inputs
    masks = {mask: op.attrs[mask] for mask in _MASKS}
    own_shape = shape_of(x, out_type=begin.dtype.base_dtype)
    return [strided_slice_grad_op(own_shape, begin, end, strides, grad, **masks), None, None, None]


@strided_slice_grad_op.shape
def _(shape, *others):
    return constant_value_as_dims(shape)


@strided_slice_grad_op.kernel
def _(
    xp,
    shape,
    begin,
    end,
    strides,
    dy,
    *,
    begin_mask,
    end_mask,
    ellipsis_mask,
    new_axis_mask,
    shrink_axis_mask,
    check,
):
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    dims = tuple(shape.tolist())
    place = at_run_time(_locate, xp, dims, begin, end, strides, masks, check)
    if xp is np:
        out = np.zeros(dims, dy.dtype)
        out[place.key] = dy
        return out
    whole = tuple(1 if d in place.moving else size for d, size in enumerate(dims))
    part = _spread(xp.asarray(dy), whole, place.key)
    if not place.moving:
        return part
    from jax import lax

    zeros = xp.zeros(dims, dy.dtype)
    return lax.dynamic_update_slice(zeros, part, _starts(place.moving, len(dims)))


def _spread(dy: Any, dims: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """Zeros of shape ``dims`` with ``dy`` at ``index``.

    As a padding with holes rather than a scatter: XLA fuses one and loops over the other.
    """
    import jax.numpy as jnp
    from jax import lax

    used = sum(entry is not None and entry is not Ellipsis for entry in index)
    ranges: list[range] = []
    for entry in index:
        if entry is Ellipsis:
            ranges += [range(size) for size in dims[len(ranges) : len(ranges) + len(dims) - used]]
        elif isinstance(entry, slice):
            ranges.append(range(*entry.indices(dims[len(ranges)])))
        elif entry is not None:
            ranges.append(range(entry, entry + 1))
    part = dy.reshape([len(r) for r in ranges])
    backwards = [d for d, r in enumerate(ranges) if r.step < 0]
    if backwards:
        part = jnp.flip(part, backwards)
    padding = []
    for places, size in zip(ranges, dims, strict=True):
        if len(places) == 0:
            padding.append((size, 0, 0))
        else:
            first, last = min(places[0], places[-1]), max(places[0], places[-1])
            padding.append((first, size - 1 - last, abs(places.step) - 1))
    return lax.pad(part, jnp.zeros((), dy.dtype), padding)


@strided_slice_grad_op.gradient
def _(op, grad):
    masks = {mask: op.attrs[mask] for mask in _MASKS}
    return [None, None, None, None, strided_slice_op(grad, *op.inputs[1:4], **masks)]


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """The elements of ``input_`` from ``begin`` to before ``end`` in steps of ``strides``.

    Bit ``i`` of a mask is about entry ``i``: ``begin_mask`` and ``end_mask`` ignore the bound,
    ``ellipsis_mask`` stands for as many dimensions as needed, ``new_axis_mask`` inserts one of
    size 1, ``shrink_axis_mask`` takes one element and drops the dimension. ``x[...]`` is easier.

    Example:
        >>> tf.strided_slice(tf.range(10), [8], [2], [-2])  # [8, 6, 4]
    """
    if strides is None:
        strides = ones_like(convert_to_tensor(begin))
    return strided_slice_op(
        input_,
        begin,
        end,
        strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
        name=name,
    )
