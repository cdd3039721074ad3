"""Max- and average-pooling and their gradients over an array namespace, with TensorFlow's meaning.

They serve the ops of two and of three dimensions. ``ksize``, ``strides`` and ``explicit_paddings``
have a value (a pair of values) for every axis of ``data_format``.

* Max-pooling's gradient goes to the *first* largest element of each window, in row-major order.
* Average-pooling does not count the padding.

XLA's gradient of max-pooling, ``select_and_scatter``, is 15 to 30 times slower on a CPU (and 1.5 to
9 times on an H200) than what is done here: find the offset of each window's maximum, then let every
input element compare the offsets of the few windows that see it with its own. Nothing is scattered.

    >>> import numpy as np
    >>> x = np.array([[3.0, 1.0], [4.0, 1.0]]).reshape(1, 2, 2, 1)
    >>> attributes = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    >>> max_pool(np, x, **attributes).item(), avg_pool(np, x, **attributes).item()
    (4.0, 2.25)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.ops.choice import choose
from runnel.ops.combined_rows import combined_natively
from runnel.ops.convolution.sliding_window import (
    Array,
    Namespace,
    SlidingWindow,
    channels_last,
    from_channels_last,
    pad,
    spatial_axes,
    strided_slice,
    to_channels_last,
    widen,
)


def pooling_window(
    input_shape: Sequence[int],
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str | bytes,
    explicit_paddings: Sequence[int] = (),
    data_format: str | bytes | None = None,
) -> tuple[SlidingWindow, str]:
    """The window that a pooling op's attributes describe, and its data format.

    >>> window, _ = pooling_window(
    ...     (8, 28, 28, 4), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"
    ... )
    >>> window.output_sizes
    (14, 14)
    """
    input_shape = tuple(map(int, input_shape))
    data_format = data_format.decode() if isinstance(data_format, bytes) else data_format
    data_format = data_format or channels_last(len(input_shape))
    axes = spatial_axes(data_format)
    if len(input_shape) != len(data_format) or len(ksize) != len(data_format):
        raise ValueError(
            f"data format {data_format} needs an input and a ksize with {len(data_format)} axes, "
            f"but got the shape {list(input_shape)} and the ksize {list(ksize)}"
        )
    if any(size < 1 for size in ksize):
        raise ValueError(f"ksize must be positive, but got {list(ksize)}")
    if any(ksize[i] != 1 for i in range(len(data_format)) if i not in axes):
        raise ValueError(
            f"ksize must be 1 along the batch and the channels of {data_format}, "
            f"but got {list(ksize)}"
        )
    window = SlidingWindow.from_attributes(
        input_shape,
        [ksize[axis] for axis in axes],
        strides,
        padding,
        data_format,
        explicit_paddings,
    )
    for k, pads in zip(window.window, window.padding):
        if max(pads) >= k:
            raise ValueError(
                f"explicit_paddings must be smaller than the window {list(window.window)}, "
                f"but got {list(window.padding)}: a window of padding alone has no value"
            )
    return window, data_format


def max_pool(xp: Namespace, x: Array, *, platform: str = "cpu", **attributes: Any) -> Array:
    """The largest element of each window."""
    window, data_format = pooling_window(x.shape, **attributes)
    x = to_channels_last(xp, x, data_format)
    if _is_compiled_elsewhere(xp, platform):
        from jax import lax

        y = _reduce_window(x, lax.max, _lowest(x.dtype), window)
    else:
        y = _reduce_axes(xp, xp.maximum, xp.max, window.pad(xp, x, _lowest(x.dtype)), window)
    return from_channels_last(xp, y, data_format)


def max_pool_grad(
    xp: Namespace,
    orig_input: Array,
    orig_output: Array,
    grad: Array,
    *,
    platform: str = "cpu",
    **attributes: Any,
) -> Array:
    """The gradient of `max_pool`: ``grad``, at the first largest element of each window.

    The maxima are found again in ``orig_input`` rather than by comparison with ``orig_output``: a
    compiler may compute the two in different fusions, with different rounding.
    """
    window, data_format = pooling_window(orig_input.shape, **attributes)
    x = to_channels_last(xp, orig_input, data_format)
    dy = to_channels_last(xp, grad, data_format)
    _check_shape("the gradient", dy, x, window)
    if 0 in dy.shape:
        return xp.zeros(orig_input.shape, grad.dtype)
    if window.stop_count == 1:
        first, seen = _global_first_maximum(xp, x, window)
        dx = xp.where(first, dy.reshape(dy.shape[0], 1, -1), np.zeros((), dy.dtype))
        rest = [(0, size - n) for size, n in zip(window.input_sizes, seen)]
        dx = pad(xp, dx.reshape(x.shape[0], *seen, x.shape[-1]), rest)
        return from_channels_last(xp, dx, data_format)
    index = first_maximum(xp, x, window)
    if xp is np:
        dx = _put_at_index(index, dy, window)
    else:
        dx = _select_by_index(xp, index, dy, window)
    return from_channels_last(xp, dx, data_format)


def max_pool_grad_grad(
    xp: Namespace,
    orig_input: Array,
    orig_output: Array,
    grad: Array,
    *,
    platform: str = "cpu",
    **attributes: Any,
) -> Array:
    """The gradient of `max_pool_grad` with respect to its ``grad``.

    ``grad`` has the input's shape; the result takes it at the first largest element of each window.
    """
    window, data_format = pooling_window(orig_input.shape, **attributes)
    x = to_channels_last(xp, orig_input, data_format)
    ddx = to_channels_last(xp, grad, data_format)
    if ddx.shape != x.shape:
        raise ValueError(
            f"the gradient has shape {list(ddx.shape)}, but the input that was pooled has "
            f"{list(x.shape)} (channels last)"
        )
    if window.stop_count == 1:
        first, seen = _global_first_maximum(xp, x, window)
        flat = strided_slice(xp, ddx, (0,) * window.rank, seen).reshape(first.shape)
        ddy = xp.sum(xp.where(first, flat, np.zeros((), ddx.dtype)), axis=1, dtype=ddx.dtype)
        ddy = ddy.reshape(-1, *window.output_sizes, ddy.shape[-1])
        return from_channels_last(xp, ddy, data_format)
    index = first_maximum(xp, x, window)
    ddy = xp.zeros(index.shape, ddx.dtype)
    for t, tap in enumerate(window.taps(xp, ddx)):
        ddy = xp.where(index == t, tap, ddy)
    return from_channels_last(xp, ddy, data_format)


def avg_pool(xp: Namespace, x: Array, *, platform: str = "cpu", **attributes: Any) -> Array:
    """The mean of each window's elements, the padding not counted."""
    window, data_format = pooling_window(x.shape, **attributes)
    dtype = x.dtype
    x = widen(to_channels_last(xp, x, data_format))
    if _is_compiled_elsewhere(xp, platform):
        from jax import lax

        total = _reduce_window(x, lax.add, 0, window)
    else:
        total = _reduce_axes(xp, xp.add, xp.sum, window.pad(xp, x), window)
    y = (total / _element_counts(window, x.dtype)).astype(dtype)
    return from_channels_last(xp, y, data_format)


