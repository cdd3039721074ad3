"""The proximal operator of L1 and L2 regularisation."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import sign


def soft_threshold(value: Tensor, rate: Any, l1: Tensor, l2: Tensor) -> Tensor:
    """The point that a step ``rate`` towards less ``l1 * |v| + l2 / 2 * v * v`` leads to."""
    return sign(value) * maximum(absolute(value) - rate * l1, 0) / (1 + l2 * rate)
