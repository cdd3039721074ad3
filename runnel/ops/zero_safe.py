"""Products, quotients and logarithms in which a zero wins over infinity and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.ops.arithmetic import COMPLEX, FLOATS, add_op, conjugate, mul_op, register_binary
from runnel.ops.broadcast_gradient import unbroadcast

_SMOOTH = f"{FLOATS}, {COMPLEX}"


def _zero_of(xp: Any, x: Any) -> Any:
    """A zero of the element type of ``x``."""
    return xp.zeros((), x.dtype)


def _multiply_no_nan(xp: Any, x: Any, y: Any) -> Any:
    zero = _zero_of(xp, x)
    return xp.where(y == zero, zero, x * y)


mul_no_nan_op = register_binary("MulNoNan", _SMOOTH, _multiply_no_nan)


@mul_no_nan_op.gradient
def _(op, grad):
    x, y = op.inputs
    return unbroadcast(x, y, mul_no_nan_op(grad, conjugate(y)), mul_no_nan_op(conjugate(x), grad))


def _divide_no_nan(xp: Any, x: Any, y: Any) -> Any:
    zero = _zero_of(xp, y)
    is_zero = y == zero
    # Where the divisor is zero the quotient is not used; dividing by one keeps it finite.
    return xp.where(is_zero, zero, x / xp.where(is_zero, xp.ones((), y.dtype), y))


def _x_divided(xp: Any, x: Any, y: Any) -> Any:
    zero = _zero_of(xp, x)
    return xp.where(x == zero, zero, x / y)


div_no_nan_op = register_binary("DivNoNan", _SMOOTH, _divide_no_nan)
xdivy_op = register_binary("Xdivy", _SMOOTH, _x_divided)


@div_no_nan_op.gradient
def _(op, grad):
    x, y = op.inputs
    x_conj, y_conj = conjugate(x), conjugate(y)
    slope = div_no_nan_op(div_no_nan_op(get_op_def("Neg")(x_conj), y_conj), y_conj)
    return unbroadcast(x, y, div_no_nan_op(grad, y_conj), mul_op(grad, slope))


@xdivy_op.gradient
def _(op, grad):
    x, y = op.inputs
    kind = x.dtype.base_dtype
    zero = convert_to_tensor(0, kind)
    nonzero = get_op_def("Cast")(get_op_def("NotEqual")(x, zero), DstT=kind)
    negative = get_op_def("Neg")(x)
    partial_y = xdivy_op(negative, get_op_def("Square")(y))
    return unbroadcast(
        x,
        y,
        mul_op(conjugate(xdivy_op(nonzero, y)), grad),
        mul_op(conjugate(partial_y), grad),
    )


def _times_log(log: str) -> Callable[..., Any]:
    def kernel(xp, x, y):
        zero = _zero_of(xp, x)
        return xp.where(x == zero, zero, x * getattr(xp, log)(y))

    return kernel


xlogy_op = register_binary("Xlogy", _SMOOTH, _times_log("log"))
xlog1py_op = register_binary("Xlog1py", _SMOOTH, _times_log("log1p"))


def _times_log_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    kind = x.dtype.base_dtype
    nonzero = get_op_def("Cast")(get_op_def("NotEqual")(x, constant_tensor(0, kind)), DstT=kind)
    denominator = y if op.type == "Xlogy" else add_op(y, constant_tensor(1, kind))
    partial_x = op.op_def(nonzero, y)
    partial_y = get_op_def("Xdivy")(x, denominator)
    return unbroadcast(x, y, mul_op(conjugate(partial_x), grad), mul_op(conjugate(partial_y), grad))


xlogy_op.gradient(_times_log_gradient)
xlog1py_op.gradient(_times_log_gradient)


# Functions ------------------------------------------------------------------------------------


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x * y``, and 0 wherever ``y`` is 0, even where ``x`` is infinite or NaN."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return mul_no_nan_op(x, y, name=scope)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y``, and 0 wherever ``y`` is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return div_no_nan_op(x, y, name=scope)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """``1 / x``, and 0 wherever ``x`` is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        one = convert_to_tensor(1, x.dtype.base_dtype, name="one")
        return div_no_nan_op(one, x, name=scope)


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x / y``, and 0 wherever ``x`` is 0."""
    return xdivy_op(x, y, name=name)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x * log(y)``, and 0 wherever ``x`` is 0."""
    return xlogy_op(x, y, name=name)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x * log1p(y)``, and 0 wherever ``x`` is 0."""
    return xlog1py_op(x, y, name=name)
