"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import conjugate, mul_op
from runnel.ops.elementwise import (
    SMOOTH,
    constant_like,
    named_unary,
    neg_op,
    reciprocal_op,
    register_unary,
    sqrt_op,
    square_op,
)

sin_op = register_unary("Sin", SMOOTH, lambda xp, x: xp.sin(x))
cos_op = register_unary("Cos", SMOOTH, lambda xp, x: xp.cos(x))
tan_op = register_unary("Tan", SMOOTH, lambda xp, x: xp.tan(x))
asin_op = register_unary("Asin", SMOOTH, lambda xp, x: xp.arcsin(x))
acos_op = register_unary("Acos", SMOOTH, lambda xp, x: xp.arccos(x))
atan_op = register_unary("Atan", SMOOTH, lambda xp, x: xp.arctan(x))
sinh_op = register_unary("Sinh", SMOOTH, lambda xp, x: xp.sinh(x))
cosh_op = register_unary("Cosh", SMOOTH, lambda xp, x: xp.cosh(x))
asinh_op = register_unary("Asinh", SMOOTH, lambda xp, x: xp.arcsinh(x))
acosh_op = register_unary("Acosh", SMOOTH, lambda xp, x: xp.arccosh(x))
atanh_op = register_unary("Atanh", SMOOTH, lambda xp, x: xp.arctanh(x))


def _one_minus_square(x: Tensor) -> Tensor:
    return constant_like(1, x) - square_op(x)


@sin_op.gradient
def _(op, grad):
    return grad * cos_op(conjugate(op.inputs[0]))


@cos_op.gradient
def _(op, grad):
    return neg_op(mul_op(grad, sin_op(conjugate(op.inputs[0]))))


@tan_op.gradient
def _(op, grad):
    secant = reciprocal_op(cos_op(conjugate(op.inputs[0])))
    return grad * square_op(secant)


@asin_op.gradient
def _(op, grad):
    return grad * reciprocal_op(sqrt_op(_one_minus_square(conjugate(op.inputs[0]))))


@acos_op.gradient
def _(op, grad):
    return neg_op(grad * reciprocal_op(sqrt_op(_one_minus_square(conjugate(op.inputs[0])))))


@atan_op.gradient
def _(op, grad):
    x = conjugate(op.inputs[0])
    return grad * reciprocal_op(constant_like(1, x) + square_op(x))


@sinh_op.gradient
def _(op, grad):
    return grad * cosh_op(conjugate(op.inputs[0]))


@cosh_op.gradient
def _(op, grad):
    return grad * sinh_op(conjugate(op.inputs[0]))


@asinh_op.gradient
def _(op, grad):
    return grad / cosh_op(conjugate(op.outputs[0]))


@acosh_op.gradient
def _(op, grad):
    return grad / sinh_op(conjugate(op.outputs[0]))


@atanh_op.gradient
def _(op, grad):
    return grad * reciprocal_op(_one_minus_square(conjugate(op.inputs[0])))


def sin(x: Any, name: str | None = None) -> Tensor:
    """The sine of ``x`` radians."""
    return named_unary(sin_op, x, name)


def cos(x: Any, name: str | None = None) -> Tensor:
    """The cosine of ``x`` radians."""
    return named_unary(cos_op, x, name)


def tan(x: Any, name: str | None = None) -> Tensor:
    """The tangent of ``x`` radians."""
    return named_unary(tan_op, x, name)


def asin(x: Any, name: str | None = None) -> Tensor:
    """The angle whose sine is ``x``; NaN outside [-1, 1]."""
    return named_unary(asin_op, x, name)


def acos(x: Any, name: str | None = None) -> Tensor:
    """The angle whose cosine is ``x``; NaN outside [-1, 1]."""
    return named_unary(acos_op, x, name)


def atan(x: Any, name: str | None = None) -> Tensor:
    """The angle whose tangent is ``x``."""
    return named_unary(atan_op, x, name)


def sinh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic sine."""
    return named_unary(sinh_op, x, name)


def cosh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic cosine."""
    return named_unary(cosh_op, x, name)


def asinh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
    return named_unary(asinh_op, x, name)


def acosh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
    return named_unary(acosh_op, x, name)


def atanh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return named_unary(atanh_op, x, name)
