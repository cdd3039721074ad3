"""Max- and average-pooling of images and volumes, with gradients to any order.

The arithmetic is in `runnel.ops.convolution.pool_lowering`; the functions that users call are in
`runnel.ops.convolution.pool_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, merge_dims
from runnel.ops.array_shape import at_run_time, shape
from runnel.ops.constants import constant
from runnel.ops.convolution import pool_lowering
from runnel.ops.convolution.window_dims import merge_gradient, pooling_dims, with_rank
from runnel.ops.fill import zeros_like
from runnel.ops.padding import pad

_WINDOW_2D = ["ksize: list(int) >= 4", "strides: list(int) >= 4"]
_WINDOW_3D = ["ksize: list(int) >= 5", "strides: list(int) >= 5"]
_PADDING = "padding: {'SAME', 'VALID'}"
_EXPLICIT = ["padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []"]
_LAYOUT_2D = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_LAYOUT_3D = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
# TensorFlow's third layout is for 8-bit types on some accelerators.
_LAYOUT_MAX = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_MAX_TYPES = "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16}"
_FLOATS = "T: {half, bfloat16, float, double}"
_SHORT_FLOATS = "{half, bfloat16, float}"
_REAL = "T: realnumbertype = DT_FLOAT"
_ANY_REAL = "T: realnumbertype"

_BACKWARD = "orig_input: T, orig_output: T, grad: T"


# Max-pooling ------------------------------------------------------------------------------------

max_pool_op = register_op(
    "MaxPool",
    inputs="input: T",
    outputs="output: T",
    attrs=[f"T: {_MAX_TYPES} = DT_FLOAT", *_WINDOW_2D, *_EXPLICIT, _LAYOUT_MAX],
)
max_pool_grad_op = register_op(
    "MaxPoolGrad",
    inputs=_BACKWARD,
    outputs="output: T",
    attrs=[*_WINDOW_2D, *_EXPLICIT, _LAYOUT_2D, _REAL],
)
max_pool_grad_grad_op = register_op(
    "MaxPoolGradGrad",
    inputs=_BACKWARD,
    outputs="output: T",
    attrs=[*_WINDOW_2D, _PADDING, _LAYOUT_2D, _ANY_REAL],
)
max_pool3d_op = register_op(
    "MaxPool3D",
    inputs="input: T",
    outputs="output: T",
    attrs=[*_WINDOW_3D, _PADDING, _LAYOUT_3D, f"T: {_SHORT_FLOATS}"],
)
max_pool3d_grad_op = register_op(
    "MaxPool3DGrad",
    inputs="orig_input: TInput, orig_output: TInput, grad: T",
    outputs="output: T",
    attrs=[
        *_WINDOW_3D,
        _PADDING,
        _LAYOUT_3D,
        f"T: {_SHORT_FLOATS} = DT_FLOAT",
        f"TInput: {_SHORT_FLOATS} = DT_FLOAT",
    ],
)
max_pool3d_grad_grad_op = register_op(
    "MaxPool3DGradGrad",
    inputs=_BACKWARD,
    outputs="output: T",
    attrs=[*_WINDOW_3D, _PADDING, _LAYOUT_3D, _ANY_REAL],
)


def _forward_dims(x: Tensor, **window: Any) -> Dims:
    return pooling_dims(x.dims, **window)


def _max_grad_dims(x: Tensor, y: Tensor, grad: Tensor, **window: Any) -> Dims:
    pooled = merge_gradient(grad.dims, pooling_dims(x.dims, **window))
    known = merge_dims(pooled, y.dims)
    assert known is not None
    batch, channel = 0, window["data_format"].index("C")
    dims = list(with_rank("the input", x.dims, len(window["data_format"])))
    for axis in (batch, channel):
        dims[axis] = known[axis] if dims[axis] is None else dims[axis]
    return tuple(dims)


def _max_grad_grad_dims(x: Tensor, y: Tensor, grad: Tensor, **window: Any) -> Dims:
    return merge_dims(pooling_dims(merge_dims(x.dims, grad.dims), **window), y.dims)


def _compute(
    op_def: OpDef, static_shape: Callable[..., Dims], lowering: Callable[..., Any]
) -> None:
    """Registers the shape function and the kernel of a pooling operation."""

    @op_def.shape
    def _(*inputs, ksize, strides, padding, data_format):
        window = {"ksize": ksize, "strides": strides, "padding": padding}
        return static_shape(*inputs, **window, data_format=data_format)

    @op_def.kernel
    def _(xp, *inputs, ksize, strides, padding, data_format, platform):
        window = {"ksize": ksize, "strides": strides, "padding": padding}
        return at_run_time(
            partial(lowering, xp, *inputs, platform=platform, data_format=data_format, **window)
        )


def _compute_explicit(
    op_def: OpDef, static_shape: Callable[..., Dims], lowering: Callable[..., Any]
) -> None:
    """The same for those that take explicit paddings."""

    @op_def.shape
    def _(*inputs, ksize, strides, padding, explicit_paddings, data_format):
        if data_format == "NCHW_VECT_C":
            raise ValueError("The format NCHW_VECT_C is for quantized kernels, of which none exist")
        window = {"ksize": ksize, "strides": strides, "padding": padding}
        return static_shape(
            *inputs, **window, explicit_paddings=explicit_paddings, data_format=data_format
        )

    @op_def.kernel
    def _(xp, *inputs, ksize, strides, padding, explicit_paddings, data_format, platform):
        window = {"ksize": ksize, "strides": strides, "padding": padding}
        window |= {"explicit_paddings": explicit_paddings, "data_format": data_format}
        return at_run_time(partial(lowering, xp, *inputs, platform=platform, **window))


_compute_explicit(max_pool_op, _forward_dims, pool_lowering.max_pool)
_compute_explicit(max_pool_grad_op, _max_grad_dims, pool_lowering.max_pool_grad)
_compute(max_pool_grad_grad_op, _max_grad_grad_dims, pool_lowering.max_pool_grad_grad)
_compute(max_pool3d_op, _forward_dims, pool_lowering.max_pool)
_compute(max_pool3d_grad_op, _max_grad_dims, pool_lowering.max_pool_grad)
_compute(max_pool3d_grad_grad_op, _max_grad_grad_dims, pool_lowering.max_pool_grad_grad)


def _settings(op: Operation) -> dict[str, Any]:
    """The attributes of ``op`` that its gradients take over."""
    shared = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    return {name: op.attrs[name] for name in shared if name in op.attrs}


@max_pool_op.gradient
def _(op, grad):
    return max_pool_grad_op(op.inputs[0], op.outputs[0], grad, **_settings(op))


@max_pool3d_op.gradient
def _(op, grad):
    return max_pool3d_grad_op(op.inputs[0], op.outputs[0], grad, **_settings(op))


# Which element is the largest does not change with small changes of the input: the gradients of the
# gradients with respect to it are zero. They are linear in the third input.


@max_pool_grad_op.gradient
def _(op, grad):
    x, y, _ = op.inputs
    settings = _settings(op)
    amounts = settings.pop("explicit_paddings")
    if settings["padding"] == "EXPLICIT":
        # The second gradient's operation takes none: pad beforehand.
        pairs = np.array(amounts, np.int32).reshape(-1, 2)
        dtype = x.dtype.base_dtype
        lowest = float("-inf") if dtype.is_floating else dtype.min
        inner = pad(x, pairs, constant_values=constant(lowest, dtype))
        settings["padding"] = "VALID"
        again = max_pool_grad_grad_op(inner, y, pad(grad, pairs), **settings)
    else:
        again = max_pool_grad_grad_op(x, y, grad, **settings)
    return [zeros_like(x), None, again]


@max_pool_grad_grad_op.gradient
def _(op, grad):
    x, y, _ = op.inputs
    return [zeros_like(x), None, max_pool_grad_op(x, y, grad, **_settings(op))]


@max_pool3d_grad_op.gradient
def _(op, grad):
    x, y, _ = op.inputs
    return [zeros_like(x), None, max_pool3d_grad_grad_op(x, y, grad, **_settings(op))]


@max_pool3d_grad_grad_op.gradient
def _(op, grad):
    x, y, _ = op.inputs
    return [zeros_like(x), None, max_pool3d_grad_op(x, y, grad, **_settings(op))]


# Max-pooling whose window comes as tensors ------------------------------------------------------

_BY_TENSOR = "ksize: int32, strides: int32"
max_pool_v2_op = register_op(
    "MaxPoolV2",
    inputs=f"input: T, {_BY_TENSOR}",
    outputs="output: T",
    attrs=[f"T: {_MAX_TYPES} = DT_FLOAT", _PADDING, _LAYOUT_MAX],
    static_inputs=("ksize", "strides"),
)
max_pool_grad_v2_op = register_op(
    "MaxPoolGradV2",
    inputs=f"{_BACKWARD}, {_BY_TENSOR}",
    outputs="output: T",
    attrs=[_PADDING, _LAYOUT_2D, _REAL],
    static_inputs=("ksize", "strides"),
)
max_pool_grad_grad_v2_op = register_op(
    "MaxPoolGradGradV2",
    inputs=f"{_BACKWARD}, {_BY_TENSOR}",
    outputs="output: T",
    attrs=[_PADDING, _LAYOUT_2D, _ANY_REAL],
    static_inputs=("ksize", "strides"),
)


def _compute_by_tensor(
    op_def: OpDef,
    static_shape: Callable[..., Dims],
    unknown: Callable[..., Dims],
    lowering: Callable[..., Any],
) -> None:
    @op_def.shape
    def _(*inputs, padding, data_format):
        *operands, ksize, strides = inputs
        window = {"ksize": constant_value(ksize), "strides": constant_value(strides)}
        if any(value is None for value in window.values()):
            return unknown(*operands)
        known = {name: value.tolist() for name, value in window.items() if value is not None}
        return static_shape(*operands, **known, padding=padding, data_format=data_format)

    @op_def.kernel
    def _(xp, *inputs, padding, data_format, platform):
        *operands, ksize, strides = inputs
        window = {"ksize": ksize.tolist(), "strides": strides.tolist(), "padding": padding}
        return at_run_time(
            partial(lowering, xp, *operands, platform=platform, data_format=data_format, **window)
        )


_compute_by_tensor(max_pool_v2_op, _forward_dims, lambda x: (None,) * 4, pool_lowering.max_pool)
_compute_by_tensor(
    max_pool_grad_v2_op, _max_grad_dims, lambda x, y, grad: x.dims, pool_lowering.max_pool_grad
)
_compute_by_tensor(
    max_pool_grad_grad_v2_op,
    _max_grad_grad_dims,
    lambda x, y, grad: y.dims,
    pool_lowering.max_pool_grad_grad,
)


@max_pool_v2_op.gradient
def _(op, grad):
    x, ksize, strides = op.inputs
    gradient = max_pool_grad_v2_op(x, op.outputs[0], grad, ksize, strides, **_settings(op))
    return [gradient, None, None]


@max_pool_grad_v2_op.gradient
def _(op, grad):
    x, y, _, ksize, strides = op.inputs
    again = max_pool_grad_grad_v2_op(x, y, grad, ksize, strides, **_settings(op))
    return [zeros_like(x), None, again, None, None]


@max_pool_grad_grad_v2_op.gradient
def _(op, grad):
    x, y, _, ksize, strides = op.inputs
    again = max_pool_grad_v2_op(x, y, grad, ksize, strides, **_settings(op))
    return [zeros_like(x), None, again, None, None]


# Average-pooling --------------------------------------------------------------------------------


def _define_average(rank: str, value: str, window: list[str], layout: str) -> tuple[OpDef, OpDef]:
    forward = register_op(
        f"AvgPool{rank}",
        inputs=f"{value}: T",
        outputs="output: T",
        attrs=[*window, _PADDING, layout, _FLOATS],
    )
    backward = register_op(
        f"AvgPool{rank}Grad",
        inputs="orig_input_shape: int32, grad: T",
        outputs="output: T",
        attrs=[*window, _PADDING, layout, _FLOATS],
        static_inputs=("orig_input_shape",),
    )
    _compute(forward, _forward_dims, pool_lowering.avg_pool)
    _compute(backward, _average_grad_dims, pool_lowering.avg_pool_grad)

    @forward.gradient
    def _(op, grad):
        return backward(shape(op.inputs[0]), grad, **_settings(op))

    @backward.gradient
    def _(op, grad):
        return [None, forward(grad, **_settings(op))]

    return forward, backward


def _average_grad_dims(orig_input_shape: Tensor, grad: Tensor, **window: Any) -> Dims:
    sizes = constant_value_as_dims(orig_input_shape)
    sizes = with_rank("the input (orig_input_shape)", sizes, len(window["data_format"]))
    known = merge_gradient(grad.dims, pooling_dims(sizes, **window))
    assert known is not None
    return (known[0], *sizes[1:])


avg_pool_op, avg_pool_grad_op = _define_average("", "value", _WINDOW_2D, _LAYOUT_2D)
avg_pool3d_op, avg_pool3d_grad_op = _define_average("3D", "input", _WINDOW_3D, _LAYOUT_3D)
