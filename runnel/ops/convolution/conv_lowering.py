"""Convolutions and their gradients over an array namespace, with TensorFlow's meaning.

`conv` and its two backprops serve ``Conv2D`` and ``Conv3D``, the ``depthwise`` ones
``DepthwiseConv2dNative``. Attributes are the ops': ``strides``, ``dilations`` and
``explicit_paddings`` have a value (a pair of values) for every axis of ``data_format``. The number
of groups is the number of times the filter's input channels go into the input's.

Under NumPy everything is matrix products over columns. Under ``jax.numpy`` a ``platform`` other
than ``"cpu"`` gets XLA's own convolutions, in the data format given, and columns for integers; on a
CPU oneDNN computes them where it is installed (`runnel.ops.convolution.onednn_convolution`) and
otherwise `runnel.ops.convolution.conv_formulations` chooses, unless ``formulation`` names one.

float16 and bfloat16 are computed in float32 and rounded once, which is also what XLA does on
accelerators.

    >>> import numpy as np
    >>> x = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> conv(np, x, np.ones((2, 2, 1, 1)), strides=[1, 1, 1, 1], padding="VALID")[0, :, :, 0]
    array([[ 8., 12.],
           [20., 24.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from runnel.graph.shapes import format_dims
from runnel.ops.convolution import conv_formulations as formulations
from runnel.ops.convolution import conv_phases, onednn_convolution
from runnel.ops.convolution.sliding_window import (
    Array,
    Namespace,
    SlidingWindow,
    channels_last,
    channels_last_shape,
    from_channels_last,
    spatial_axes,
    to_channels_last,
    widen,
)

_SHAPES_KEPT = 1024
"""An interpreted step of small images would take longer to look at shapes than to convolve."""


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """Everything about a convolution that follows from its attributes and its operands' shapes."""

    window: SlidingWindow
    data_format: str
    batch: int
    channels: int
    filters: int
    groups: int

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the convolution's result, in the data format."""
        return self._arrange(self.batch, self.window.output_sizes, self.filters)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the convolution's input, in the data format."""
        return self._arrange(self.batch, self.window.input_sizes, self.channels)

    @property
    def is_empty(self) -> bool:
        """Whether an operand or the result has no elements, so that every sum is empty."""
        return 0 in self.output_shape or 0 in self.input_shape or 0 in self.window.window

    def _arrange(self, batch: int, sizes: tuple[int, ...], channels: int) -> tuple[int, ...]:
        if self.data_format[-1] == "C":
            return (batch, *sizes, channels)
        return (batch, channels, *sizes)


def convolution_shape(
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    *,
    strides: Sequence[int],
    padding: str | bytes,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
    data_format: str | bytes | None = None,
    depthwise: bool = False,
) -> ConvolutionShape:
    """Check the operands' shapes against each other and against the attributes.

    >>> shape = convolution_shape(
    ...     (8, 28, 28, 4), (5, 5, 2, 6), strides=[1, 2, 2, 1], padding="SAME"
    ... )
    >>> shape.output_shape, shape.groups
    ((8, 14, 14, 6), 2)
    """
    return _checked_shape(
        tuple(map(int, input_shape)),
        tuple(map(int, filter_shape)),
        tuple(strides),
        padding,
        tuple(explicit_paddings),
        None if dilations is None else tuple(dilations),
        data_format,
        depthwise,
    )


