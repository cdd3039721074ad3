"""Rounding, and telling finite numbers from infinities and NaN."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.ops.arithmetic import FLOATS, SIGNED
from runnel.ops.elementwise import named_unary, register_unary


def _round(xp: Any, x: Any) -> Any:
    if x.dtype.kind in "iu":
        return x
    if x.dtype.kind == "c":
        return (xp.rint(xp.real(x)) + 1j * xp.rint(xp.imag(x))).astype(x.dtype)
    return xp.rint(x)  # halves go to the even neighbour


floor_op = register_unary("Floor", FLOATS, lambda xp, x: xp.floor(x))
ceil_op = register_unary("Ceil", FLOATS, lambda xp, x: xp.ceil(x))
round_op = register_unary("Round", SIGNED, _round)
rint_op = register_unary("Rint", FLOATS, lambda xp, x: xp.rint(x))

for _op in (floor_op, ceil_op, round_op, rint_op):
    # Steps: flat wherever there is a slope at all.
    _op.gradient(lambda op, grad: None)


def _register_test(name: str, kernel: Any) -> OpDef:
    op_def = register_op(
        name, inputs="x: T", outputs="y: bool", attrs=f"T: {{{FLOATS}}}", differentiable=False
    )
    op_def.shape(unchanged)
    op_def.kernel(kernel)
    return op_def


is_nan_op = _register_test("IsNan", lambda xp, x: xp.isnan(x))
is_inf_op = _register_test("IsInf", lambda xp, x: xp.isinf(x))
is_finite_op = _register_test("IsFinite", lambda xp, x: xp.isfinite(x))


def floor(x: Any, name: str | None = None) -> Tensor:
    """The largest integer that is not greater than ``x``."""
    return named_unary(floor_op, x, name)


def ceil(x: Any, name: str | None = None) -> Tensor:
    """The smallest integer that is not less than ``x``."""
    return named_unary(ceil_op, x, name)


def round(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 (TensorFlow's name)
    """The nearest integer; halves go to the even one.

    Example:
        >>> tf.Session().run(tf.round([0.5, 1.5, 2.4]))
        array([0., 2., 2.], dtype=float32)
    """
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else round_op(x, name=name)


def rint(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer; halves go to the even one."""
    return named_unary(rint_op, x, name)


def is_nan(x: Any, name: str | None = None) -> Tensor:
    """Where ``x`` is not a number."""
    return named_unary(is_nan_op, x, name)


def is_inf(x: Any, name: str | None = None) -> Tensor:
    """Where ``x`` is infinite."""
    return named_unary(is_inf_op, x, name)


def is_finite(x: Any, name: str | None = None) -> Tensor:
    """Where ``x`` is neither infinite nor NaN."""
    return named_unary(is_finite_op, x, name)
