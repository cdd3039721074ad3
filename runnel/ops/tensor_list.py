"""Lists of tensors as values: what functions of TensorFlow 2 keep a ``TensorArray`` in.

A list is never changed: what sets an element gives a new list. An element that was never set is
zeros, in the shape that the list or the reader says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims
from runnel.ops.arithmetic import add_n_op
from runnel.ops.array_shape import shape
from runnel.ops.fill import zeros_like, zeros_like_op
from runnel.pipelines.sources import scalar

_MOST_ELEMENTS = 1 << 28


class TensorList:
    """Elements of one type; None stands for one that was never set."""

    __slots__ = ("dtype", "dims", "elements", "most")

    def __init__(
        self, dtype: DType, dims: Dims, elements: Sequence[Any], most: int | None = None
    ) -> None:
        self.dtype, self.dims, self.elements, self.most = dtype, dims, tuple(elements), most

    def with_elements(self, elements: Sequence[Any]) -> TensorList:
        """A list like this one, of ``elements``."""
        return TensorList(self.dtype, self.dims, elements, self.most)

    def __add__(self, other: Any) -> TensorList:
        """The list of the sums: what the gradient of a list is that is used twice."""
        if not isinstance(other, TensorList):
            return NotImplemented
        if len(self.elements) != len(other.elements):
            raise InvalidArgumentError(
                None,
                None,
                "Trying to add two lists of tensors with different lengths, "
                f"{len(self.elements)} and {len(other.elements)}",
            )
        pairs = zip(self.elements, other.elements, strict=True)
        return self.with_elements([b if a is None else a if b is None else a + b for a, b in pairs])

    def zeros(self) -> TensorList:
        """As many elements that are zeros."""
        return self.with_elements([None if e is None else e * 0 for e in self.elements])

    def dims_with(self, shape: Any) -> Dims:
        """What is known of an element's shape, with what ``shape`` says; they must agree."""
        given = _dims_of(shape)
        return _merged(self.dims, given)

    def element(self, index: int, shape: Any) -> Any:
        """The element at ``index``; zeros if it was never set."""
        found = self.elements[index]
        dims = self.dims_with(shape)
        if found is not None:
            _require(dims, found.shape)
            return found
        if dims is None or None in dims:
            dims = next((e.shape for e in self.elements if e is not None), dims)
        if dims is None or None in dims:
            raise InvalidArgumentError(
                None,
                None,
                f"Element {index} of the list was never set, and its shape is not known: {dims}.",
            )
        return np.zeros(dims, self.dtype.as_numpy_dtype)


def _dims_of(shape: Any) -> Dims:
    """A shape tensor: -1 alone is any shape, -1 inside any size."""
    shape = np.asarray(shape)
    if shape.ndim == 0:
        if shape != -1:
            raise InvalidArgumentError(
                None,
                None,
                f"The only valid scalar shape tensor is the fully unknown shape -1, not {shape}",
            )
        return None
    return tuple(None if size < 0 else int(size) for size in shape)


def _merged(one: Dims, other: Dims) -> Dims:
    if one is None or other is None:
        return other if one is None else one
    agree = len(one) == len(other) and all(
        a is None or b is None or a == b for a, b in zip(one, other, strict=True)
    )
    if not agree:
        raise InvalidArgumentError(
            None, None, f"Tried to use a list of elements of shape {one} as one of shape {other}."
        )
    return tuple([b if a is None else a for a, b in zip(one, other, strict=True)])


def _require(dims: Dims, shape: tuple[int, ...]) -> None:
    if dims is not None and (
        len(dims) != len(shape)
        or any(d is not None and d != size for d, size in zip(dims, shape, strict=True))
    ):
        raise InvalidArgumentError(
            None, None, f"An element of shape {shape} does not fit a list of elements of {dims}."
        )


def _list_of(variant: Any) -> TensorList:
    found = variant[()] if isinstance(variant, np.ndarray) and not variant.ndim else variant
    if not isinstance(found, TensorList):
        raise InvalidArgumentError(None, None, f"A list of tensors is expected, not {found!r}")
    return found


def _length(count: Any) -> int:
    count = int(count)
    if not 0 <= count <= _MOST_ELEMENTS:
        raise InvalidArgumentError(
            None, None, f"A list of {count} elements; from 0 to {_MOST_ELEMENTS} are supported"
        )
    return count


