"""Static shapes of convolutions and poolings, of which any dimension may be unknown."""

from __future__ import annotations

from collections.abc import Sequence

from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops.convolution.conv_lowering import output_channels
from runnel.ops.convolution.sliding_window import (
    along_space,
    explicit_pairs,
    output_size,
    spatial_axes,
)


def convolution_dims(
    x: Dims,
    filter: Dims,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    explicit_paddings: Sequence[int] = (),
    depthwise: bool = False,
) -> tuple[int | None, ...]:
    """The shape of a convolution's result; mistakes in attributes and shapes are ValueErrors.

    >>> unit = dict(strides=[1, 1, 1, 1], dilations=[1, 1, 1, 1], data_format="NHWC")
    >>> convolution_dims((None, 28, None, 3), (5, 5, 3, 8), padding="VALID", **unit)
    (None, 24, None, 8)
    """
    rank = len(data_format)
    spacing = along_space("dilations", dilations, data_format)
    x, filter = with_rank("the input", x, rank), with_rank("the filter", filter, rank)
    sizes = _sizes(
        x, filter[:-2], strides, padding, data_format, explicit_paddings, dilations=spacing
    )
    channels = output_channels(x[data_format.index("C")], filter, depthwise)
    return _arrange(x[0], sizes, channels, data_format)


def pooling_dims(
    x: Dims,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
    explicit_paddings: Sequence[int] = (),
) -> tuple[int | None, ...]:
    """The shape of a pooling's result; mistakes in attributes and shapes are ValueErrors.

    >>> two = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    >>> pooling_dims((None, 5, None, 3), padding="SAME", data_format="NHWC", **two)
    (None, 3, None, 3)
    """
    window = along_space("ksize", ksize, data_format)
    x = with_rank("the input", x, len(data_format))
    sizes = _sizes(x, window, strides, padding, data_format, explicit_paddings)
    pads = explicit_pairs(padding, explicit_paddings, data_format)
    for k, axis in zip(window, spatial_axes(data_format)):
        if max(pads[axis]) >= k:
            raise ValueError(
                f"explicit_paddings must be smaller than the window {list(window)}, but got "
                f"{list(explicit_paddings)}: a window of padding alone has no value"
            )
    return _arrange(x[0], sizes, x[data_format.index("C")], data_format)


def with_rank(what: str, dims: Dims, rank: int) -> tuple[int | None, ...]:
    """``dims``, unknown dimensions for an unknown shape, an error for another rank."""
    if dims is None:
        return (None,) * rank
    if len(dims) != rank:
        raise ValueError(
            f"{what} must have {rank} dimensions, but its shape is {format_dims(dims)}"
        )
    return dims


def merge_gradient(gradient: Dims, output: Dims) -> Dims:
    """The shape of an output's gradient, which is the output's."""
    try:
        return merge_dims(gradient, output)
    except ValueError:
        raise ValueError(
            f"the output's gradient has shape {format_dims(gradient)}, but the output has shape "
            f"{format_dims(output)}"
        ) from None


def _sizes(
    x: tuple[int | None, ...],
    window: Sequence[int | None],
    strides: Sequence[int],
    padding: str,
    data_format: str,
    explicit_paddings: Sequence[int],
    dilations: Sequence[int] | None = None,
) -> list[int | None]:
    steps = along_space("strides", strides, data_format)
    pads = explicit_pairs(padding, explicit_paddings, data_format)
    spacing = dilations or (1,) * len(steps)
    return [
        output_size(x[axis], k, s, padding, pads[axis], d)
        for axis, k, s, d in zip(spatial_axes(data_format), window, steps, spacing)
    ]


def _arrange(
    batch: int | None, sizes: list[int | None], channels: int | None, data_format: str
) -> tuple[int | None, ...]:
    if data_format[-1] == "C":
        return (batch, *sizes, channels)
    return (batch, channels, *sizes)
