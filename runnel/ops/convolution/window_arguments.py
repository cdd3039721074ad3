"""Arguments of the functions that slide a window: short forms, and padding as amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.ops.convolution.sliding_window import spatial_axes


def per_axis(name: str, value: Any, data_format: str) -> list[int]:
    """One number for each axis of ``data_format``, from any of the forms that users may write.

    ``value`` is one number for all spatial axes, or a list with one number for each of those, or
    for every axis; None is 1.

    >>> per_axis("strides", 2, "NHWC"), per_axis("strides", [2, 3], "NCHW")
    ([1, 2, 2, 1], [1, 1, 2, 3])
    """
    axes = spatial_axes(data_format)
    if value is None:
        return [1] * len(data_format)
    values = list(value) if isinstance(value, Sequence) or hasattr(value, "__len__") else [value]
    if len(values) == len(data_format):
        return values
    if len(values) == 1:
        values *= len(axes)
    if len(values) != len(axes):
        raise ValueError(
            f"{name} must be one number, or a list of {len(axes)} (one for each spatial axis of "
            f"{data_format}) or of {len(data_format)} (one for each axis), but got {value!r}"
        )
    complete = [1] * len(data_format)
    for axis, number in zip(axes, values):
        complete[axis] = number
    return complete


def padding_attributes(padding: Any, rank: int = 4) -> dict[str, Any]:
    """The attributes ``padding`` and ``explicit_paddings``, from a name or a list of pairs.

    >>> padding_attributes([[0, 0], [1, 2], [0, 0]], rank=3)
    {'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 0]}
    """
    if padding == "EXPLICIT":
        raise ValueError(
            "padding 'EXPLICIT' is written as the list of its amounts: a pair (before, after) for "
            "each dimension"
        )
    if not isinstance(padding, list | tuple):
        return {"padding": padding, "explicit_paddings": []}
    pairs = [list(pair) if isinstance(pair, list | tuple) else pair for pair in padding]
    if len(pairs) != rank or any(not isinstance(p, list) or len(p) != 2 for p in pairs):
        raise ValueError(
            f"padding must be 'SAME', 'VALID' or a list of {rank} pairs, one (before, after) for "
            f"each dimension, but got {padding!r}"
        )
    return {"padding": "EXPLICIT", "explicit_paddings": [n for pair in pairs for n in pair]}


def named_padding(padding: Any, what: str) -> str:
    """``padding`` where only names will do."""
    if isinstance(padding, list | tuple):
        raise ValueError(f"{what} takes no list of paddings, only 'SAME' or 'VALID': {padding!r}")
    return padding


_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def layout(data_format: str | None, spatial: int) -> str:
    """``data_format``, checked, or the one with the channels last for None.

    >>> layout(None, 2)
    'NHWC'
    """
    known = _FORMATS[spatial]
    if data_format is not None and data_format not in known:
        raise ValueError(f"data_format must be {' or '.join(known)}, but got {data_format!r}")
    return data_format or known[0]
