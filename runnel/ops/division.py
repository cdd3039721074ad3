"""Division and remainders: real, floored and truncated.

Integers are divided exactly; an integer divisor of zero is an error, as in TensorFlow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.ops.arithmetic import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    conjugate,
    mul_op,
    register_binary,
)
from runnel.ops.broadcast_gradient import unbroadcast


def _is_integer(x: Any) -> bool:
    return x.dtype.kind in "iu"


def _require_nonzero(x: Any, y: Any, check: Any) -> None:
    # Nothing may be divided, as when a list of no axes is taken modulo a rank of 0.
    if 0 in np.shape(x):
        return
    check((y != 0).all(), lambda: "Integer division by zero")


def _truncated(xp: Any, x: Any, y: Any) -> Any:
    """Integer division that rounds towards zero, as C does."""
    return xp.floor_divide(x - xp.fmod(x, y), y)


def _divide(xp, x, y, *, check):
    if _is_integer(x):
        _require_nonzero(x, y, check)
        return _truncated(xp, x, y)
    if x.dtype.kind == "c":
        return _complex_quotient(xp, x, y)
    return xp.divide(x, y)


def _complex_quotient(xp: Any, x: Any, y: Any) -> Any:
    """``x / y``; by zero it has no direction, so both parts are NaN."""
    undefined = np.array(complex(np.nan, np.nan), y.dtype)
    return xp.where(y == 0, undefined, xp.divide(x, y))


def _truncate_divide(xp, x, y, *, check):
    quotient = _divide(xp, x, y, check=check)
    return xp.trunc(quotient) if quotient.dtype.kind in "fV" else quotient


def _floor_divide(xp, x, y, *, check):
    if _is_integer(x):
        _require_nonzero(x, y, check)
        return xp.floor_divide(x, y)
    return xp.floor(xp.divide(x, y))


def _floor_mod(xp, x, y, *, check):
    if _is_integer(x):
        _require_nonzero(x, y, check)
    return xp.remainder(x, y)


def _truncate_mod(xp, x, y, *, check):
    if _is_integer(x):
        _require_nonzero(x, y, check)
    return xp.fmod(x, y)


real_div_op = register_binary("RealDiv", NUMBERS, _divide)
div_op = register_binary("Div", NUMBERS, _divide)
floor_div_op = register_binary("FloorDiv", NUMBERS, _floor_divide)
truncate_div_op = register_binary("TruncateDiv", NUMBERS, _truncate_divide)
floor_mod_op = register_binary("FloorMod", f"{FLOATS}, {INTEGERS}", _floor_mod)
truncate_mod_op = register_binary("TruncateMod", f"{FLOATS}, int32, int64", _truncate_mod)
mod_op = register_binary("Mod", f"{FLOATS}, int32, int64", _truncate_mod)


def _quotient_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    divide: OpDef = op.op_def
    x_conj, y_conj = conjugate(x), conjugate(y)
    slope = divide(divide(get_op_def("Neg")(x_conj), y_conj), y_conj)
    return unbroadcast(x, y, divide(grad, y_conj), mul_op(grad, slope))


real_div_op.gradient(_quotient_gradient)
div_op.gradient(_quotient_gradient)


def _no_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    return [None, None]  # a step function: its slope is zero wherever it has one


floor_div_op.gradient(_no_gradient)
truncate_div_op.gradient(_no_gradient)


@floor_mod_op.gradient
def _(op, grad):
    x, y = op.inputs
    return unbroadcast(x, y, grad, mul_op(grad, get_op_def("Neg")(floor_div_op(x, y))))


def _truncate_mod_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return unbroadcast(x, y, grad, mul_op(grad, get_op_def("Neg")(truncate_div_op(x, y))))


truncate_mod_op.gradient(_truncate_mod_gradient)
mod_op.gradient(_truncate_mod_gradient)


# Functions ------------------------------------------------------------------------------------

_TRUE_DIVISION = {
    **dict.fromkeys(("uint8", "int8", "uint16", "int16"), as_dtype("float32")),
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), as_dtype("float64")),
}


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor, DType]:
    x = convert_to_tensor(x, name="x")
    y = convert_to_tensor(y, name="y", dtype_hint=x.dtype.base_dtype)
    kind = x.dtype.base_dtype
    if kind is not y.dtype.base_dtype:
        raise TypeError(
            f"x and y must have the same dtype, got {kind.name} != {y.dtype.base_dtype.name}. "
            "tf.cast converts one to the other's."
        )
    return x, y, kind


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` by Python 3's rules: integers are converted to floating point first.

    8- and 16-bit integers become float32, wider ones float64.

    Example:
        >>> tf.truediv(7, 2)
        <tf.Tensor 'truediv:0' shape=() dtype=float64>
    """
    with name_scope(name, "truediv", [x, y]) as scope:
        x, y, kind = _pair(x, y)
        wide = _TRUE_DIVISION.get(kind.name)
        if wide is not None:
            cast = get_op_def("Cast")
            x, y = cast(x, DstT=wide), cast(y, DstT=wide)
        return real_div_op(x, y, name=scope)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` by Python 2's rules: floored for integers, real for the others."""
    with name_scope(name, "div", [x, y]) as scope:
        x, y, kind = _pair(x, y)
        real = kind.is_floating or kind.is_complex
        return (real_div_op if real else floor_div_op)(x, y, name=scope)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` by Python 3's rules, as :func:`truediv`."""
    if name is None:
        return x / y if isinstance(x, Tensor) or isinstance(y, Tensor) else truediv(x, y)
    return truediv(x, y, name=name)


def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x // y``, rounded towards minus infinity."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return floor_div_op(x, y, name=scope)


def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x // y``, rounded towards minus infinity."""
    return floor_div_op(x, y, name=name)


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` for floating point and complex tensors."""
    return real_div_op(x, y, name=name)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y`` rounded towards zero."""
    return truncate_div_op(x, y, name=name)


def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of floored division: it has the sign of ``y``, as Python's ``%``."""
    return floor_mod_op(x, y, name=name)


mod = floormod


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of truncated division: it has the sign of ``x``, as C's ``%``."""
    return truncate_mod_op(x, y, name=name)