@lru_cache(_SHAPES_KEPT)
def _checked_shape(
    input_shape: tuple[int, ...],
    filter_shape: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str | bytes,
    explicit_paddings: tuple[int, ...],
    dilations: tuple[int, ...] | None,
    data_format: str | bytes | None,
    depthwise: bool,
) -> ConvolutionShape:
    rank = len(input_shape)
    data_format = data_format.decode() if isinstance(data_format, bytes) else data_format
    data_format = data_format or channels_last(rank)
    spatial = len(spatial_axes(data_format))
    if rank != spatial + 2 or len(filter_shape) != spatial + 2:
        raise ValueError(
            f"data format {data_format} needs an input and a filter with {spatial + 2} axes, "
            f"but got shapes {list(input_shape)} and {list(filter_shape)}"
        )
    batch, *_, channels = channels_last_shape(input_shape, data_format)
    *sizes, filter_inputs, _ = filter_shape
    window = SlidingWindow.from_attributes(
        input_shape, sizes, strides, padding, data_format, explicit_paddings, dilations
    )
    filters = output_channels(channels, filter_shape, depthwise)
    assert filters is not None
    if depthwise:
        groups = channels
    else:
        groups = channels // filter_inputs if filter_inputs else 1
    return ConvolutionShape(window, data_format, batch, channels, filters, groups)


def output_channels(
    channels: int | None, filter_shape: Sequence[int | None], depthwise: bool = False
) -> int | None:
    """The number of channels that a filter makes of ``channels``; None where it is unknown.

    >>> output_channels(4, (5, 5, 2, 6)), output_channels(4, (5, 5, 4, 6), depthwise=True)
    (6, 24)
    """
    inputs, outputs = filter_shape[-2:]
    shown = f"(filter {format_dims(tuple(filter_shape))})"
    if depthwise:
        if channels is not None and inputs is not None and channels != inputs:
            raise ValueError(
                f"a depthwise filter needs the input's {channels} channels in its third axis, "
                f"but has {inputs} there {shown}"
            )
        channels = inputs if channels is None else channels
        return None if channels is None or outputs is None else channels * outputs
    if channels is None or inputs is None:
        return outputs
    if channels % inputs if inputs else channels:
        raise ValueError(
            f"the input's {channels} channels are not a multiple of the filter's {inputs} {shown}"
        )
    groups = channels // inputs if inputs else 1
    if groups and outputs is not None and outputs % groups:
        raise ValueError(
            f"the filter's {outputs} outputs cannot be split into {groups} groups: the input has "
            f"{channels} channels, of which each output sees {inputs} {shown}"
        )
    return outputs


def conv(
    xp: Namespace,
    x: Array,
    filter: Array,
    *,
    platform: str = "cpu",
    formulation: str | None = None,
    **attributes: Any,
) -> Array:
    """The convolution of ``x`` with ``filter``, ``(*window, in, out)``."""
    shape = convolution_shape(x.shape, filter.shape, **attributes)
    if shape.is_empty:
        return xp.zeros(shape.output_shape, x.dtype)
    if _is_direct(xp, platform, x.dtype):
        if conv_phases.pays(shape.window, shape.channels, shape.groups):
            x = to_channels_last(xp, x, shape.data_format)
            y = conv_phases.forward(xp, x, filter, shape.window)
            return from_channels_last(xp, y, shape.data_format)
        return formulations.direct_forward(x, filter, shape.window, shape.groups, shape.data_format)
    window, groups, dtype = shape.window, shape.groups, x.dtype
    x = widen(to_channels_last(xp, x, shape.data_format))
    filter = widen(filter)
    if _is_for_onednn(xp, onednn_convolution.FORWARD, shape, x.dtype, formulation):
        y = onednn_convolution.forward(x, filter, window)
    elif _is_depthwise(shape, filter.shape[-2]):
        y = formulations.depthwise_forward(xp, x, _depthwise_filter(filter, shape), window)
    else:
        choice = formulation or _choose(
            xp, platform, formulations.choose_forward, window, shape.channels // groups
        )
        parts = [
            formulations.forward(xp, *operands, window, choice)
            for operands in zip(_split(xp, x, groups), _split(xp, filter, groups))
        ]
        y = _join(xp, parts)
    return from_channels_last(xp, y.astype(dtype), shape.data_format)