def avg_pool_grad(
    xp: Namespace,
    orig_input_shape: Sequence[int],
    grad: Array,
    *,
    platform: str = "cpu",
    **attributes: Any,
) -> Array:
    """The gradient of `avg_pool`, whose input had the shape ``orig_input_shape``."""
    orig_input_shape = tuple(map(int, orig_input_shape))
    window, data_format = pooling_window(orig_input_shape, **attributes)
    dtype = grad.dtype
    dy = widen(to_channels_last(xp, grad, data_format))
    if dy.shape[1:-1] != window.output_sizes:
        raise ValueError(
            f"the gradient has spatial sizes {list(dy.shape[1:-1])}, but pooling an input of "
            f"{list(orig_input_shape)} ({data_format}) gives {list(window.output_sizes)}"
        )
    if 0 in dy.shape:
        return xp.zeros(orig_input_shape, dtype)
    dx = dy / _element_counts(window, dy.dtype)
    for axis in range(window.rank):
        dx = _spread_axis(xp, dx, axis, window)
    return from_channels_last(xp, dx.astype(dtype), data_format)


def _reduce_axes(
    xp: Namespace, combine: Any, reduce: Any, padded: Array, window: SlidingWindow
) -> Array:
    """Reduce each window of ``padded``, one axis after the other.

    A window of ``k × k`` costs ``2k`` operations, and each is a plain vectorised pass; XLA's
    ``reduce_window`` is 1.5 to 7 times slower on a CPU.
    """
    for axis, (k, s, count) in enumerate(zip(window.window, window.strides, window.output_sizes)):
        at = axis + 1
        if count == 1:
            within = _slice_axis(xp, padded, at, 0, k)
            padded = reduce(within, axis=at, keepdims=True)
            continue
        span = (count - 1) * s + 1
        result = _slice_axis(xp, padded, at, 0, span if count else 0, s)
        for offset in range(1, k):
            result = combine(
                result, _slice_axis(xp, padded, at, offset, offset + span if count else offset, s)
            )
        padded = result
    return padded


