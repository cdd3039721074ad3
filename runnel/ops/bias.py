"""Adding a bias to the channels of a tensor, and the affine layers made of it."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.activations import relu
from runnel.ops.fill import zeros_like
from runnel.ops.half_precision import narrow, widen
from runnel.ops.matmul import matmul

_LAYOUT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"

bias_add_op = register_op(
    "BiasAdd", inputs="value: T, bias: T", outputs="output: T", attrs=["T: numbertype", _LAYOUT]
)
bias_add_v1_op = register_op(
    "BiasAddV1", inputs="value: T, bias: T", outputs="output: T", attrs="T: numbertype"
)
bias_add_grad_op = register_op(
    "BiasAddGrad", inputs="out_backprop: T", outputs="output: T", attrs=["T: numbertype", _LAYOUT]
)


def _channel_axis(rank: int, data_format: str) -> int:
    least = 3 if data_format == "NCHW" else 2
    if rank < least:
        raise ValueError(
            f"A value in the layout {data_format} has at least rank {least}, not {rank},"
        )
    return 1 if data_format == "NCHW" else rank - 1


def _biased_dims(value: Tensor, bias: Tensor, data_format: str) -> Dims:
    if bias.dims is not None and len(bias.dims) != 1:
        raise ValueError(f"bias must be a vector, not of shape {format_dims(bias.dims)},")
    if value.dims is None:
        return None
    axis = _channel_axis(len(value.dims), data_format)
    channels = value.dims[axis]
    if bias.dims is None or bias.dims[0] is None:
        return value.dims
    if channels is not None and channels != bias.dims[0]:
        raise ValueError(
            f"value has {channels} channels (dimension {axis} in the layout {data_format}), but "
            f"bias has {bias.dims[0]} elements"
        )
    return (*value.dims[:axis], bias.dims[0], *value.dims[axis + 1 :])


@bias_add_op.shape
def _(value, bias, *, data_format):
    return _biased_dims(value, bias, data_format)


@bias_add_v1_op.shape
def _(value, bias):
    return _biased_dims(value, bias, "NHWC")


@bias_add_grad_op.shape
def _(grad, *, data_format):
    if grad.dims is None:
        return (None,)
    return (grad.dims[_channel_axis(len(grad.dims), data_format)],)


def _add_bias(value: Any, bias: Any, data_format: str) -> Any:
    if data_format == "NHWC" and value.ndim > 1 and bias.shape == value.shape[-1:]:
        return value + bias
    axis = _channel_axis(value.ndim, data_format)
    if bias.ndim != 1 or bias.shape[0] != value.shape[axis]:
        raise InvalidArgumentError(
            None,
            None,
            f"bias must have one element for each of the {value.shape[axis]} channels (dimension "
            f"{axis} of {value.shape}), but its shape is {bias.shape}",
        )
    if axis != value.ndim - 1:
        bias = bias.reshape((-1, *[1] * (value.ndim - axis - 1)))
    return value + bias


@bias_add_op.kernel
def _(xp, value, bias, *, data_format):
    return _add_bias(value, bias, data_format)


@bias_add_v1_op.kernel
def _(xp, value, bias):
    return _add_bias(value, bias, "NHWC")


@bias_add_grad_op.kernel
def _(xp, grad, *, data_format):
    channel = _channel_axis(grad.ndim, data_format)
    others = tuple(i for i in range(grad.ndim) if i != channel)
    return narrow(xp.sum(widen(grad), axis=others), grad.dtype)


@bias_add_op.gradient
def _(op, grad):
    return [grad, bias_add_grad_op(grad, data_format=op.attrs["data_format"])]


@bias_add_v1_op.gradient
def _(op, grad):
    return [grad, bias_add_grad_op(grad)]


@bias_add_grad_op.gradient
def _(op, grad):
    # The transpose of a sum over all positions is the same value at all positions.
    zeros = zeros_like(op.inputs[0])
    return bias_add_op(zeros, grad, data_format=op.attrs["data_format"])


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``value`` plus the vector ``bias``, one element for each channel.

    Channels are the last dimension ("N...C", the default) or the second ("NC...").

    Example:
        >>> tf.Session().run(tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]))
        array([[11., 22.]], dtype=float32)
    """
    if data_format is None or data_format.startswith("N") and data_format.endswith("C"):
        layout = "NHWC"
    elif data_format.startswith("NC"):
        layout = "NCHW"
    else:
        raise ValueError(f"data_format must be of the form N...C or NC..., not {data_format!r}")
    value = convert_to_tensor(value, name="input")
    bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
    return bias_add_op(value, bias, data_format=layout, name=name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``matmul(x, weights) + biases``."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``relu(matmul(x, weights) + biases)``."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(matmul(x, weights), biases), name=scope)
