"""``tf.TensorArray``: an array of tensors that loops write to and read from."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype, int64
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import Dims, TensorShape, as_dims, format_dims, merge_dims
from runnel.ops import tensor_array_ops as ops
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.ranges import range as range_of


class TensorArray:
    """An array of tensors, each written once; gradients flow through it.

    ``write`` and ``unstack`` return the array that later operations must use: its *flow* orders
    them after the write. As a loop variable it goes around a ``tf.while_loop``.

    Example:
        >>> array = tf.TensorArray(tf.float32, size=3)
        >>> _, array = tf.while_loop(
        ...     lambda i, _: i < 3,
        ...     lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) ** 2)), [0, array])
        >>> tf.Session().run(array.stack())
        array([0., 1., 4.], dtype=float32)
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None and tensor_array_name:
            raise ValueError("Cannot construct with both handle and tensor_array_name")
        if handle is not None and not isinstance(handle, Tensor):
            raise TypeError("Handle must be a Tensor")
        if handle is None and size is None:
            raise ValueError("Size must be provided if handle is not provided")
        if handle is not None and size is not None:
            raise ValueError("Cannot provide both a handle and size at the same time")
        if handle is not None and element_shape is not None:
            raise ValueError("Cannot provide both a handle and element_shape at the same time")
        self._dtype = as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        # Shared by the arrays that differ in their flow alone: what one write says holds for all.
        self._element: list[Dims] = [as_dims(element_shape)]
        self._infer_shape = infer_shape or self._element[0] is not None
        self._size = None if self._dynamic_size else size
        """The size, where no write can change it."""
        self._first_written: list[Tensor] | None = [] if colocate_with_first_write_call else None
        if handle is not None:
            self._handle = handle
            assert flow is not None
            self._flow = flow
            return
        graph = get_default_graph()
        place = graph.colocate_with(None, True) if colocate_with_first_write_call else nullcontext()
        with name_scope(name, "TensorArray", [size]) as scope, place:
            self._handle, self._flow = ops.array_op(
                convert_to_tensor(size, dtype="int32", name="size"),
                dtype=self._dtype,
                element_shape=TensorShape(self._element[0]),
                dynamic_size=self._dynamic_size,
                clear_after_read=True if clear_after_read is None else clear_after_read,
                identical_element_shapes=infer_shape,
                tensor_array_name=tensor_array_name or "",
                name=scope,
            )

    # What it is -----------------------------------------------------------------------------

    @property
    def flow(self) -> Tensor:
        """The tensor that later operations wait for."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        return self._handle

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of every element."""
        return TensorShape(self._element[0])

    def _flow_of_tensor_array(self) -> Tensor:
        return self._flow

    def _with_flow(self, flow: Tensor) -> TensorArray:
        array = TensorArray.__new__(TensorArray)
        array.__dict__.update(self.__dict__)
        array._flow = flow
        return array

    def _know_element(self, dims: Dims) -> None:
        if not self._infer_shape:
            return
        try:
            self._element[0] = merge_dims(self._element[0], dims)
        except ValueError:
            raise ValueError(
                f"Inconsistent shapes: saw {format_dims(dims)} but expected "
                f"{format_dims(self._element[0])} (and infer_shape=True)"
            ) from None

    def identity(self) -> TensorArray:
        """The same array, with a flow of its own."""
        return self._with_flow(identity(self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of the gradients that ``source`` computes."""
        flow = self._flow if flow is None else flow
        here = get_default_graph().colocate_with(self._handle)
        with name_scope(name, "TensorArrayGrad", [self._handle]), here:
            handle, _ = ops.grad_op(self._handle, flow, source=source, name="TensorArrayGradV3")
            with get_default_graph().control_dependencies([handle]):
                flow = identity(flow, name="gradient_flow")
        array = self._with_flow(flow)
        array._handle = handle
        array._first_written = None
        return array

    def _near(self, value: Tensor) -> AbstractContextManager[Any]:
        """A block whose operations are placed with the first value that is written."""
        if self._first_written is None:
            return nullcontext()
        if not self._first_written:
            self._first_written.append(value)
        return get_default_graph().colocate_with(self._first_written[0])

    # Elements -------------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at ``index``; it is gone afterwards, unless ``clear_after_read=False``."""
        value = ops.read_op(
            self._handle, index, self._flow, dtype=self._dtype, name=name or "TensorArrayReadV3"
        )
        if self._element[0] is not None:
            value.set_shape(self._element[0])
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value`` at ``index``."""
        with name_scope(name, "TensorArrayWrite", [self._handle]):
            tensor = self._as_value(value)
            self._know_element(tensor.dims)
            with self._near(tensor):
                flow = ops.write_op(
                    self._handle, index, tensor, self._flow, name="TensorArrayWriteV3"
                )
        return self._with_flow(flow)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked along a new first axis."""
        here = get_default_graph().colocate_with(self._handle)
        with here, name_scope(name, "TensorArrayStack", [self._handle]):
            return self.gather(range_of(0, self.size()))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at ``indices``, stacked."""
        value = ops.gather_op(
            self._handle,
            indices,
            self._flow,
            dtype=self._dtype,
            element_shape=TensorShape(self._element[0]),
            name=name or "TensorArrayGatherV3",
        )
        if self._element[0] is not None:
            value.set_shape((None, *self._element[0]))
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first axis."""
        rest = self._element[0]
        value, _ = ops.concat_op(
            self._handle,
            self._flow,
            dtype=self._dtype,
            element_shape_except0=TensorShape(None if not rest else rest[1:]),
            name=name or "TensorArrayConcatV3",
        )
        count = None if self._size is None else constant_value(convert_to_tensor(self._size))
        if rest and rest[0] is not None and count is not None:
            value.set_shape((int(count) * rest[0], *rest[1:]))
        return value

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the slices of ``value`` along its first axis."""
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            tensor = self._as_value(value)
            return self.scatter(range_of(0, shape_of(tensor)[0]), tensor)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value[k]`` at ``indices[k]``."""
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            tensor = self._as_value(value)
            if tensor.dims is not None:
                self._know_element(tensor.dims[1:])
            with self._near(tensor):
                flow = ops.scatter_op(
                    self._handle, indices, tensor, self._flow, name="TensorArrayScatterV3"
                )
        return self._with_flow(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with consecutive pieces of ``value``, of the given lengths."""
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            tensor = self._as_value(value)
            pieces = cast(lengths, int64)
            if tensor.dims is not None:
                self._know_element(_dims_of_pieces(tensor, pieces))
            with self._near(tensor):
                flow = ops.split_op(
                    self._handle, tensor, pieces, self._flow, name="TensorArraySplitV3"
                )
        return self._with_flow(flow)

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        if self._size is not None:
            return convert_to_tensor(self._size, dtype="int32")
        return ops.size_op(self._handle, self._flow, name=name or "TensorArraySizeV3")

    def close(self, name: str | None = None) -> Operation:
        """An operation that gives the elements up before the step ends."""
        return ops.close_op(self._handle, name=name)

    def _as_value(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        if tensor.dtype.base_dtype is not self._dtype:
            raise TypeError(
                f"This TensorArray holds {self._dtype.name}, but {tensor.name} is "
                f"{tensor.dtype.name}; tf.cast converts it"
            )
        return tensor


def _dims_of_pieces(value: Tensor, lengths: Tensor) -> Dims:
    """What is known of the shape of every piece: its length where all are equally long."""
    known = constant_value(lengths)
    equal = known is not None and known.ndim == 1 and known.size and (known == known[0]).all()
    return (int(known[0]) if known is not None and equal else None, *(value.dims or ())[1:])