def _index(found: TensorList, index: Any) -> int:
    index = int(index)
    if not 0 <= index < len(found.elements):
        raise InvalidArgumentError(
            None,
            None,
            f"Trying to access element {index} in a list with {len(found.elements)} elements.",
        )
    return index


_ELEMENT = "element_dtype: type"
_SHAPED = [_ELEMENT, "shape_type: {int32, int64}"]


def _op(name: str, inputs: str, outputs: str, attrs: Any = _ELEMENT) -> OpDef:
    return register_op(name, inputs=inputs, outputs=outputs, attrs=attrs, host=True)


empty_op = _op(
    "EmptyTensorList",
    "element_shape: shape_type, max_num_elements: int32",
    "handle: variant",
    _SHAPED,
)
reserve_op = _op(
    "TensorListReserve",
    "element_shape: shape_type, num_elements: int32",
    "handle: variant",
    _SHAPED,
)
from_tensor_op = _op(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type",
    "output_handle: variant",
    _SHAPED,
)
stack_op = _op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32",
    "tensor: element_dtype",
    [_ELEMENT, "num_elements: int = -1"],
)
get_item_op = _op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape",
    "item: element_dtype",
    [_ELEMENT, "Tshape: {int32, int64} = DT_INT32"],
)
set_item_op = _op(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    "output_handle: variant",
    [_ELEMENT, "resize_if_index_out_of_bounds: bool = false"],
)
push_back_op = _op(
    "TensorListPushBack", "input_handle: variant, tensor: element_dtype", "output_handle: variant"
)
pop_back_op = _op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32",
    "output_handle: variant, tensor: element_dtype",
)
length_op = _op("TensorListLength", "input_handle: variant", "length: int32", [])
resize_op = _op(
    "TensorListResize", "input_handle: variant, size: int32", "output_handle: variant", []
)
element_shape_op = _op(
    "TensorListElementShape",
    "input_handle: variant",
    "element_shape: shape_type",
    "shape_type: {int32, int64}",
)
gather_op = _op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32",
    "values: element_dtype",
)
scatter_op = _op(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
    "output_handle: variant",
    _SHAPED,
)
concat_op = _op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64",
    "tensor: element_dtype, lengths: int64",
    _SHAPED,
)
split_op = _op(
    "TensorListSplit",
    "tensor: element_dtype, element_shape: shape_type, lengths: int64",
    "output_handle: variant",
    _SHAPED,
)

for _made in (empty_op, reserve_op, from_tensor_op, scatter_op, split_op):

    @_made.shape
    def _(*inputs):
        return ()


for _made in (set_item_op, push_back_op, length_op, resize_op):

    @_made.shape
    def _(*inputs):
        return ()


def _known(shape: Any) -> Dims:
    """An element's shape where it is known while the graph is built."""
    from runnel.graph.constant_value import constant_value

    value = constant_value(shape)
    if value is None or np.ndim(value) == 0:
        return None
    return tuple(None if size < 0 else int(size) for size in value)


@get_item_op.shape
def _(handle, index, element_shape):
    return _known(element_shape)


@pop_back_op.shape
def _(handle, element_shape):
    return [(), _known(element_shape)]


@stack_op.shape
def _(handle, element_shape, *, num_elements):
    known = _known(element_shape)
    return None if known is None else (None if num_elements < 0 else num_elements, *known)


@empty_op.kernel
def _(xp, shape, most, *, element_dtype):
    limit = None if int(most) < 0 else int(most)
    return scalar(TensorList(element_dtype, _dims_of(shape), (), limit))


@reserve_op.kernel
def _(xp, shape, count, *, element_dtype):
    return scalar(TensorList(element_dtype, _dims_of(shape), [None] * _length(count)))


@from_tensor_op.kernel
def _(xp, tensor, shape, *, element_dtype):
    tensor = np.asarray(tensor)
    if not tensor.ndim:
        raise InvalidArgumentError(None, None, "Tensor must be at least a vector, but saw a scalar")
    dims = _dims_of(shape)
    _require(dims, tensor.shape[1:])
    return scalar(TensorList(element_dtype, dims, [_row(tensor, i) for i in range(len(tensor))]))


def _row(tensor: np.ndarray, index: int) -> np.ndarray:
    return tensor[index, ...]