def _reduce_window(x: Array, operation: Any, initial: Any, window: SlidingWindow) -> Array:
    from jax import lax

    return lax.reduce_window(
        x,
        np.asarray(initial, x.dtype),
        operation,
        (1, *window.window, 1),
        (1, *window.strides, 1),
        ((0, 0), *window.padding, (0, 0)),
    )


def _slice_axis(xp: Namespace, x: Array, axis: int, start: int, limit: int, step: int = 1) -> Array:
    if xp is np:
        return x[(slice(None),) * axis + (slice(start, limit, step),)]
    from jax import lax

    return lax.slice_in_dim(x, start, limit, step, axis)


def first_maximum(xp: Namespace, x: Array, window: SlidingWindow) -> Array:
    """For each window, the number of the tap that holds its first largest element."""
    taps = window.taps(xp, x, _lowest(x.dtype))
    if xp is np:
        index = _first_of_numbers(taps, window)
        if index is not None:
            return index
    dtype = np.int8 if len(taps) <= 127 else np.int32
    best = taps[0]
    # A window of nothing but the lowest value must not choose a tap that lies in the padding.
    index = xp.broadcast_to(xp.asarray(_first_inside(window).astype(dtype)), best.shape)
    for number, tap in enumerate(taps[1:], 1):
        larger = tap > best
        best = xp.where(larger, tap, best)
        index = xp.where(larger, dtype(number), index)
    return index


def _first_of_numbers(taps: list[np.ndarray], window: SlidingWindow) -> np.ndarray | None:
    """What `first_maximum` gives, without a branch for each element; None where there are NaNs."""
    if len(taps) > 127:
        return None
    best = taps[0].copy()
    index = np.empty(best.shape, np.int8)
    index[...] = _first_inside(window)
    for number, tap in enumerate(taps[1:], 1):
        larger = (tap > best).view(np.int8)
        larger *= np.int8(number)
        np.maximum(index, larger, out=index)  # numbers ascend, so a larger element's is the largest
        np.maximum(best, tap, out=best)
    has_nan = best.dtype.kind not in "iu" and np.isnan(best).any()  # it stays, as a maximum
    return None if has_nan else index


