"""The ways to compute a convolution and its two gradients, and the choice between them on a CPU.

Every function takes channels-last arrays, an ungrouped filter ``(*window, in, out)`` and a
`SlidingWindow`; ``xp`` is NumPy or ``jax.numpy``. The three directions are

* forward: ``y = conv(x, filter)``;
* filter gradient: from ``x`` and ``dy``;
* input gradient: from ``filter`` and ``dy``.

XLA's own convolution is one of the formulations (``direct``); on a CPU it has cliffs, above all in
the filter gradient of large images, where a matrix product over *columns* (the taps side by side,
"im2col") is several times faster. No formulation wins everywhere; ``choose_*`` hold static rules,
read off measurements on two cores with AVX-512 (``benchmarks/conv_lowerings.py --formulations``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from runnel.ops.convolution.sliding_window import (
    Array,
    Namespace,
    SlidingWindow,
    pad,
    strided_slice,
)
from runnel.ops.matmul import multiply_matrices

# An image's three or four channels are too few to fill a vector register.
FEW_CHANNELS = 4
# Above this, writing and reading the columns costs more than the better product saves.
COLUMN_BYTES = 128 << 20
# NumPy works through the batch in pieces whose columns stay near the size of a CPU's cache.
NUMPY_COLUMN_BYTES = 32 << 20

FORWARD = ("columns", "direct")
FILTER_GRADIENT = ("columns", "transposed_columns", "taps", "direct")
INPUT_GRADIENT = ("columns", "phases", "direct")


def column_bytes(window: SlidingWindow, batch: int, channels: int, itemsize: int) -> int:
    """The size of the matrix of columns."""
    return batch * window.stop_count * window.tap_count * channels * itemsize


def choose_forward(window: SlidingWindow, channels: int) -> str:
    """The formulation of a compiled convolution on a CPU.

    A 1×1 window is a plain product. XLA's convolution is good otherwise, except over an image's
    few channels at stride 1, where its patches are packed element by element.
    """
    dense = all(stride == 1 for stride in window.strides)
    if window.tap_count == 1 or (channels <= FEW_CHANNELS and dense):
        return "columns"
    return "direct"


def choose_filter_gradient(
    window: SlidingWindow, batch: int, channels: int, filters: int, itemsize: int = 4
) -> str:
    """The formulation of a compiled filter gradient on a CPU.

    XLA's own contracts over batch × stops with a patch matrix that it packs anew for every block
    of filters: up to twice as fast as columns while both are small, several times slower when they
    are not.
    """
    if window.tap_count == 1:
        return "columns"
    if channels <= FEW_CHANNELS and max(window.strides) <= 2:
        return "transposed_columns"
    stops = batch * window.stop_count
    dense = all(stride == 1 for stride in window.strides)
    if stops <= 1 << (14 if dense and filters > 64 else 16) and (dense or filters <= 64):
        return "direct"
    if column_bytes(window, batch, channels, itemsize) > COLUMN_BYTES:
        return "taps"
    return "columns"


def choose_input_gradient(
    window: SlidingWindow, batch: int, channels: int, filters: int, itemsize: int = 4
) -> str:
    """The formulation of a compiled input gradient on a CPU.

    Columns are written once and read once, which pays for small images of many channels. Between
    the elements of a strided ``dy`` XLA's own multiplies zeros, so columns pay sooner there.
    """
    if window.tap_count == 1:
        return "columns"
    strided = any(stride > 1 for stride in window.strides)
    if channels <= FEW_CHANNELS and strided:
        return "phases" if set(window.dilations) == {1} else "direct"
    if not strided and (window.stop_count > 256 or channels < 128):
        return "direct"
    if column_bytes(window, batch, channels, itemsize) > COLUMN_BYTES:
        return "direct"
    return "columns"


def columns(xp: Namespace, x: Array, window: SlidingWindow) -> Array:
    """The taps side by side: ``(batch × stops, taps × channels)``."""
    if xp is np and window.window[-1] > 1 and window.dilations[-1] == 1:
        return _columns_by_rows(x, window)
    taps = window.taps(xp, x)
    joined = taps[0] if len(taps) == 1 else xp.concatenate(taps, axis=-1)
    # Two dimensions before the product: a dot of four, contracted over three, makes XLA transpose.
    return joined.reshape(-1, joined.shape[-1])


def _columns_by_rows(x: np.ndarray, window: SlidingWindow) -> np.ndarray:
    """The same: a row of the window lies in one piece, and is copied as one."""
    padded = np.ascontiguousarray(window.pad(np, x))
    # Not its strides: an axis of one element may have any.
    element = padded.itemsize
    example, *spatial = (element * math.prod(padded.shape[i:]) for i in range(1, padded.ndim))
    stops = (step * n for step, n in zip(window.strides, spatial))
    taps = (step * n for step, n in zip(window.dilations[:-1], spatial[:-1]))
    row = window.window[-1] * x.shape[-1]
    view = np.lib.stride_tricks.as_strided(
        padded,
        (x.shape[0], *window.output_sizes, *window.window[:-1], row),
        (example, *stops, *taps, element),
        writeable=False,
    )
    return view.reshape(x.shape[0] * window.stop_count, window.tap_count * x.shape[-1])


def transposed_columns(xp: Namespace, x: Array, window: SlidingWindow) -> Array:
    """``columns(...).T``, written in that order: long runs of stops in place of few channels."""
    # One channel of one example at a time: (channels × batch, *spatial, 1).
    planes = xp.moveaxis(x, -1, 0).reshape(-1, *x.shape[1:-1], 1)
    taps = window.taps(xp, planes)
    joined = taps[0] if len(taps) == 1 else xp.concatenate(taps, axis=0)
    return joined.reshape(window.tap_count * x.shape[-1], -1)


def batch_pieces(xp: Namespace, batch: int, bytes_each: int) -> Iterator[slice]:
    """Slices of the batch: pieces that fit a cache under NumPy, the whole where XLA compiles."""
    piece = max(1, NUMPY_COLUMN_BYTES // max(1, bytes_each)) if xp is np else batch
    for start in range(0, batch, piece):
        yield slice(start, min(batch, start + piece))


def forward(
    xp: Namespace, x: Array, filter: Array, window: SlidingWindow, formulation: str
) -> Array:
    """The convolution of ``x`` with ``filter``."""
    if formulation == "direct":
        return direct_forward(x, filter, window)
    matrix = filter.reshape(-1, filter.shape[-1])
    each = column_bytes(window, 1, x.shape[-1], x.dtype.itemsize)
    products = [
        multiply_matrices(xp, columns(xp, x[piece], window), matrix)
        for piece in batch_pieces(xp, x.shape[0], each)
    ]
    y = products[0] if len(products) == 1 else xp.concatenate(products)
    return y.reshape(x.shape[0], *window.output_sizes, filter.shape[-1])


def filter_gradient(
    xp: Namespace, x: Array, dy: Array, window: SlidingWindow, formulation: str
) -> Array:
    """The gradient of the filter."""
    if formulation == "direct":
        return direct_filter_gradient(x, dy, window)
    channels, filters = x.shape[-1], dy.shape[-1]
    if formulation == "taps":
        rows = dy.reshape(-1, filters)
        taps = (tap.reshape(-1, channels).T for tap in window.taps(xp, x))
        parts = [multiply_matrices(xp, tap, rows) for tap in taps]
        return xp.stack(parts).reshape(*window.window, channels, filters)
    each = column_bytes(window, 1, channels, x.dtype.itemsize)
    total = None
    for piece in batch_pieces(xp, x.shape[0], each):
        if formulation == "transposed_columns":
            left = transposed_columns(xp, x[piece], window)
        else:
            left = columns(xp, x[piece], window).T
        product = multiply_matrices(xp, left, dy[piece].reshape(-1, filters))
        total = product if total is None else total + product
    assert total is not None
    return total.reshape(*window.window, channels, filters)


def input_gradient(
    xp: Namespace, filter: Array, dy: Array, window: SlidingWindow, formulation: str
) -> Array:
    """The gradient of the input."""
    if formulation == "direct":
        return direct_input_gradient(filter, dy, window)
    if formulation == "phases":
        return _input_gradient_by_phases(xp, filter, dy, window)
    channels, filters = filter.shape[-2:]
    if xp is np and filters <= 2 * channels and (back := _reversed_window(window)) is not None:
        turned = np.flip(filter, tuple(range(window.rank))).swapaxes(-1, -2)
        return forward(np, dy, turned, back, "columns")
    # (out, taps × in): the product's columns lie tap by tap, so that each tap is one slice.
    matrix = filter.reshape(-1, filters).T
    each = column_bytes(window, 1, channels, dy.dtype.itemsize)
    pieces = []
    for piece in batch_pieces(xp, dy.shape[0], each):
        product = multiply_matrices(xp, dy[piece].reshape(-1, filters), matrix)
        pieces.append(window.fold(xp, _column_taps(xp, product, window, channels)))
    return pieces[0] if len(pieces) == 1 else xp.concatenate(pieces)


def _reversed_window(window: SlidingWindow) -> SlidingWindow | None:
    """What moves over the gradient of an output, where that is a convolution with columns too.

    NumPy copies taps side by side faster than it adds them where they came from. None for strides,
    which leave gaps, and for padding beyond what the window reaches.
    """
    reach = [(k - 1) * d for k, d in zip(window.window, window.dilations)]
    padding = tuple((r - low, r - high) for r, (low, high) in zip(reach, window.padding))
    if any(s != 1 for s in window.strides) or any(p < 0 for pair in padding for p in pair):
        return None
    return replace(
        window,
        input_sizes=window.output_sizes,
        padding=padding,
        output_sizes=window.input_sizes,
    )


def _column_taps(
    xp: Namespace, product: Array, window: SlidingWindow, channels: int
) -> Iterator[Array]:
    shaped = product.reshape(-1, *window.output_sizes, window.tap_count * channels)
    for start in range(0, window.tap_count * channels, channels):
        yield shaped[..., start : start + channels]


def _input_gradient_by_phases(
    xp: Namespace, filter: Array, dy: Array, window: SlidingWindow
) -> Array:
    """A strided input gradient as one convolution of stride 1.

    With the phases beside the channels (see `SlidingWindow.cells`) it is a dense convolution over
    the cells, with no zeros between the elements of ``dy``.
    """
    rank, strides = window.rank, window.strides
    channels, filters = filter.shape[-2:]
    reach = [-(-k // s) for k, s in zip(window.window, strides)]
    cells = window.cells
    extra = [(0, j * s - k) for j, s, k in zip(reach, strides, window.window)]
    grown = xp.pad(filter, [*extra, (0, 0), (0, 0)])
    split = grown.reshape(*(n for pair in zip(reach, strides) for n in pair), channels, filters)
    split = xp.flip(split, axis=tuple(range(0, 2 * rank, 2)))
    order = (*range(0, 2 * rank, 2), 2 * rank + 1, *range(1, 2 * rank, 2), 2 * rank)
    dense = xp.transpose(split, order).reshape(*reach, filters, math.prod(strides) * channels)
    amounts = [(j - 1, a - n) for j, a, n in zip(reach, cells, window.output_sizes)]
    ones = (1,) * rank
    y = direct_forward(
        pad(xp, dy, amounts),
        dense,
        SlidingWindow(cells, tuple(reach), ones, ones, ((0, 0),) * rank, cells),
    )
    y = y.reshape(-1, *cells, *strides, channels)
    pairs = [axis for i in range(rank) for axis in (1 + i, 1 + rank + i)]
    y = xp.transpose(y, (0, *pairs, 2 * rank + 1))
    y = y.reshape(-1, *(a * s for a, s in zip(cells, strides)), channels)
    low = [pads[0] for pads in window.padding]
    return strided_slice(xp, y, low, [lo + n for lo, n in zip(low, window.input_sizes)])


# Depthwise: each channel has filters of its own, (*window, channels, multiplier). There is nothing
# to contract over, so the taps are multiplied and added where they lie.


def depthwise_forward(xp: Namespace, x: Array, filter: Array, window: SlidingWindow) -> Array:
    """The depthwise convolution of ``x``."""
    channels, multiplier = filter.shape[-2:]
    if xp is np:
        return _depthwise_rows(x, filter, window)
    weights = filter.reshape(-1, channels, multiplier)
    total = sum(tap[..., None] * weight for tap, weight in zip(window.taps(xp, x), weights))
    return total.reshape(x.shape[0], *window.output_sizes, channels * multiplier)


def _depthwise_rows(x: np.ndarray, filter: np.ndarray, window: SlidingWindow) -> np.ndarray:
    """The same with NumPy: its loops are as long as a row of the output, not as the multiplier."""
    channels, multiplier = filter.shape[-2:]
    repeated = np.repeat(x, multiplier, axis=-1) if multiplier > 1 else x
    rows = _along_rows(filter, window)
    total: Any = np.zeros((x.shape[0], *window.output_sizes, channels * multiplier), x.dtype)
    product = np.empty_like(total)
    for tap, row in zip(window.taps(np, repeated), rows):
        np.multiply(tap, row, out=product)
        total += product
    return total


def _along_rows(filter: np.ndarray, window: SlidingWindow) -> np.ndarray:
    """For each tap the weights of all channels, as often as a row of the output has elements.

    Equal strides let NumPy treat a row and its channels as one dimension.
    """
    weights = filter.reshape(-1, 1, filter.shape[-2] * filter.shape[-1])
    return np.tile(weights, (1, window.output_sizes[-1], 1))


def depthwise_filter_gradient(
    xp: Namespace, x: Array, dy: Array, window: SlidingWindow, multiplier: int
) -> Array:
    """The gradient of a depthwise filter."""
    channels, stops = x.shape[-1], window.stop_count
    shape = (*window.window, channels, multiplier)
    if xp is np:
        repeated = np.repeat(x, multiplier, axis=-1) if multiplier > 1 else x
        width = channels * multiplier
        row = window.output_sizes[-1] * width
        gradient = np.empty((window.tap_count, width), dy.dtype)
        for part, tap in zip(gradient, window.taps(np, repeated)):
            products = (tap * dy).reshape(-1, row).sum(0)  # long rows are added up in vectors
            products.reshape(-1, width).sum(0, out=part)
        return gradient.reshape(shape)
    from jax import lax

    split = dy.reshape(dy.shape[0], stops, channels, multiplier)
    padded = window.pad(xp, x)

    # XLA reduces over leading axes element by element; adding up whole examples is vectorised and
    # leaves one example's worth to reduce: half the time.
    unpadded = replace(window, padding=((0, 0),) * window.rank)

    def add_example(i: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        taps = unpadded.taps(xp, lax.dynamic_slice_in_dim(padded, i, 1))
        gradient = lax.dynamic_slice_in_dim(split, i, 1)[0]
        return tuple(
            total + tap.reshape(stops, channels, 1) * gradient for total, tap in zip(totals, taps)
        )

    zeros = xp.zeros((stops, channels, multiplier), dy.dtype)
    totals = lax.fori_loop(0, x.shape[0], add_example, (zeros,) * window.tap_count)
    return xp.stack([total.sum(0) for total in totals]).reshape(shape)


def depthwise_input_gradient(
    xp: Namespace, filter: Array, dy: Array, window: SlidingWindow
) -> Array:
    """The gradient of a depthwise convolution's input."""
    channels, multiplier = filter.shape[-2:]
    if xp is np:
        product = np.empty_like(dy)
        products = (np.multiply(dy, row, out=product) for row in _along_rows(filter, window))
        if multiplier > 1:
            apart = (*dy.shape[:-1], channels, multiplier)
            products = (np.add.reduce(p.reshape(apart), axis=-1) for p in products)
        return window.fold(np, products)
    split = dy.reshape(*dy.shape[:-1], channels, multiplier)
    weights = filter.reshape(-1, channels, multiplier)
    # One term for each multiple: a sum over a short last axis would not be vectorised.
    return window.fold(
        xp,
        (sum(split[..., m] * weight[:, m] for m in range(multiplier)) for weight in weights),
    )