def _stacked(found: TensorList, indices: Sequence[int], shape: Any) -> np.ndarray:
    dtype = found.dtype.as_numpy_dtype
    if not indices:
        dims = found.dims_with(shape)
        if dims is None or None in dims:
            raise InvalidArgumentError(
                None,
                None,
                f"A list without elements needs a known shape to be stacked, not {dims}.",
            )
        return np.zeros((0, *(d or 0 for d in dims)), dtype)
    elements = [np.asarray(found.element(i, shape)) for i in indices]
    for element in elements:
        if element.shape != elements[0].shape:
            raise InvalidArgumentError(
                None,
                None,
                "Tried to stack elements of a list with different shapes: "
                f"{elements[0].shape} and {element.shape}",
            )
    out = np.empty((len(elements), *elements[0].shape), elements[0].dtype)
    for i, element in enumerate(elements):
        out[i] = element
    return out


@stack_op.kernel
def _(xp, variant, shape, *, num_elements):
    found = _list_of(variant)
    if num_elements >= 0 and num_elements != len(found.elements):
        raise InvalidArgumentError(
            None, None, f"Expected {num_elements} elements, but the list has {len(found.elements)}"
        )
    return _stacked(found, range(len(found.elements)), shape)


@get_item_op.kernel
def _(xp, variant, index, shape):
    found = _list_of(variant)
    return found.element(_index(found, index), shape)


@set_item_op.kernel
def _(xp, variant, index, item, *, resize_if_index_out_of_bounds):
    found = _list_of(variant)
    elements = list(found.elements)
    if resize_if_index_out_of_bounds and int(index) >= len(elements):
        elements += [None] * (_length(int(index) + 1) - len(elements))
        found = found.with_elements(elements)
    item = np.asarray(item)
    _require(found.dims, item.shape)
    elements[_index(found, index)] = item
    return scalar(found.with_elements(elements))


@push_back_op.kernel
def _(xp, variant, tensor):
    found = _list_of(variant)
    tensor = np.asarray(tensor)
    _require(found.dims, tensor.shape)
    if found.most is not None and len(found.elements) >= found.most:
        raise InvalidArgumentError(
            None, None, f"Tried to push item into a full list: it holds {found.most} elements"
        )
    return scalar(found.with_elements((*found.elements, tensor)))


@pop_back_op.kernel
def _(xp, variant, shape):
    found = _list_of(variant)
    if not found.elements:
        raise InvalidArgumentError(None, None, "Trying to pop from an empty list.")
    last = found.element(len(found.elements) - 1, shape)
    return scalar(found.with_elements(found.elements[:-1])), last


@length_op.kernel
def _(xp, variant):
    return np.int32(len(_list_of(variant).elements))


@resize_op.kernel
def _(xp, variant, size):
    found, size = _list_of(variant), _length(size)
    elements = [*found.elements[:size], *[None] * (size - len(found.elements))]
    return scalar(found.with_elements(elements))


@element_shape_op.kernel
def _(xp, variant, *, shape_type):
    dims = _list_of(variant).dims
    sizes: Any = -1 if dims is None else [-1 if d is None else d for d in dims]
    return np.array(sizes, shape_type.as_numpy_dtype)


@gather_op.kernel
def _(xp, variant, indices, shape):
    found = _list_of(variant)
    return _stacked(found, [_index(found, i) for i in np.ravel(indices)], shape)


@scatter_op.kernel
def _(xp, tensor, indices, shape, count, *, element_dtype):
    tensor, indices = np.asarray(tensor), [int(i) for i in np.ravel(indices)]
    if not tensor.ndim or len(tensor) != len(indices) or any(i < 0 for i in indices):
        raise InvalidArgumentError(
            None,
            None,
            f"{len(indices)} indices, none of them negative, do not name the rows of a tensor of "
            f"shape {tensor.shape}",
        )
    size = _length(max([int(count), *(i + 1 for i in indices)]))
    elements: list[Any] = [None] * size
    for row, i in enumerate(indices):
        elements[i] = _row(tensor, row)
    return scalar(TensorList(element_dtype, _dims_of(shape), elements))


