"""Arrays of tensors, which live for one step: the operations behind ``tf.TensorArray``.

A handle denotes the array; a *flow*, a number that means nothing, orders the operations on it.
Gradients are sums in a second array, attached to the first (``TensorArrayGradV3``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError, UnimplementedError
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, compatible_dims, format_dims, merge_dims

FLOW = np.float32(0)


class ArrayState:
    """A TensorArray at run time; what its handle denotes."""

    def __init__(
        self, size: int, dtype: Any, dims: Dims, dynamic: bool, clears: bool, alike: bool = False
    ) -> None:
        self.values: list[Any] = [None] * size
        self.shapes: list[Any] = [None] * size
        self.dtype = dtype
        self.dims = dims
        self.dynamic = dynamic
        self.clears = clears
        self.alike = alike
        """True when all elements have one shape: that of the first that is written."""
        self.closed = False
        self.sums = False
        """True for an array of gradients: writes to a place add up, unwritten ones are zero."""
        self.gradients: dict[str, ArrayState] = {}

    def write(self, index: int, value: Any) -> None:
        if index < 0:
            raise _invalid(f"Tried to write to index {index}")
        if index >= len(self.values):
            if not self.dynamic:
                raise _invalid(
                    f"Tried to write to index {index} but array is not resizeable and size is: "
                    f"{len(self.values)}"
                )
            missing = index + 1 - len(self.values)
            self.values += [None] * missing
            self.shapes += [None] * missing
        shape = np.shape(value) if type(value) is not np.ndarray else value.shape
        if not compatible_dims(shape, self.dims):
            raise _invalid(
                f"Tried to write a value of shape {format_dims(shape)} to an array of "
                f"elements of shape {format_dims(self.dims)}"
            )
        if self.alike:
            self.dims = shape
        present = self.values[index]
        if self.sums:
            self.values[index] = value if present is None else present + value
        elif self.shapes[index] is not None:
            raise _invalid(
                f"Could not write to TensorArray index {index} because it has already been "
                + ("written to." if present is not None else "read.")
            )
        else:
            self.values[index] = value
        self.shapes[index] = shape

    def fill(self, rows: Any) -> bool:
        """Writes all elements at once; False when this is not the first that is written."""
        count = len(rows)
        if self.sums or len(self.values) not in ({0, count} if self.dynamic else {count}):
            return False
        shape = np.shape(rows)[1:]
        if self.shapes.count(None) < len(self.shapes) or not compatible_dims(shape, self.dims):
            return False
        if self.alike and count:
            self.dims = shape
        # With the ellipsis a string stays a tensor's value.
        self.values, self.shapes = [rows[i, ...] for i in range(count)], [shape] * count
        return True

    def read(self, index: int) -> Any:
        if not 0 <= index < len(self.values):
            raise _invalid(
                f"Tried to read from index {index} but array size is: {len(self.values)}"
            )
        value = self.values[index]
        if value is None:
            shape = self.shapes[index]
            if not self.sums and shape is not None:
                raise _invalid(
                    f"Could not read index {index} twice because it was cleared after a previous "
                    "read (perhaps try setting clear_after_read = false?)"
                )
            if shape is None:
                shape = self.dims
            if shape is None or None in shape:
                raise _invalid(
                    f"Could not read from TensorArray index {index}: it has not been written, and "
                    f"the shape of its elements, {format_dims(self.dims)}, is not known"
                )
            return np.zeros(shape, self.dtype.np_dtype)
        if self.clears:
            self.values[index] = None
        return value

    def gradient(self, source: str, prepended: tuple[int, ...] = ()) -> ArrayState:
        """The array of gradients; its elements have further axes, ``prepended``, in front."""
        found = self.gradients.get(source)
        if found is None:
            dims = None if self.dims is None else (*prepended, *self.dims)
            found = ArrayState(len(self.values), self.dtype, dims, False, False)
            found.sums = True
            found.shapes = [None if s is None else (*prepended, *s) for s in self.shapes]
            self.gradients[source] = found
        return found


def _open(array: ArrayState) -> ArrayState:
    if array.closed:
        raise _invalid("TensorArray has already been closed.")
    return array


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _op(
    name: str, inputs: str, outputs: str, attrs: Any = "", shapes: Any = None, static: str = ""
) -> OpDef:
    """``static`` names the inputs whose values a compiled step must know."""
    kinds: Any = {"host": True, "stateful": True, "static_inputs": tuple(static.split())}
    made = register_op(name, inputs=inputs, outputs=outputs, attrs=attrs, **kinds)
    if shapes is not None:
        made.shape(shapes)
    return made


def _of_flow(*inputs: Any) -> Dims:
    return ()


array_op = _op(
    "TensorArrayV3",
    "size: int32",
    "handle: resource, flow: float",
    [
        "dtype: type",
        "element_shape: shape = unknown",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "identical_element_shapes: bool = false",
        "tensor_array_name: string = ''",
    ],
    lambda size: [(2,), ()],
    static="size",
)
write_op = _op(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    _of_flow,
)
read_op = _op(
    "TensorArrayReadV3",
    "handle: resource, index: int32, flow_in: float",
    "value: dtype",
    "dtype: type",
    lambda *inputs: None,
)
size_op = _op("TensorArraySizeV3", "handle: resource, flow_in: float", "size: int32", "", _of_flow)
gather_op = _op(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float",
    "value: dtype",
    ["dtype: type", "element_shape: shape = unknown"],
    static="indices",
)
scatter_op = _op(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    static="indices",
)
concat_op = _op(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float",
    "value: dtype, lengths: int64",
    ["dtype: type", "element_shape_except0: shape = unknown"],
)
split_op = _op(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float",
    "flow_out: float",
    "T: type",
    _of_flow,
    static="lengths",
)
grad_op = _op(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float",
    "grad_handle: resource, flow_out: float",
    "source: string",
    lambda *inputs: [(2,), ()],
)
grad_with_shape_op = _op(
    "TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32",
    "grad_handle: resource, flow_out: float",
    "source: string",
    lambda *inputs: [None, ()],
    static="shape_to_prepend",
)
close_op = _op("TensorArrayCloseV3", "handle: resource", "")
for _made in (array_op, size_op, grad_op, grad_with_shape_op, close_op):
    _made.differentiable = False  # an array's size may depend on a shape of what is differentiated


@gather_op.shape
def _(handle, indices, flow, *, element_shape):
    if element_shape._dims is None:
        return None
    count = indices.dims[0] if indices.dims else None
    return (count, *element_shape._dims)


@scatter_op.shape
def _(handle, indices, value, flow):
    if indices.dims and value.dims and not compatible_dims(indices.dims[:1], value.dims[:1]):
        raise ValueError(
            f"There are {indices.dims[0]} indices for {value.dims[0]} values; each value needs one"
        )
    return ()


@concat_op.shape
def _(handle, flow, *, element_shape_except0):
    rest = element_shape_except0._dims
    return [None if rest is None else (None, *rest), (None,)]


@array_op.kernel
def _(xp, size, *, dtype, element_shape, dynamic_size, clear_after_read, identical_element_shapes):
    if size < 0:
        raise _invalid(f"Size should be >= 0: {size}")
    made = ArrayState(
        int(size),
        dtype,
        element_shape._dims,
        dynamic_size,
        clear_after_read,
        identical_element_shapes,
    )
    return made, FLOW


@write_op.kernel
def _(xp, array, index, value, flow):
    _open(array).write(int(index), value)
    return FLOW


@read_op.kernel
def _(xp, array, index, flow):
    return _open(array).read(int(index))


@size_op.kernel
def _(xp, array, flow):
    return np.int32(len(_open(array).values))


@gather_op.kernel
def _(xp, array, indices, flow, *, element_shape, dtype):
    read = _open(array).read
    values = [read(index) for index in indices.tolist()]
    if not values:
        dims = merge_dims(array.dims, element_shape._dims)
        return np.zeros((0, *_defined(dims, "element_shape")), dtype.np_dtype)
    _require_alike([np.shape(value) for value in values], 0)
    return np.stack(values)


def _defined(dims: Dims, argument: str) -> tuple[int, ...]:
    """The shape of the elements of an array that has none."""
    if dims is None or None in dims:
        raise UnimplementedError(
            None,
            None,
            "TensorArray has size zero, but the shape of its elements is not fully defined: "
            f"{format_dims(dims)}. Give it as the TensorArray's {argument}",
        )
    return tuple([d for d in dims if d is not None])


def _require_alike(shapes: list[tuple[int, ...]], first: int) -> None:
    """An error unless the shapes agree from axis ``first`` on."""
    if len(shapes[0]) < first:
        raise _invalid("Concat saw a scalar shape at index 0 but requires at least vectors.")
    for index, shape in enumerate(shapes):
        if len(shape) != len(shapes[0]) or shape[first:] != shapes[0][first:]:
            raise _invalid(
                f"TensorArray has inconsistent shapes. Index 0 has shape: "
                f"{format_dims(shapes[0])} but index {index} has shape: {format_dims(shape)}"
            )


@scatter_op.kernel
def _(xp, array, indices, value, flow):
    if len(indices) != len(value):
        raise _invalid(
            f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {len(value)}"
        )
    if np.array_equal(indices, np.arange(len(indices))) and _open(array).fill(value):
        return FLOW
    for index, row in zip(indices, value, strict=True):
        _open(array).write(int(index), row)
    return FLOW


@concat_op.kernel
def _(xp, array, flow, *, dtype, element_shape_except0):
    values = [array.read(index) for index in range(len(_open(array).values))]
    if not values:
        rest = array.dims[1:] if array.dims else None
        dims = _defined(merge_dims(rest, element_shape_except0._dims), "element_shape")
        return np.zeros((0, *dims), dtype.np_dtype), np.zeros([0], np.int64)
    _require_alike([np.shape(value) for value in values], 1)
    lengths = np.array([len(value) for value in values], np.int64)
    return np.concatenate(values), lengths


@split_op.kernel
def _(xp, array, value, lengths, flow):
    if lengths.sum() != len(value):
        raise _invalid(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{lengths.sum()} and value's shape is {value.shape}"
        )
    if len(lengths) != len(_open(array).values) and not array.dynamic:
        raise _invalid(
            "TensorArray's size is not equal to the size of lengths "
            f"({len(array.values)} vs. {len(lengths)}), and it is not dynamically resizeable"
        )
    start = 0
    for index, length in enumerate(lengths):
        array.write(index, value[start : start + length])
        start += length
    return FLOW


@grad_op.kernel
def _(xp, array, flow, *, source):
    return _open(array).gradient(source), FLOW


@grad_with_shape_op.kernel
def _(xp, array, flow, shape_to_prepend, *, source):
    return _open(array).gradient(source, tuple(int(d) for d in shape_to_prepend)), FLOW


@close_op.kernel
def _(xp, array):
    array.values.clear()
    array.shapes.clear()
    array.closed = True
    return ()
