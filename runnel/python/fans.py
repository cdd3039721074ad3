"""Names of ``init_ops`` that are not public."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__: list[str] = []


def _compute_fans(shape: Sequence[int]) -> tuple[float, float]:
    """How many inputs and outputs a unit with weights of this shape has."""
    if len(shape) < 1:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    window = math.prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window