def _put_at_index(index: np.ndarray, dy: np.ndarray, window: SlidingWindow) -> np.ndarray:
    """``dy``, added up at the taps that ``index`` names."""
    sizes = [n + sum(pads) for n, pads in zip(window.input_sizes, window.padding)]
    shape = (dy.shape[0], *sizes, dy.shape[-1])
    dx = np.zeros(shape, dy.dtype)
    steps = np.cumprod([1, *shape[:0:-1]])[::-1]
    taps = np.array([np.dot(offset, steps[1:-1]) for offset in window.offsets()])
    places = taps.take(index)
    for axis, size in enumerate(dy.shape):
        stride = window.strides[axis - 1] if 0 < axis < dy.ndim - 1 else 1
        start = np.arange(size) * (stride * steps[axis])
        places += start.reshape([-1 if d == axis else 1 for d in range(dy.ndim)])
    if not combined_natively(np.add, dx.reshape(-1), places.reshape(-1), dy.reshape(-1)):
        zero = np.zeros((), dy.dtype)
        return window.fold(np, (choose(np, index == t, dy, zero) for t in range(window.tap_count)))
    inside = (slice(low, low + n) for (low, _), n in zip(window.padding, window.input_sizes))
    return dx[(slice(None), *inside)]


def _global_first_maximum(
    xp: Namespace, x: Array, window: SlidingWindow
) -> tuple[Array, tuple[int, ...]]:
    """Where the one window's first largest element is: a mask, (batch, elements, channels).

    Also the sizes of the part of the input that the window sees.
    """
    seen = tuple(
        min(size, k - low)
        for size, k, (low, _) in zip(window.input_sizes, window.window, window.padding)
    )
    flat = strided_slice(xp, x, (0,) * window.rank, seen)
    flat = flat.reshape(x.shape[0], -1, x.shape[-1])
    number = xp.argmax(flat, axis=1)[:, None]
    return number == np.arange(flat.shape[1])[:, None], seen


def _first_inside(window: SlidingWindow) -> np.ndarray:
    """For each window, the number of the first tap outside of the padding; (*output_sizes, 1)."""
    number = np.zeros((1,) * window.rank, np.int64)
    for axis, (k, s, n) in enumerate(zip(window.window, window.strides, window.output_sizes)):
        first = np.clip(window.padding[axis][0] - s * np.arange(n), 0, k - 1)
        number = number * k + np.expand_dims(
            first, [other for other in range(window.rank) if other != axis]
        )
    return number[..., None]


