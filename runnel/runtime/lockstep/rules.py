"""Rules by which one call of a kernel computes an operation for all rows.

A *rule* takes a node's arguments, some of which have rows. It returns a call's results, or None
where it does not apply: then the kernel is called for each row. A rule must return what those calls
would return, bit for bit. Most rules hand the kernel all rows in one array, and move the dimensions
that its other arguments name by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.registry import OpDef
from runnel.graph.shape_inference import broadcast, unchanged
from runnel.ops.sampling.philox import PhiloxStream, stream_rows
from runnel.passes.program.kernel_call import interpreted
from runnel.passes.program.program import Node
from runnel.runtime.lockstep.rows import SeparateRows, StackedRows, is_rows, repeated, stacked

Call = Callable[..., Any]
Rule = Callable[[Node, Call, Sequence[Any], int], Any]
"""``(node, call, arguments, count)``: what the call gives for all rows, or None."""


def rule_for(op_def: OpDef) -> Rule | None:
    """The rule of an operation type; None if its kernel is called for each row."""
    found = _RULES.get(op_def.name)
    if found is not None:
        return found
    if op_def.known_from_shapes:
        return _of_shapes
    if op_def.shape_function is broadcast:
        return _broadcast
    if op_def.shape_function is unchanged and op_def.name not in _NOT_ELEMENTWISE:
        return _elementwise
    return None


_NOT_ELEMENTWISE = frozenset(
    {
        *("RandomShuffle", "AdjustContrastv2", "DrawBoundingBoxes", "DrawBoundingBoxesV2"),
        *("InvertPermutation", "DecodeJSONExample"),
    }
)
"""Operations that keep the shape of an input, but look at more of it than one element at a time."""


def random_rows(
    node: Node, call: Call, args: Sequence[Any], stream: PhiloxStream, count: int
) -> tuple[Any, int] | None:
    """What a random op draws for all rows, and how far its stream moves on."""
    if node.op_def.name not in _DRAW_IN_GROUPS or any(map(is_rows, args)):
        return None
    shape = tuple(np.asarray(args[0]).tolist())
    if 0 in shape or len(shape) != np.size(args[0]):
        return None
    assert node.op_def.random is not None
    step = node.op_def.random(shape)
    rows = stream_rows(stream, step, count)
    if rows is None:
        return None
    return StackedRows(call(*args, rows)[0]), step * count


_DRAW_IN_GROUPS = frozenset({"RandomUniform", "RandomUniformInt", "RandomStandardNormal"})
"""Ops whose elements come from consecutive counters: their kernels take a stream for each row."""


# Element by element -------------------------------------------------------------------------------


def _first_alone(args: Sequence[Any]) -> np.ndarray | None:
    """The rows of the first argument in one array; None where others have rows, too."""
    if any(map(is_rows, args[1:])) or not is_rows(args[0]):
        return None
    return stacked(args[0])


def _elementwise(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    array = _first_alone(args)
    if array is None:
        return None
    return StackedRows(call(array, *args[1:]))


def _broadcast(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    aligned = _aligned(args)
    return None if aligned is None else StackedRows(call(*aligned))


def _aligned(args: Sequence[Any]) -> list[Any] | None:
    """The arguments, with their rows in one array each, to be broadcast row by row."""
    arrays: list[Any] = [stacked(arg) if is_rows(arg) else arg for arg in args]
    if any(array is None for array in arrays):
        return None
    ranks = [np.ndim(a) - is_rows(arg) for a, arg in zip(arrays, args, strict=True)]
    most = max(ranks)
    return [
        array.reshape((len(array), *[1] * (most - rank), *array.shape[1:]))
        if is_rows(arg) and rank < most
        else array
        for array, arg, rank in zip(arrays, args, ranks, strict=True)
    ]


def _select(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    condition, *values = args
    arrays = _as_arrays(values, count)
    if arrays is None or arrays[0].shape != arrays[1].shape or not is_rows(condition):
        return None
    chosen = stacked(condition)
    if chosen is None or chosen.ndim not in (1, arrays[0].ndim):
        return None
    if chosen.ndim > 1 and chosen.shape != arrays[0].shape:
        return None
    if chosen.ndim == 1:
        chosen = chosen.reshape(count, *[1] * (arrays[0].ndim - 1))
    return StackedRows(np.where(chosen, *arrays))


def _as_arrays(args: Sequence[Any], count: int) -> list[np.ndarray] | None:
    """Each argument with all its rows in one array, also what is the same in every run."""
    found = [stacked(arg) if is_rows(arg) else repeated(arg, count) for arg in args]
    if any(array is None for array in found):
        return None
    return found  # type: ignore[return-value]


def _of_shapes(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """What only depends on shapes, which all rows of a stack share."""
    if not all(type(arg) is StackedRows or not is_rows(arg) for arg in args):
        return None
    return call(*[arg.array[0, ...] if type(arg) is StackedRows else arg for arg in args])


def _check(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """An assertion, which holds if it holds for each row; if not, a call for the row says why."""
    condition = stacked(args[0]) if is_rows(args[0]) else args[0]
    return () if condition is not None and np.all(condition) else None


# Arguments that name dimensions -------------------------------------------------------------------


def _behind(axes: Any) -> Any:
    """Axes of a row as axes of a stack: those that are counted from the end stay."""
    return np.where(np.asarray(axes) < 0, axes, np.asarray(axes) + 1).astype(np.asarray(axes).dtype)


def _along(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """``kernel(x, axes)``."""
    array, axes = _first_alone(args), args[1]
    if array is None:
        return None
    size = 1 + (node.op_def.name == "ExpandDims")
    if np.any(np.asarray(axes) < -(array.ndim - 2 + size)):
        return None  # not an axis of a row
    if array.ndim == 1 and node.op_def.name != "ExpandDims":
        return None
    return StackedRows(call(array, _behind(axes), *args[2:]))


def _reduced(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """A reduction over all of a row: the rounding of a sum depends on the order of its terms."""
    array, axes = _first_alone(args), args[1]
    if array is None or array.ndim == 1:
        return None
    exact = array.dtype.kind in "biu" or node.op_def.name not in ("Sum", "Mean", "Prod")
    rank = array.ndim - 1
    chosen = {int(axis) % rank for axis in np.reshape(axes, -1)}
    if np.any(np.asarray(axes) < -rank) or np.any(np.asarray(axes) >= rank):
        return None
    if not exact and (len(chosen) < rank or not array.flags.c_contiguous):
        return None
    return StackedRows(call(array, _behind(axes)))


def _with_first(make: Callable[[Node, Any, np.ndarray, int], Any], *places: int) -> Rule:
    """``kernel(x, sizes, ...)`` where ``sizes`` has an entry for each dimension of ``x``."""

    def rule(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
        array = _first_alone(args)
        if array is None or not array.size:
            return None
        moved = [
            make(node, np.asarray(arg), array, place) if place in places else arg
            for place, arg in enumerate(args)
        ]
        return StackedRows(call(array, *moved[1:]))

    return rule


def _first(entry: Any) -> Callable[[Node, Any, np.ndarray, int], Any]:
    def make(node: Node, sizes: Any, array: np.ndarray, place: int) -> Any:
        value = len(array) if entry is None else entry
        return np.concatenate([np.asarray([value], sizes.dtype), sizes])

    return make


def _permuted(node: Node, order: Any, array: np.ndarray, place: int) -> Any:
    return np.concatenate([np.zeros(1, order.dtype), order + 1])


def _sliced_from(node: Node, sizes: Any, array: np.ndarray, place: int) -> Any:
    return np.concatenate([np.asarray([0 if place == 1 else len(array)], sizes.dtype), sizes])


_MASKS = {"begin_mask": 1, "end_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 0}
_MASKS |= {"shrink_axis_mask": 0}


def _strided(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    array, bounds = _first_alone(args), args[1:]
    if array is None:
        return None
    begin, end, strides = (
        np.concatenate([np.asarray([first], b.dtype), b])
        for first, b in zip((0, 0, 1), map(np.asarray, bounds), strict=True)
    )
    attrs = {name: node.attrs[name] << 1 | bit for name, bit in _MASKS.items()}
    moved = Node(node.op, node.op_def, node.inputs, node.outputs, (), node.attrs | attrs)
    return StackedRows(interpreted(moved, "CPU")(array, begin, end, strides))


def _squeezed(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    array = stacked(args[0])
    if array is None:
        return None
    row = array[0, ...]
    return StackedRows(array.reshape((len(array), *np.shape(call(row)))))


def _packed(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    arrays, axis = _as_arrays(args, count), node.attrs["axis"]
    if arrays is None or len({array.shape for array in arrays}) > 1:
        return None
    return StackedRows(np.stack(arrays, axis if axis < 0 else axis + 1))


def _unpacked(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    array, axis = stacked(args[0]), node.attrs["axis"]
    if array is None or array.ndim < 2 or array.dtype == object:
        return None
    parts = np.moveaxis(array, axis if axis < 0 else axis + 1, 0)
    if len(parts) != node.attrs["num"]:
        return None
    found = [StackedRows(part) for part in parts]
    return found[0] if len(node.outputs) == 1 else found


def _concatenated(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    *values, axis = args
    arrays = None if is_rows(axis) else _as_arrays(values, count)
    if arrays is None or len({array.ndim for array in arrays}) > 1 or arrays[0].ndim < 2:
        return None
    if int(axis) < 1 - arrays[0].ndim:
        return None
    return StackedRows(call(*arrays, _behind(axis)))


def _last(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """Along the last dimension of an array of any rank but 0."""
    array = _first_alone(args)
    if array is None or array.ndim < 2:
        return None
    return StackedRows(call(array, *args[1:]))


def _one_hot(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    if node.attrs["axis"] != -1:
        return None
    return _elementwise(node, call, args, count)


def _gathered(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """Rows of one table."""
    params, indices, *axis = args
    if is_rows(params) or not is_rows(indices) or any(map(is_rows, axis)):
        return None
    array = stacked(indices)
    if array is None or node.attrs.get("batch_dims", 0) or (axis and int(axis[0])):
        return None
    return StackedRows(call(params, array, *axis))


def _batched(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """A kernel over a batch of images: those of all rows are one batch."""
    array = _first_alone(args)
    if array is None or array.ndim != 5:
        return None
    found = call(array.reshape(-1, *array.shape[2:]), *args[1:])
    return StackedRows(found.reshape(*array.shape[:2], *found.shape[1:]))


def _texts(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """Strings that stand alone in each row: together they are a vector."""
    arrays = [stacked(arg) if is_rows(arg) else arg for arg in args]
    if any(a is None or np.ndim(a) != is_rows(arg) for a, arg in zip(arrays, args, strict=True)):
        return None
    return StackedRows(call(*arrays))


def _examples(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    from runnel.ops.parsing.parse_example import parsed_together

    array, defaults = _first_alone(args), list(args[1:])
    if array is None or array.ndim != 1:
        return None
    found = [
        SeparateRows(part) if isinstance(part, list) else StackedRows(part)
        for part in parsed_together(array.tolist(), defaults, node.attrs)
    ]
    return found[0] if len(found) == 1 else found


def _lines(node: Node, call: Call, args: Sequence[Any], count: int) -> Any:
    """Lines of values: the columns of all rows' lines."""
    records, *defaults = args
    array = stacked(records) if is_rows(records) else None
    if array is None or any(map(is_rows, defaults)):
        return None
    columns = [StackedRows(column) for column in call(array, *defaults)]
    return columns[0] if len(columns) == 1 else columns


