"""Refuses arrays that are too large for any machine's addresses, or for this machine's memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from runnel.graph.errors import InvalidArgumentError, ResourceExhaustedError
from runnel.graph.shapes import format_dims

# Addresses have 57 bits at most today. XLA ends the process when the bytes of an array do not fit
# 64 bits, so the arrays that it makes beside ours (wider, padded) have room below that.
MAX_BYTES = 1 << 57


def require_addressable(dims: Sequence[int], itemsize: int) -> None:
    """An error when no machine can hold an array of these dimensions.

    Empty dimensions do not count: an array of shape (2**40, 2**40, 0) is refused, too, because
    neither NumPy nor XLA can describe it.
    """
    # Most arrays are small; their dimensions are multiplied once.
    size = math.prod(dims) * itemsize
    if 0 < size <= MAX_BYTES:
        return
    size = math.prod([d for d in dims if d > 0]) * itemsize
    if size > MAX_BYTES:
        raise InvalidArgumentError(
            None,
            None,
            f"An array of shape {format_dims(tuple(dims))} would take {float(size):.2g} bytes, "
            f"more than any machine can address ({MAX_BYTES:.2g}). Check the values that its "
            "shape comes from",
        )


def require_room(dims: Sequence[int], itemsize: int) -> None:
    """An error when this machine cannot hold an array of these dimensions.

    For NumPy's views that repeat elements: they take no memory until something copies them.
    """
    require_addressable(dims, itemsize)
    size = math.prod(dims) * itemsize
    if size >= 1 << 30 and hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if size > memory:
            raise ResourceExhaustedError(
                None,
                None,
                f"An array of shape {format_dims(tuple(dims))} would take {size:.2g} bytes; this "
                f"machine has {memory:.2g} bytes of memory",
            )
