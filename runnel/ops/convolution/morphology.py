"""Grey-scale morphology: dilation and erosion of images by a structuring function.

A dilation is a convolution with (max, +) in place of (+, *).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import at_run_time
from runnel.ops.convolution.sliding_window import SlidingWindow, widen
from runnel.ops.convolution.window_arguments import named_padding, per_axis
from runnel.ops.convolution.window_dims import convolution_dims, merge_gradient, with_rank
from runnel.ops.elementwise import negative
from runnel.ops.reduce_functions import one_of
from runnel.ops.reversal import reverse_v2

_ATTRS = [
    "T: realnumbertype",
    "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
]
_BACKWARD = "input: T, filter: T, out_backprop: T"
dilation_op = register_op(
    "Dilation2D", inputs="input: T, filter: T", outputs="output: T", attrs=_ATTRS
)
backprop_input_op = register_op(
    "Dilation2DBackpropInput", inputs=_BACKWARD, outputs="in_backprop: T", attrs=_ATTRS
)
backprop_filter_op = register_op(
    "Dilation2DBackpropFilter", inputs=_BACKWARD, outputs="filter_backprop: T", attrs=_ATTRS
)


def _dilated(x: Tensor, filter: Tensor, strides: Any, rates: Any, padding: str) -> Dims:
    height, width, channels = with_rank("the filter", filter.dims, 3)
    # As for a depthwise convolution with one filter for each channel.
    return convolution_dims(
        x.dims,
        (height, width, channels, 1),
        strides=strides,
        dilations=rates,
        padding=padding,
        data_format="NHWC",
        depthwise=True,
    )


@dilation_op.shape
def _(x, filter, *, strides, rates, padding):
    return _dilated(x, filter, strides, rates, padding)


@backprop_input_op.shape
def _(x, filter, out_backprop, *, strides, rates, padding):
    merge_gradient(out_backprop.dims, _dilated(x, filter, strides, rates, padding))
    return x.dims


@backprop_filter_op.shape
def _(x, filter, out_backprop, *, strides, rates, padding):
    merge_gradient(out_backprop.dims, _dilated(x, filter, strides, rates, padding))
    return filter.dims


def _window(x: Any, filter: Any, strides: Any, rates: Any, padding: str) -> SlidingWindow:
    if x.ndim != 4 or filter.ndim != 3 or x.shape[-1] != filter.shape[-1]:
        raise InvalidArgumentError(
            None,
            None,
            "a dilation needs images [batch, height, width, channels] and a filter [height, width, "
            f"channels], but got shapes {format_dims(x.shape)} and {format_dims(filter.shape)}",
        )
    return at_run_time(
        partial(SlidingWindow.from_attributes, dilations=rates),
        x.shape,
        filter.shape[:2],
        strides,
        padding,
        "NHWC",
    )


def _largest(xp: Any, x: Any, filter: Any, window: SlidingWindow) -> tuple[Any, Any]:
    """The largest sum that each window sees, and the number of its tap."""
    least = np.iinfo(x.dtype).min if np.dtype(x.dtype).kind in "iu" else -np.inf
    lowest = np.asarray(least, x.dtype)
    # What is padded does not compete; adding to the lowest integer would wrap around.
    inside = window.taps(np, np.ones((1, *x.shape[1:3], 1), np.bool_), False)
    weights = filter.reshape(-1, filter.shape[-1])
    best, index = None, np.zeros((), np.int32)
    for number, tap in enumerate(window.taps(xp, x)):
        value = xp.where(inside[number], tap + weights[number], lowest)
        if best is None:
            best, index = value, xp.zeros(value.shape, np.int32)
            continue
        larger = value > best
        best = xp.where(larger, value, best)
        index = xp.where(larger, np.int32(number), index)
    return best, index


@dilation_op.kernel
def _(xp, x, filter, *, strides, rates, padding):
    return _largest(xp, x, filter, _window(x, filter, strides, rates, padding))[0]


@backprop_input_op.kernel
def _(xp, x, filter, out_backprop, *, strides, rates, padding):
    window = _window(x, filter, strides, rates, padding)
    _, index = _largest(xp, x, filter, window)
    dy = widen(out_backprop)
    zero = np.zeros((), dy.dtype)
    parts = (xp.where(index == t, dy, zero) for t in range(window.tap_count))
    return window.fold(xp, parts).astype(x.dtype)


@backprop_filter_op.kernel
def _(xp, x, filter, out_backprop, *, strides, rates, padding):
    window = _window(x, filter, strides, rates, padding)
    _, index = _largest(xp, x, filter, window)
    dy = widen(out_backprop)
    zero = np.zeros((), dy.dtype)
    parts = [
        xp.sum(xp.where(index == t, dy, zero), axis=(0, 1, 2)) for t in range(window.tap_count)
    ]
    return xp.stack(parts).reshape(filter.shape).astype(x.dtype)


@dilation_op.gradient
def _(op, grad):
    settings = {name: op.attrs[name] for name in ("strides", "rates", "padding")}
    return [
        backprop_input_op(*op.inputs, grad, **settings),
        backprop_filter_op(*op.inputs, grad, **settings),
    ]


def dilation2d(
    input: Any,  # noqa: A002
    filter: Any = None,  # noqa: A002
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest ``input + filter`` under a window, for each channel of images.

    ``filter`` is [height, width, channels]; ``rates`` are the distances between its elements.

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> tf.nn.dilation2d(images, tf.zeros([3, 3, 3]), 1, 1, "SAME").shape.as_list()
        [8, 28, 28, 3]
    """
    return dilation_op(
        input,
        one_of("filters", filters, "filter", filter),
        strides=per_axis("strides", strides, "NHWC"),
        rates=per_axis("rates", one_of("dilations", dilations, "rates", rates), "NHWC"),
        padding=named_padding(padding, "dilation2d"),
        name=name,
    )


def erosion2d(
    value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The least ``value - kernel`` under a window: the dilation of what is not there.

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> tf.nn.erosion2d(images, tf.zeros([3, 3, 3]), 1, 1, "SAME").shape.as_list()
        [8, 28, 28, 3]
    """
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        mirrored = reverse_v2(kernel, [0, 1])
        dilated = dilation2d(negative(value), mirrored, strides, rates, padding, name=scope)
        return negative(dilated)