def _zip(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_RULES: dict[str, Rule] = {
    **_zip("Equal NotEqual ApproximateEqual SelectV2", _broadcast),
    **_zip("Select", _select),
    **_zip("Assert", _check),
    **_zip("ReverseV2 ExpandDims Cumsum Cumprod ArgMax ArgMin", _along),
    **_zip("Sum Mean Prod Max Min All Any", _reduced),
    **_zip("Reshape", _with_first(_first(None), 1)),
    **_zip("Tile", _with_first(_first(1), 1)),
    **_zip("Pad PadV2 MirrorPad", _with_first(_first([0, 0]), 1)),
    **_zip("Transpose", _with_first(_permuted, 1)),
    **_zip("Slice", _with_first(_sliced_from, 1, 2)),
    **_zip("StridedSlice", _strided),
    **_zip("Squeeze", _squeezed),
    **_zip("Pack", _packed),
    **_zip("Unpack", _unpacked),
    **_zip("ConcatV2", _concatenated),
    **_zip("OneHot", _one_hot),
    **_zip("Softmax LogSoftmax", _last),
    **_zip("Gather GatherV2", _gathered),
    **_zip("ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea", _batched),
    **_zip("DecodeRaw StringJoin", _texts),
    **_zip("ParseSingleExample", _examples),
    **_zip("DecodeCSV", _lines),
}