def _select_by_index(xp: Namespace, index: Array, dy: Array, window: SlidingWindow) -> Array:
    """Give ``dy`` to the tap that ``index`` names, without scattering.

    In a view that splits every axis into (cell, phase), as in `SlidingWindow.cells`, each of the
    ``ceil(k / stride)`` windows along an axis is one comparison over whole arrays.
    """
    from jax import lax

    strides = window.strides
    reach = [-(-k // s) for k, s in zip(window.window, strides)]
    cells = window.cells
    amounts = [(j - 1, a - n) for j, a, n in zip(reach, cells, window.output_sizes)]
    # Padded once and kept: fused into the sum below, the padding would be tested in every term,
    # and the search for the maximum repeated.
    index, dy = lax.optimization_barrier((pad(xp, index, amounts, -1), pad(xp, dy, amounts)))
    total = None
    for shifts in itertools.product(*map(range, reach)):
        start = [j - 1 - shift for j, shift in zip(reach, shifts)]
        limit = [lo + a for lo, a in zip(start, cells)]
        view = (-1, *(n for a in cells for n in (a, 1)), dy.shape[-1])
        here = strided_slice(xp, index, start, limit).reshape(view)
        gradient = strided_slice(xp, dy, start, limit).reshape(view)
        # Phases past the window's end match no tap; -1 is taken by the index's padding.
        number = np.zeros((), np.int64)
        inside = np.ones((), np.bool_)
        for k, s, shift in zip(window.window, strides, shifts):
            offset = (shift * s + np.arange(s))[:, None]
            number = number[..., None, None] * k + offset
            inside = inside[..., None, None] & (offset < k)
        number = np.where(inside, number, -2).astype(index.dtype)
        term = xp.where(here == number, gradient, 0)
        total = term if total is None else total + term
    assert total is not None
    spread = total.reshape(-1, *(a * s for a, s in zip(cells, strides)), dy.shape[-1])
    low = [pads[0] for pads in window.padding]
    return strided_slice(xp, spread, low, [lo + n for lo, n in zip(low, window.input_sizes)])


def _spread_axis(xp: Namespace, dy: Array, axis: int, window: SlidingWindow) -> Array:
    """Add each window's value to every element that it sees along one axis."""
    k, s = window.window[axis], window.strides[axis]
    low, size, count = window.padding[axis][0], window.input_sizes[axis], window.output_sizes[axis]
    at = axis + 1
    amounts = [(0, 0)] * window.rank
    if count == 1:
        seen = min(size, k - low)
        shape = (*dy.shape[:at], seen, *dy.shape[at + 1 :])
        amounts[axis] = (0, size - seen)
        return pad(xp, xp.broadcast_to(dy, shape), amounts)
    if xp is np and k == s and size == count * k:
        return np.repeat(dy, k, axis=at)
    if xp is np:
        spread = np.zeros(
            (*dy.shape[:at], size + sum(window.padding[axis]), *dy.shape[at + 1 :]), dy.dtype
        )
        span = (count - 1) * s + 1
        for offset in range(k):
            stops = _slice_axis(np, spread, at, offset, offset + span, s)
            stops += dy
        return _slice_axis(np, spread, at, low, low + size)
    reach, cells = -(-k // s), window.cells[axis]
    amounts[axis] = (reach - 1, cells - count)
    padded = pad(xp, dy, amounts)
    total = None
    for shift in range(reach):
        start = reach - 1 - shift
        here = xp.expand_dims(_slice_axis(xp, padded, at, start, start + cells), at + 1)
        phases = shift * s + np.arange(s)
        if phases[-1] >= k:
            inside = (phases < k).reshape(s, *(1,) * (dy.ndim - at - 1))
            here = xp.where(inside, here, np.zeros((), dy.dtype))
        total = here if total is None else total + here
    assert total is not None
    shape = (*dy.shape[:at], cells, s, *dy.shape[at + 1 :])
    flat = (*dy.shape[:at], cells * s, *dy.shape[at + 1 :])
    spread = xp.broadcast_to(total, shape).reshape(flat)
    return _slice_axis(xp, spread, at, low, low + size)


def _element_counts(window: SlidingWindow, dtype: Any) -> np.ndarray:
    """For each window, the number of its elements outside of the padding; (*output_sizes, 1)."""
    counts = np.ones((1,) * window.rank, np.int64)
    for axis, (k, s, n) in enumerate(zip(window.window, window.strides, window.output_sizes)):
        start = s * np.arange(n) - window.padding[axis][0]
        inside = np.minimum(start + k, window.input_sizes[axis]) - np.maximum(start, 0)
        counts = counts * np.expand_dims(
            inside, [other for other in range(window.rank) if other != axis]
        )
    if counts.size and (counts == counts.flat[0]).all():
        return np.asarray(counts.flat[0], dtype)
    return counts[..., None].astype(dtype)


def _lowest(dtype: Any) -> Any:
    """The value below every other."""
    if np.dtype(dtype).kind in "iu":
        return np.iinfo(dtype).min
    return -np.inf


def _is_compiled_elsewhere(xp: Namespace, platform: str) -> bool:
    return xp is not np and platform != "cpu"


def _check_shape(what: str, y: Array, x: Array, window: SlidingWindow) -> None:
    expected = (x.shape[0], *window.output_sizes, x.shape[-1])
    if tuple(y.shape) != expected:
        raise ValueError(
            f"{what} has shape {list(y.shape)}, but pooling gives {list(expected)} (channels last)"
        )