@concat_op.kernel
def _(xp, variant, shape, leading, *, element_dtype):
    found = _list_of(variant)
    parts = []
    for i, one in enumerate(found.elements):
        if one is None:
            rest = found.dims_with(shape)
            if rest is None or None in rest[1:] or i >= len(leading):
                raise InvalidArgumentError(
                    None, None, f"Element {i} of the list was never set, and its shape is unknown"
                )
            one = np.zeros((int(leading[i]), *rest[1:]), element_dtype.as_numpy_dtype)
        if not np.ndim(one):
            raise InvalidArgumentError(None, None, f"Concat saw a scalar shape at index {i}")
        parts.append(np.asarray(one))
    lengths = np.array([len(part) for part in parts], np.int64)
    if not parts:
        rest = found.dims_with(shape)
        sizes = () if rest is None else rest[1:]
        if None in sizes:
            raise InvalidArgumentError(None, None, "All except the first dimension must be known")
        known = [size or 0 for size in sizes]
        return np.zeros((0, *known), element_dtype.as_numpy_dtype), lengths
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        raise InvalidArgumentError(
            None, None, f"Elements of shapes {[p.shape for p in parts]} cannot be concatenated"
        )
    return np.concatenate(parts), lengths


@split_op.kernel
def _(xp, tensor, shape, lengths, *, element_dtype):
    tensor, lengths = np.asarray(tensor), np.ravel(lengths)
    if not tensor.ndim or lengths.sum() != len(tensor) or (lengths < 0).any():
        raise InvalidArgumentError(
            None, None, f"Lengths {lengths.tolist()} do not divide a tensor of {tensor.shape}"
        )
    parts = np.split(tensor, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return scalar(TensorList(element_dtype, _dims_of(shape), parts))


# Gradients: that of a list is a list of the gradients of its elements -----------------------------


@stack_op.gradient
def _(op, grad):
    return [from_tensor_op(grad, op.inputs[1], element_dtype=grad.dtype.base_dtype), None]


@from_tensor_op.gradient
def _(op, grad):
    sizes = shape(op.inputs[0])[1:]
    made = stack_op(grad, sizes, element_dtype=op.inputs[0].dtype.base_dtype)
    return [made, None]


@get_item_op.gradient
def _(op, grad):
    handle, index, _ = op.inputs
    dtype = grad.dtype.base_dtype
    empty = reserve_op(shape(grad), length_op(handle), element_dtype=dtype)
    return [set_item_op(empty, index, grad, element_dtype=dtype), None, None]


@set_item_op.gradient
def _(op, grad):
    _, index, item = op.inputs
    dtype = item.dtype.base_dtype
    of_list = set_item_op(grad, index, zeros_like(item), element_dtype=dtype)
    of_item = get_item_op(grad, index, shape(item), element_dtype=dtype)
    return [of_list, None, of_item]


@push_back_op.gradient
def _(op, grad):
    item = op.inputs[1]
    return list(pop_back_op(grad, shape(item), element_dtype=item.dtype.base_dtype))


@pop_back_op.gradient
def _(op, of_list, of_item):
    if of_list is None:
        of_list = zeros_like(op.outputs[0], optimize=False)
    item = zeros_like(op.outputs[1]) if of_item is None else of_item
    return [push_back_op(of_list, item, element_dtype=item.dtype.base_dtype), None]


@concat_op.gradient
def _(op, grad, _):
    _, shape, _ = op.inputs
    return [split_op(grad, shape, op.outputs[1], element_dtype=grad.dtype.base_dtype), None, None]


@split_op.gradient
def _(op, grad):
    tensor, shape, lengths = op.inputs
    made = concat_op(grad, shape, lengths, element_dtype=tensor.dtype.base_dtype)
    return [made[0], None, None]


@gather_op.gradient
def _(op, grad):
    handle, indices, shape = op.inputs
    made = scatter_op(grad, indices, shape, length_op(handle), element_dtype=grad.dtype.base_dtype)
    return [made, None, None]


@scatter_op.gradient
def _(op, grad):
    tensor, indices, shape, _ = op.inputs
    made = gather_op(grad, indices, shape, element_dtype=tensor.dtype.base_dtype)
    return [made, None, None, None]


@add_n_op.kernel(dtype="variant", tier="interpreted")
def _(xp, values):
    return scalar(sum(map(_list_of, values[1:]), start=_list_of(values[0])))


@zeros_like_op.kernel(dtype="variant", tier="interpreted")
def _(xp, x):
    return scalar(_list_of(x).zeros())