# XLA's convolution, for accelerators in any data format and for a CPU where it is good. Groups
# are contiguous blocks of channels.


def _specification(data_format: str, batch: str = "N", channel: str = "C") -> str:
    return data_format.replace("N", "?").replace("C", channel).replace("?", batch)


def _filter_specification(rank: int, inputs: str = "I", outputs: str = "O") -> str:
    return "DHW"[-rank:] + inputs + outputs


def direct_forward(
    x: Array,
    filter: Array,
    window: SlidingWindow,
    groups: int = 1,
    data_format: str | None = None,
) -> Array:
    """The convolution, by XLA's own."""
    from jax import lax

    spec = data_format or "N" + "DHW"[-window.rank :] + "C"
    return lax.conv_general_dilated(
        x,
        filter,
        window.strides,
        window.padding,
        rhs_dilation=window.dilations,
        dimension_numbers=(spec, _filter_specification(window.rank), spec),
        feature_group_count=groups,
    )


def direct_input_gradient(
    filter: Array,
    dy: Array,
    window: SlidingWindow,
    groups: int = 1,
    data_format: str | None = None,
) -> Array:
    """The input gradient, by XLA's convolution of the dilated ``dy`` with the reversed filter."""
    from jax import lax

    rank = window.rank
    spec = data_format or "N" + "DHW"[-rank:] + "C"
    if groups > 1:
        # (*window, in, groups × out) → (*window, groups × in, out)
        *sizes, channels, filters = filter.shape
        split = filter.reshape(*sizes, channels, groups, filters // groups)
        filter = split.swapaxes(rank, rank + 1).reshape(*sizes, -1, filters // groups)
    reaches = [(k - 1) * d for k, d in zip(window.window, window.dilations)]
    low = [reach - pads[0] for reach, pads in zip(reaches, window.padding)]
    padding = [
        (lo, size + reach - span - lo)
        for lo, size, reach, span in zip(low, window.input_sizes, reaches, window.spans)
    ]
    return lax.conv_general_dilated(
        dy,
        lax.rev(filter, tuple(range(rank))),
        (1,) * rank,
        padding,
        lhs_dilation=window.strides,
        rhs_dilation=window.dilations,
        dimension_numbers=(spec, _filter_specification(rank, "O", "I"), spec),
        feature_group_count=groups,
    )


def direct_filter_gradient(
    x: Array,
    dy: Array,
    window: SlidingWindow,
    groups: int = 1,
    data_format: str | None = None,
) -> Array:
    """The filter gradient, by XLA's convolution of ``x`` with ``dy``, summed over the batch."""
    from jax import lax

    rank = window.rank
    spec = data_format or "N" + "DHW"[-rank:] + "C"
    padding = [
        (low, span + (k - 1) * d - size - low)
        for (low, _), span, k, d, size in zip(
            window.padding, window.spans, window.window, window.dilations, window.input_sizes
        )
    ]
    return lax.conv_general_dilated(
        x,
        dy,
        window.dilations,
        padding,
        rhs_dilation=window.strides,
        dimension_numbers=(
            _specification(spec, batch="C", channel="N"),
            _specification(spec, batch="I", channel="O"),
            _filter_specification(rank, "N", "C"),
        ),
        batch_group_count=groups,
    )
