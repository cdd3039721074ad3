"""Gradients of TensorArrays: each call of ``tf.gradients`` sums them in arrays of its own."""

from __future__ import annotations

from typing import Any

from runnel.autodiff.differentiation import array_gradients_of
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.operation import Operation, Tensor
from runnel.ops import tensor_array_ops as ops


def _gradients_of(op: Operation, dtype: Any, flow: Tensor) -> TensorArray:
    """The array in which this call of ``tf.gradients`` sums the gradients of ``op``'s array."""
    array = TensorArray(dtype, handle=op.inputs[0], flow=flow, infer_shape=False)
    return array.grad(source=array_gradients_of(op.graph), flow=flow)


@ops.read_op.gradient
def _(op: Operation, grad: Tensor) -> Any:
    _, index, flow = op.inputs
    gradients = _gradients_of(op, op.attrs["dtype"], flow)
    return [None, None, gradients.write(index, grad).flow]


@ops.write_op.gradient
def _(op: Operation, flow: Tensor) -> Any:
    _, index, value, _ = op.inputs
    found = _gradients_of(op, op.attrs["T"], flow).read(index)
    found.set_shape(value.dims)
    return [None, None, found, flow]


@ops.gather_op.gradient
def _(op: Operation, grad: Tensor) -> Any:
    _, indices, flow = op.inputs
    gradients = _gradients_of(op, op.attrs["dtype"], flow)
    return [None, None, gradients.scatter(indices, grad).flow]


@ops.scatter_op.gradient
def _(op: Operation, flow: Tensor) -> Any:
    _, indices, value, _ = op.inputs
    found = _gradients_of(op, op.attrs["T"], flow).gather(indices)
    found.set_shape(value.dims)
    return [None, None, found, flow]


@ops.concat_op.gradient
def _(op: Operation, grad: Tensor, _: Any) -> Any:
    flow = op.inputs[1]
    gradients = _gradients_of(op, op.attrs["dtype"], flow)
    return [None, gradients.split(grad, lengths=op.outputs[1]).flow]


@ops.split_op.gradient
def _(op: Operation, flow: Tensor) -> Any:
    value = op.inputs[1]
    found = _gradients_of(op, op.attrs["T"], flow).concat()
    found.set_shape(value.dims)
    return [None, found, None, flow]
