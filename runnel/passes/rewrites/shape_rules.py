"""Rules, by operation, for shapes in which unknown sizes have names.

A rule says what holds whenever the operation succeeds, whatever the sizes are, 0 and 1 included. A
size of which it says nothing is None. ``symbolic_shapes`` follows a step with these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runnel.graph.shape_inference import broadcast, unchanged
from runnel.passes.program.program import Node

if TYPE_CHECKING:
    from runnel.passes.rewrites.symbolic_shapes import SymbolicShapes


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that is not known, by the first value that has it, and on which axis."""

    value: int
    axis: int


Size = int | Symbol
Sizes = tuple[Size, ...]
PartlyKnown = Sequence[Size | None] | None
"""A shape: None if not even the rank is known."""
Content = Size | None | tuple[Size | None, ...]
"""What is known of a single integer, or of a vector of some."""

ShapeRule = Callable[["SymbolicShapes", Node], PartlyKnown]
ContentRule = Callable[["SymbolicShapes", Node], Content]

_MOST_ELEMENTS = 16
_UNCHANGED = frozenset({"BiasAdd", "Softmax", "LogSoftmax", "ClipByValue", "ReverseV2"})
_ALIKE = frozenset(
    {"AddN", "ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"}
)
"""All inputs, and the output, have one shape. (Interpreted, some would broadcast.)"""


def shapes_of(shapes: SymbolicShapes, node: Node) -> Sequence[PartlyKnown]:
    """The shapes of the outputs of ``node``."""
    kind, function = node.op_def.name, node.op_def.shape_function
    if kind in ("Split", "SplitV"):
        return [_part(shapes, node)] * len(node.outputs)
    if kind == "SparseSoftmaxCrossEntropyWithLogits":
        logits = shapes.sizes(node.inputs[0])
        return [logits[:-1] if logits else None, logits]
    if len(node.outputs) != 1:
        return [None] * len(node.outputs)
    if function is unchanged or kind in _UNCHANGED:
        return [shapes.sizes(node.inputs[0])]
    if function is broadcast:
        first, second = node.inputs
        return [broadcast_together(shapes.sizes(first), shapes.sizes(second))]
    if kind in _ALIKE:
        found = {shapes.sizes(value) for value in node.inputs}
        return [found.pop() if len(found) == 1 else None]
    rule = _SHAPES.get(kind)
    return [None if rule is None else rule(shapes, node)]


def content_of(shapes: SymbolicShapes, node: Node) -> Content:
    """What is known of the integers that ``node`` gives."""
    rule = _CONTENTS.get(node.op_def.name)
    return None if rule is None else rule(shapes, node)


def common(a: Sizes | None, b: Sizes | None) -> PartlyKnown:
    """What two shapes have in common."""
    if a is None or b is None or len(a) != len(b):
        return None
    return [x if x == y else None for x, y in zip(a, b, strict=True)]


