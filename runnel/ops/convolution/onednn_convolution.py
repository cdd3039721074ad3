"""Convolutions and their gradients by oneDNN, in compiled steps on a CPU.

The fastest formulation where oneDNN is installed (`runnel.native.onednn`): its kernels run at about
nine tenths of the rate of a large matrix product. Arrays are float32 and channels last, filters
``(*window, in, out)`` with groups as contiguous blocks of outputs.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from runnel.native import onednn
from runnel.ops.convolution.sliding_window import Array, SlidingWindow
from runnel.threads import usable_cores

FORWARD, FILTER_GRADIENT, INPUT_GRADIENT = range(3)


def takes(
    direction: int,
    window: SlidingWindow,
    dtype: Any,
    batch: int,
    channels: int,
    filters: int,
    groups: int,
) -> bool:
    """Whether oneDNN is there and computes this convolution fast.

    A batch is split among the threads, one for each core: it has to have more than half as many
    examples as there are cores.
    """
    threads = usable_cores()  # of XLA's pool
    if np.dtype(dtype) != np.float32 or 2 * batch <= threads:
        return False
    return _has_kernel(direction, window, batch, channels, filters, groups, threads)


@functools.lru_cache(maxsize=1024)
def _has_kernel(
    direction: int,
    window: SlidingWindow,
    batch: int,
    channels: int,
    filters: int,
    groups: int,
    threads: int,
) -> bool:
    library = onednn.load()
    if library is None:
        return False
    sizes = [
        number
        for along in zip(
            window.input_sizes,
            window.output_sizes,
            window.window,
            window.strides,
            window.dilations,
            *zip(*window.padding),
        )
        for number in along
    ]
    counts = map(ctypes.c_int64, (threads, batch, channels, filters, groups))
    return bool(
        library.runnel_conv_has_kernel(
            direction, *counts, window.rank, (ctypes.c_int64 * len(sizes))(*sizes)
        )
    )


def forward(x: Array, filter: Array, window: SlidingWindow) -> Array:
    """The convolution of ``x`` with ``filter``."""
    shape = (x.shape[0], *window.output_sizes, filter.shape[-1])
    return _call(FORWARD, shape, x, filter, window)


def filter_gradient(
    x: Array, dy: Array, filter_sizes: tuple[int, ...], window: SlidingWindow
) -> Array:
    """The gradient of the filter, whose shape is ``filter_sizes``."""
    return _call(FILTER_GRADIENT, filter_sizes, x, dy, window)


def input_gradient(filter: Array, dy: Array, channels: int, window: SlidingWindow) -> Array:
    """The gradient of the input."""
    shape = (dy.shape[0], *window.input_sizes, channels)
    return _call(INPUT_GRADIENT, shape, filter, dy, window)


def _call(
    direction: int, shape: tuple[int, ...], a: Array, b: Array, window: SlidingWindow
) -> Array:
    import jax

    low, high = zip(*window.padding)
    numbers = {
        "strides": window.strides,
        "dilations": window.dilations,
        "low": low,
        "high": high,
    }
    call = jax.ffi.ffi_call(
        onednn.CONVOLUTIONS[direction], jax.ShapeDtypeStruct(shape, np.dtype(np.float32))
    )
    return call(a, b, **{name: np.asarray(n, np.int64) for name, n in numbers.items()})