def conv_backprop_filter(
    xp: Namespace,
    x: Array,
    filter_sizes: Sequence[int],
    out_backprop: Array,
    *,
    platform: str = "cpu",
    formulation: str | None = None,
    **attributes: Any,
) -> Array:
    """The gradient of `conv` with respect to its filter, whose shape is ``filter_sizes``."""
    filter_sizes = tuple(map(int, filter_sizes))
    shape = convolution_shape(x.shape, filter_sizes, **attributes)
    _check_gradient(out_backprop, shape)
    if shape.is_empty:
        return xp.zeros(filter_sizes, x.dtype)
    if _is_direct(xp, platform, x.dtype):
        if conv_phases.pays(shape.window, shape.channels, shape.groups):
            x = to_channels_last(xp, x, shape.data_format)
            dy = to_channels_last(xp, out_backprop, shape.data_format)
            return conv_phases.filter_gradient(xp, x, dy, shape.window)
        return formulations.direct_filter_gradient(
            x, out_backprop, shape.window, shape.groups, shape.data_format
        )
    window, groups, dtype = shape.window, shape.groups, x.dtype
    x = widen(to_channels_last(xp, x, shape.data_format))
    dy = widen(to_channels_last(xp, out_backprop, shape.data_format))
    if _is_for_onednn(xp, onednn_convolution.FILTER_GRADIENT, shape, x.dtype, formulation):
        gradient = onednn_convolution.filter_gradient(x, dy, filter_sizes, window)
    elif _is_depthwise(shape, filter_sizes[-2]):
        gradient = formulations.depthwise_filter_gradient(
            xp, x, dy, window, shape.filters // groups
        ).reshape(filter_sizes)
    else:
        choice = formulation or _choose(
            xp,
            platform,
            formulations.choose_filter_gradient,
            window,
            shape.batch,
            shape.channels // groups,
            shape.filters // groups,
            x.dtype.itemsize,
        )
        parts = [
            formulations.filter_gradient(xp, *operands, window, choice)
            for operands in zip(_split(xp, x, groups), _split(xp, dy, groups))
        ]
        gradient = _join(xp, parts)
    return gradient.astype(dtype)


def conv_backprop_input(
    xp: Namespace,
    input_sizes: Sequence[int],
    filter: Array,
    out_backprop: Array,
    *,
    platform: str = "cpu",
    formulation: str | None = None,
    **attributes: Any,
) -> Array:
    """The gradient of `conv` with respect to its input, whose shape is ``input_sizes``.

    As a forward op it is the transposed convolution.
    """
    shape = convolution_shape(input_sizes, filter.shape, **attributes)
    _check_gradient(out_backprop, shape)
    if shape.is_empty:
        return xp.zeros(shape.input_shape, out_backprop.dtype)
    if _is_direct(xp, platform, out_backprop.dtype):
        return formulations.direct_input_gradient(
            filter, out_backprop, shape.window, shape.groups, shape.data_format
        )
    window, groups, dtype = shape.window, shape.groups, out_backprop.dtype
    dy = widen(to_channels_last(xp, out_backprop, shape.data_format))
    filter = widen(filter)
    if _is_for_onednn(xp, onednn_convolution.INPUT_GRADIENT, shape, dy.dtype, formulation):
        gradient = onednn_convolution.input_gradient(filter, dy, shape.channels, window)
    elif _is_depthwise(shape, filter.shape[-2]):
        gradient = formulations.depthwise_input_gradient(
            xp, _depthwise_filter(filter, shape), dy, window
        )
    else:
        choice = formulation or _choose(
            xp,
            platform,
            formulations.choose_input_gradient,
            window,
            shape.batch,
            shape.channels // groups,
            shape.filters // groups,
            dy.dtype.itemsize,
        )
        parts = [
            formulations.input_gradient(xp, *operands, window, choice)
            for operands in zip(_split(xp, filter, groups), _split(xp, dy, groups))
        ]
        gradient = _join(xp, parts)
    return from_channels_last(xp, gradient.astype(dtype), shape.data_format)


