"""The modified Bessel functions of the first kind, of orders 0 and 1."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import FLOATS
from runnel.ops.comparison import equal
from runnel.ops.elementwise import (
    abs,  # noqa: A004 (TensorFlow's name)
    constant_like,
    exp,
    named_unary,
    reciprocal,
    register_unary,
    sign,
)
from runnel.ops.fill import ones_like
from runnel.ops.incomplete_functions import scipy_kernel
from runnel.ops.selection import where_v2

i0e_op = register_unary("BesselI0e", FLOATS, scipy_kernel("i0e"))
i1e_op = register_unary("BesselI1e", FLOATS, scipy_kernel("i1e"))


@i0e_op.gradient
def _(op, grad):
    x = op.inputs[0]
    return grad * (i1e_op(x) - sign(x) * op.outputs[0])


@i1e_op.gradient
def _(op, grad):
    x = op.inputs[0]
    zero = equal(x, constant_like(0, x))
    usual = i0e_op(x) - op.outputs[0] * (sign(x) + reciprocal(where_v2(zero, ones_like(x), x)))
    return grad * where_v2(zero, constant_like(0.5, x), usual)


def bessel_i0e(x: Any, name: str | None = None) -> Tensor:
    """:func:`bessel_i0` times ``exp(-abs(x))``, which stays finite.

    Example:
        >>> tf.Session().run(tf.math.bessel_i0e(0.0))
        1.0
    """
    return named_unary(i0e_op, x, name)


def bessel_i1e(x: Any, name: str | None = None) -> Tensor:
    """:func:`bessel_i1` times ``exp(-abs(x))``, which stays finite."""
    return named_unary(i1e_op, x, name)


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    Example:
        >>> tf.Session().run(tf.math.bessel_i0(1.0))
        1.2660658
    """
    with name_scope(name, "bessel_i0", [x]):
        x = convert_to_tensor(x, name="x")
        return exp(abs(x)) * i0e_op(x)


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    with name_scope(name, "bessel_i1", [x]):
        x = convert_to_tensor(x, name="x")
        return exp(abs(x)) * i1e_op(x)