def broadcast_together(a: PartlyKnown, b: PartlyKnown) -> PartlyKnown:
    """The shape of what is made of two arrays, element by element."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    pairs = zip((*[1] * (rank - len(a)), *a), (*[1] * (rank - len(b)), *b), strict=True)
    return [_stretched(x, y) for x, y in pairs]


def _stretched(x: Size | None, y: Size | None) -> Size | None:
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    return x if isinstance(x, int) else y if isinstance(y, int) else None


def _number(shapes: SymbolicShapes, value: int) -> int | None:
    content = shapes.content(value)
    return content if isinstance(content, int) else None


def _numbers(shapes: SymbolicShapes, value: int) -> tuple[int, ...] | None:
    """Integers that are all known; a single one too."""
    content = shapes.content(value)
    content = content if isinstance(content, tuple) else (content,)
    found = tuple([size for size in content if isinstance(size, int)])
    return found if len(found) == len(content) else None


# Shapes ---------------------------------------------------------------------------------------


def _part(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    whole, along = node.inputs[1], node.inputs[0]
    if node.op_def.name == "SplitV":
        whole, along = node.inputs[0], node.inputs[2]
    return _apart_from(shapes, whole, along)


def _apart_from(shapes: SymbolicShapes, value: int, along: int) -> PartlyKnown:
    """The shape of ``value``, of unknown size along one axis."""
    sizes, axis = shapes.sizes(value), _number(shapes, along)
    if not sizes or axis is None:
        return None
    axis %= len(sizes)
    return [None if place == axis else size for place, size in enumerate(sizes)]


def _product(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    a, b = (shapes.sizes(value) for value in node.inputs)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    return a[int(node.attrs["transpose_a"])], b[int(not node.attrs["transpose_b"])]


def _products(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    a, b = (shapes.sizes(value) for value in node.inputs)
    if a is None or b is None or min(len(a), len(b)) < 2:
        return None
    batch = broadcast_together(a[:-2], b[:-2])
    if batch is None:
        return None
    return *batch, a[-1 if node.attrs["adj_x"] else -2], b[-2 if node.attrs["adj_y"] else -1]


def _joined(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    return _apart_from(shapes, node.inputs[0], node.inputs[-1])


def _packed(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    sizes = shapes.sizes(node.inputs[0])
    if sizes is None:
        return None
    axis = node.attrs["axis"] % (len(sizes) + 1)
    return *sizes[:axis], len(node.inputs), *sizes[axis:]


def _expanded(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    sizes, axis = shapes.sizes(node.inputs[0]), _number(shapes, node.inputs[1])
    if sizes is None or axis is None:
        return None
    axis %= len(sizes) + 1
    return *sizes[:axis], 1, *sizes[axis:]


def _squeezed(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    sizes, axes = shapes.sizes(node.inputs[0]), node.attrs["squeeze_dims"]
    if not sizes or not axes:
        return None
    gone = {axis % len(sizes) for axis in axes}
    return [size for place, size in enumerate(sizes) if place not in gone]


def _transposed(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    sizes, order = shapes.sizes(node.inputs[0]), _numbers(shapes, node.inputs[1])
    if sizes is None or order is None or len(order) != len(sizes):
        return None
    return [sizes[axis] for axis in order]


def _reduced(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    sizes, axes = shapes.sizes(node.inputs[0]), _numbers(shapes, node.inputs[1])
    if not sizes or axes is None:
        return None
    gone = {axis % len(sizes) for axis in axes}
    if node.attrs["keep_dims"]:
        return [1 if place in gone else size for place, size in enumerate(sizes)]
    return [size for place, size in enumerate(sizes) if place not in gone]


def _of_shape(position: int) -> ShapeRule:
    """The rule of an operation that is told the shape of what it makes."""

    def rule(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
        content = shapes.content(node.inputs[position])
        return content if isinstance(content, tuple) else None

    return rule


def _reshaped(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    content = shapes.content(node.inputs[1])
    if not isinstance(content, tuple):
        return None
    if -1 not in content:
        return content
    return [_left_over(shapes.sizes(node.inputs[0]), content) if s == -1 else s for s in content]


def _left_over(sizes: Sizes | None, content: Sequence[Size | None]) -> Size | None:
    """The size that -1 stands for, where all others cancel."""
    if sizes is None or None in content or content.count(-1) != 1:
        return None
    numbers, symbols = 1, [size for size in sizes if isinstance(size, Symbol)]
    for number in sizes:
        numbers *= number if isinstance(number, int) else 1
    for size in content:
        if isinstance(size, Symbol):
            if size not in symbols:
                return None
            symbols.remove(size)
        elif size is not None and size > 0 and numbers % size == 0:
            numbers //= size
        elif size != -1:
            return None
    return symbols[0] if len(symbols) == 1 and numbers == 1 else None


def _gathered(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    table, indices = (shapes.sizes(value) for value in node.inputs[:2])
    axis = 0 if len(node.inputs) == 2 else _number(shapes, node.inputs[2])
    if not table or indices is None or axis is None or node.attrs.get("batch_dims", 0):
        return None
    axis %= len(table)
    return *table[:axis], *indices, *table[axis + 1 :]


def _selected(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    condition, one, other = (shapes.sizes(value) for value in node.inputs)
    if node.op_def.name == "Select":
        return one if one == other else None
    return broadcast_together(condition, broadcast_together(one, other))


def _read(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    return shapes.element(node.inputs[0])[0]


def _gathered_elements(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    element, indices = shapes.element(node.inputs[0])[0], shapes.sizes(node.inputs[1])
    if element is None or indices is None:
        return None
    return *indices, *element


def _sliced(shapes: SymbolicShapes, node: Node) -> PartlyKnown:
    """Axes that a slice with strides takes whole; the rest is left to the static shape."""
    sizes, begin = shapes.sizes(node.inputs[0]), shapes.sizes(node.inputs[1])
    strides, attrs = _numbers(shapes, node.inputs[3]), node.attrs
    if sizes is None or begin is None or strides is None:
        return None
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"] or begin != (len(strides),):
        return None
    found: list[Size | None] = []
    for axis, size in enumerate(sizes):
        bit = 1 << axis
        if attrs["shrink_axis_mask"] & bit:
            continue
        whole = axis >= len(strides) or (
            attrs["begin_mask"] & attrs["end_mask"] & bit and strides[axis] in (1, -1)
        )
        found.append(size if whole else None)
    return found


_SHAPES: dict[str, ShapeRule] = {
    "MatMul": _product,
    "BatchMatMul": _products,
    "BatchMatMulV2": _products,
    "ConcatV2": _joined,
    "Pack": _packed,
    "ExpandDims": _expanded,
    "Squeeze": _squeezed,
    "Transpose": _transposed,
    "Reshape": _reshaped,
    "StridedSlice": _sliced,
    "Gather": _gathered,
    "GatherV2": _gathered,
    "Select": _selected,
    "SelectV2": _selected,
    "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gathered_elements,
    "StackPopV2": _read,
    "StackPushV2": lambda shapes, node: shapes.sizes(node.inputs[1]),
    "BroadcastTo": _of_shape(1),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod"), _reduced),
    **dict.fromkeys(
        ("Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal"), _of_shape(0)
    ),
}


# Contents -------------------------------------------------------------------------------------


def _constant(shapes: SymbolicShapes, node: Node) -> Content:
    array = node.attrs["value"]
    if array.dtype.kind not in "iu" or array.ndim > 1 or array.size > _MOST_ELEMENTS:
        return None
    found: Any = array.tolist()
    return tuple(found) if array.ndim else found


def _part_of_vector(shapes: SymbolicShapes, node: Node) -> Content:
    content, attrs = shapes.content(node.inputs[0]), node.attrs
    bounds = [_numbers(shapes, value) for value in node.inputs[1:]]
    if not isinstance(content, tuple) or attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return None
    if any(numbers is None or len(numbers) != 1 for numbers in bounds):
        return None
    begin, end, stride = (numbers[0] for numbers in bounds if numbers is not None)
    if attrs["shrink_axis_mask"]:
        return content[begin] if -len(content) <= begin < len(content) else None
    if stride == 0:
        return None
    return content[
        None if attrs["begin_mask"] else begin : None if attrs["end_mask"] else end : stride
    ]


def _as_vector(shapes: SymbolicShapes, node: Node) -> Content:
    content = shapes.content(node.inputs[0])
    return None if content is None or isinstance(content, tuple) else (content,)


def _joined_vectors(shapes: SymbolicShapes, node: Node) -> Content:
    found: list[Size | None] = []
    for value in node.inputs[:-1]:
        content, sizes = shapes.content(value), shapes.sizes(value)
        if isinstance(content, tuple):
            found += content
        elif sizes is not None and len(sizes) == 1 and isinstance(sizes[0], int):
            found += [None] * sizes[0]
        else:
            return None
        if len(found) > _MOST_ELEMENTS:
            return None
    return tuple(found)


def _packed_numbers(shapes: SymbolicShapes, node: Node) -> Content:
    if any(shapes.sizes(value) != () for value in node.inputs):
        return None
    found = [shapes.content(value) for value in node.inputs]
    return tuple([None if isinstance(content, tuple) else content for content in found])


_CONTENTS: dict[str, ContentRule] = {
    "Const": _constant,
    "Shape": lambda shapes, node: shapes.sizes(node.inputs[0]),
    "Identity": lambda shapes, node: shapes.content(node.inputs[0]),
    "StridedSlice": _part_of_vector,
    "ExpandDims": _as_vector,
    "ConcatV2": _joined_vectors,
    "Pack": _packed_numbers,
    "StackPopV2": lambda shapes, node: shapes.element(node.inputs[0])[1],
    "StackPushV2": lambda shapes, node: shapes.content(node.inputs[1]),
}