# One lowering serves every rank.
conv2d = conv3d = conv
conv2d_backprop_filter = conv3d_backprop_filter = conv_backprop_filter
conv2d_backprop_input = conv3d_backprop_input = conv_backprop_input


def depthwise_conv2d_native(
    xp: Namespace, x: Array, filter: Array, *, platform: str = "cpu", **attributes: Any
) -> Array:
    """The depthwise convolution: ``filter`` is ``(*window, channels, multiplier)``."""
    shape = convolution_shape(x.shape, filter.shape, depthwise=True, **attributes)
    grouped = filter.reshape(*filter.shape[:-2], 1, shape.filters)
    return conv(xp, x, grouped, platform=platform, **attributes)


def depthwise_conv2d_native_backprop_filter(
    xp: Namespace,
    x: Array,
    filter_sizes: Sequence[int],
    out_backprop: Array,
    *,
    platform: str = "cpu",
    **attributes: Any,
) -> Array:
    """The gradient of `depthwise_conv2d_native` with respect to its filter."""
    filter_sizes = tuple(map(int, filter_sizes))
    shape = convolution_shape(x.shape, filter_sizes, depthwise=True, **attributes)
    grouped = (*filter_sizes[:-2], 1, shape.filters)
    gradient = conv_backprop_filter(xp, x, grouped, out_backprop, platform=platform, **attributes)
    return gradient.reshape(filter_sizes)


def depthwise_conv2d_native_backprop_input(
    xp: Namespace,
    input_sizes: Sequence[int],
    filter: Array,
    out_backprop: Array,
    *,
    platform: str = "cpu",
    **attributes: Any,
) -> Array:
    """The gradient of `depthwise_conv2d_native` with respect to its input."""
    shape = convolution_shape(input_sizes, filter.shape, depthwise=True, **attributes)
    grouped = filter.reshape(*filter.shape[:-2], 1, shape.filters)
    return conv_backprop_input(
        xp, input_sizes, grouped, out_backprop, platform=platform, **attributes
    )


def _is_direct(xp: Namespace, platform: str, dtype: np.dtype) -> bool:
    """True for what XLA's own convolution computes; a GPU's library has none for integers."""
    return xp is not np and platform != "cpu" and not np.issubdtype(dtype, np.integer)


def _is_for_onednn(
    xp: Namespace, direction: int, shape: ConvolutionShape, dtype: Any, formulation: str | None
) -> bool:
    if xp is np or formulation not in (None, "onednn"):
        return False
    return onednn_convolution.takes(
        direction, shape.window, dtype, shape.batch, shape.channels, shape.filters, shape.groups
    )


def _is_depthwise(shape: ConvolutionShape, filter_inputs: int) -> bool:
    return filter_inputs == 1 and shape.channels > 1


def _depthwise_filter(filter: Array, shape: ConvolutionShape) -> Array:
    multiplier = shape.filters // shape.channels
    return filter.reshape(*shape.window.window, shape.channels, multiplier)


def _choose(xp: Namespace, platform: str, rule: Any, *facts: Any) -> str:
    return "columns" if xp is np or platform != "cpu" else rule(*facts)


def _split(xp: Namespace, x: Array, groups: int) -> list[Array]:
    """Equal blocks of the last axis. XLA's own grouped convolution is far slower on a CPU."""
    return [x] if groups == 1 else xp.split(x, groups, axis=-1)


def _join(xp: Namespace, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-1)


def _check_gradient(out_backprop: Array, shape: ConvolutionShape) -> None:
    if tuple(out_backprop.shape) != shape.output_shape:
        raise ValueError(
            f"the output's gradient has shape {list(out_backprop.shape)}, but the convolution's "
            f"output has shape {list(shape.output_shape)} ({shape.data_format}, "
            f"window {list(shape.window.window)})"
        )
