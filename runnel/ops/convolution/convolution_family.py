"""What convolutions of every kind have in common: three operations, each other's gradients.

A convolution is linear in its input and in its filter. So are its two gradients, whose own
gradients are again a convolution and the other of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims
from runnel.ops.array_shape import at_run_time, shape, shape_n
from runnel.ops.convolution.window_dims import convolution_dims, merge_gradient, with_rank


class Convolution(NamedTuple):
    """Three operations that are each other's gradients."""

    forward: OpDef
    input_gradient: OpDef
    filter_gradient: OpDef
    attributes: tuple[str, ...]
    """Those that the three share, apart from types."""
    depthwise: bool = False

    def forward_dims(self, x: Tensor, filter: Tensor, **attributes: Any) -> Dims:
        """The static shape of the result."""
        return convolution_dims(x.dims, filter.dims, depthwise=self.depthwise, **attributes)

    def input_gradient_dims(
        self, input_sizes: Tensor, filter: Tensor, out_backprop: Tensor, **attributes: Any
    ) -> Dims:
        """The static shape of the gradient of the input."""
        sizes = constant_value_as_dims(input_sizes)
        sizes = with_rank("the input (input_sizes)", sizes, len(attributes["data_format"]))
        y = convolution_dims(sizes, filter.dims, depthwise=self.depthwise, **attributes)
        known = merge_gradient(out_backprop.dims, y)
        assert known is not None
        return (known[0], *sizes[1:])

    def filter_gradient_dims(
        self, x: Tensor, filter_sizes: Tensor, out_backprop: Tensor, **attributes: Any
    ) -> Dims:
        """The static shape of the gradient of the filter."""
        sizes = constant_value_as_dims(filter_sizes)
        sizes = with_rank("the filter (filter_sizes)", sizes, len(attributes["data_format"]))
        y = convolution_dims(x.dims, sizes, depthwise=self.depthwise, **attributes)
        merge_gradient(out_backprop.dims, y)
        return sizes

    def settings(self, op: Operation) -> dict[str, Any]:
        """The attributes of ``op`` that its gradients take over."""
        return {name: op.attrs[name] for name in self.attributes}


def define_convolution(
    names: Sequence[str],
    forward_attrs: list[str],
    input_attrs: list[str],
    filter_attrs: list[str],
    sizes_type: str = "int32",
    **how: Any,
) -> Convolution:
    """Registers the three operations of a convolution; their kernels and so on come after."""
    forward = register_op(
        names[0],
        inputs="input: T, filter: T",
        outputs="output: T",
        attrs=forward_attrs,
        heavy=True,
    )
    input_gradient = register_op(
        names[1],
        inputs=f"input_sizes: {sizes_type}, filter: T, out_backprop: T",
        outputs="output: T",
        attrs=input_attrs,
        static_inputs=("input_sizes",),
        heavy=True,
    )
    filter_gradient = register_op(
        names[2],
        inputs="input: T, filter_sizes: int32, out_backprop: T",
        outputs="output: T",
        attrs=filter_attrs,
        static_inputs=("filter_sizes",),
        heavy=True,
    )
    shared = tuple(name for name in forward.attributes if name != "T")
    family = Convolution(forward, input_gradient, filter_gradient, shared, **how)

    @forward.gradient
    def _(op, grad):
        x, filter = op.inputs
        x_shape, filter_shape = shape_n([x, filter])
        settings = family.settings(op)
        return [
            input_gradient(x_shape, filter, grad, **settings),
            filter_gradient(x, filter_shape, grad, **settings),
        ]

    @input_gradient.gradient
    def _(op, grad):
        _, filter, out_backprop = op.inputs
        settings = family.settings(op)
        return [
            None,
            filter_gradient(grad, shape(filter), out_backprop, **settings),
            forward(grad, filter, **settings),
        ]

    @filter_gradient.gradient
    def _(op, grad):
        x, _, out_backprop = op.inputs
        settings = family.settings(op)
        return [
            input_gradient(shape(x), grad, out_backprop, **settings),
            None,
            forward(x, grad, **settings),
        ]

    return family


def compute_2d(
    op_def: OpDef, static_shape: Callable[..., Dims], lowering: Callable[..., Any]
) -> None:
    """Registers the shape function and the kernel of an operation over images."""

    @op_def.shape
    def _(*inputs, strides, padding, explicit_paddings, data_format, dilations):
        return static_shape(
            *inputs,
            strides=strides,
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
            dilations=dilations,
        )

    @op_def.kernel
    def _(xp, *inputs, strides, padding, explicit_paddings, data_format, dilations, platform):
        attributes = {
            "strides": strides,
            "padding": padding,
            "explicit_paddings": explicit_paddings,
            "data_format": data_format,
            "dilations": dilations,
        }
        return at_run_time(partial(lowering, xp, *inputs, platform=platform, **attributes))


def compute_3d(
    op_def: OpDef, static_shape: Callable[..., Dims], lowering: Callable[..., Any]
) -> None:
    """Registers the shape function and the kernel of an operation over volumes."""

    @op_def.shape
    def _(*inputs, strides, padding, data_format, dilations):
        attributes = {"strides": strides, "padding": padding, "data_format": data_format}
        return static_shape(*inputs, **attributes, dilations=dilations)

    @op_def.kernel
    def _(xp, *inputs, strides, padding, data_format, dilations, platform):
        attributes = {"strides": strides, "padding": padding, "data_format": data_format}
        return at_run_time(
            partial(lowering, xp, *inputs, platform=platform, dilations=dilations, **attributes)
        )
