"""Operations on the bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged
from runnel.ops.arithmetic import INTEGERS, register_binary

bitwise_and_op = register_binary(
    "BitwiseAnd", INTEGERS, lambda xp, x, y: xp.bitwise_and(x, y), differentiable=False
)
bitwise_or_op = register_binary(
    "BitwiseOr", INTEGERS, lambda xp, x, y: xp.bitwise_or(x, y), differentiable=False
)
bitwise_xor_op = register_binary(
    "BitwiseXor", INTEGERS, lambda xp, x, y: xp.bitwise_xor(x, y), differentiable=False
)


def _clamped(xp: Any, x: Any, y: Any) -> Any:
    """Shift counts between 0 and the width less one, as TensorFlow limits them."""
    return xp.clip(y, xp.zeros((), y.dtype), xp.asarray(8 * x.dtype.itemsize - 1, y.dtype))


left_shift_op = register_binary(
    "LeftShift",
    INTEGERS,
    lambda xp, x, y: xp.left_shift(x, _clamped(xp, x, y)),
    differentiable=False,
)
right_shift_op = register_binary(
    "RightShift",
    INTEGERS,
    lambda xp, x, y: xp.right_shift(x, _clamped(xp, x, y)),
    differentiable=False,
)
invert_op = register_op(
    "Invert", inputs="x: T", outputs="y: T", attrs=f"T: {{{INTEGERS}}}", differentiable=False
)
invert_op.shape(unchanged)
population_count_op = register_op(
    "PopulationCount",
    inputs="x: T",
    outputs="y: uint8",
    attrs=f"T: {{{INTEGERS}}}",
    differentiable=False,
)
population_count_op.shape(unchanged)


@invert_op.kernel
def _(xp, x):
    return xp.invert(x)


@population_count_op.kernel
def _(xp, x):
    # bitwise_count counts the bits of the absolute value: look at the bits as unsigned.
    unsigned = x.astype(f"uint{8 * x.dtype.itemsize}")
    return xp.bitwise_count(unsigned).astype(np.uint8)


def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in both ``x`` and ``y``."""
    return bitwise_and_op(x, y, name=name)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in ``x`` or ``y``."""
    return bitwise_or_op(x, y, name=name)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits set in just one of ``x`` and ``y``."""
    return bitwise_xor_op(x, y, name=name)


def invert(x: Any, name: str | None = None) -> Tensor:
    """``x`` with every bit flipped."""
    return invert_op(x, name=name)


def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits of ``x`` moved up by ``y`` places."""
    return left_shift_op(x, y, name=name)


def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits of ``x`` moved down by ``y`` places; a sign bit is repeated."""
    return right_shift_op(x, y, name=name)


def population_count(x: Any, name: str | None = None) -> Tensor:
    """The number of bits that are set in each element."""
    return population_count_op(x, name=name)
