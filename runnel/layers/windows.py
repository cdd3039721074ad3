"""Windows of layers, as users describe them: numbers for each dimension, and where channels are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def numbers(value: Any, rank: int, what: str) -> tuple[int, ...]:
    """``value``, one integer or one for each of ``rank`` dimensions, as a tuple."""
    # NumPy's integers and tf.Dimension are single numbers, too.
    found = tuple(value) if isinstance(value, Iterable) else (value,) * rank
    if len(found) != rank or not all(isinstance(n, int) and n > 0 for n in map(int, found)):
        raise ValueError(
            f"The `{what}` argument must be a positive integer or a tuple of {rank}, not {value!r}"
        )
    return tuple(map(int, found))


def layout(data_format: str, rank: int) -> str:
    """TensorFlow's letters for ``channels_last`` and ``channels_first``."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"data_format must be 'channels_last' or 'channels_first', not {data_format!r}"
        )
    space = "DHW"[3 - rank :]
    return f"N{space}C" if data_format == "channels_last" else f"NC{space}"


def window_length(
    size: int | None, window: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """How many places a window has along a dimension of ``size``."""
    if size is None:
        return None
    reach = (window - 1) * dilation + 1
    free = size if padding == "same" else size - reach + 1
    return -(-free // stride)


def deconvolved(size: Any, window: int, padding: str, stride: int) -> Any:
    """The size of which a convolution makes ``size``, as large as it can be."""
    found = size * stride
    return found + max(window - stride, 0) if padding == "valid" else found
