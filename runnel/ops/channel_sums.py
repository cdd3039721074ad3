"""Sums over all positions of each channel in compiled steps on a CPU, in one pass over memory.

`runnel.native` has them where it is built; for others there is `jax.numpy`. Arrays are float32 and
channels last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.native import onednn

Array = Any

# Below this everything is in the cache, and a pass costs no more than a call.
_WORTH_IT = 1 << 15


def can_sum(xp: Any, x: Array, platform: str, channels_last: bool) -> bool:
    """Whether the functions here can be used for ``x``, and pay."""
    return (
        xp is not np
        and platform == "cpu"
        and channels_last
        and x.dtype == np.float32
        and x.size >= _WORTH_IT
        and onednn.load() is not None
    )


def moments(x: Array) -> tuple[Array, Array]:
    """The mean and the variance of each channel."""
    mean, variance = _call(0, x)
    return mean, variance


def gradient_sums(g: Array, x: Array, mean: Array) -> tuple[Array, Array]:
    """For each channel, the sum of ``g`` and that of ``g * (x - mean)``."""
    total, along = _call(1, g, x, mean)
    return total, along


def _call(which: int, *arrays: Array) -> Any:
    import jax

    vector = jax.ShapeDtypeStruct(arrays[0].shape[-1:], np.dtype(np.float32))
    return jax.ffi.ffi_call(onednn.CHANNEL_SUMS[which], (vector, vector))(*arrays)
