"""Functions of one tensor, element by element: signs, roots, exponentials and logarithms.

Trigonometry, rounding, complex numbers and special functions have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shape_inference import broadcast, unchanged
from runnel.ops.arithmetic import COMPLEX, FLOATS, NUMBERS, SIGNED, conjugate, mul_op
from runnel.ops.half_precision import narrow, widen

SMOOTH = f"{FLOATS}, {COMPLEX}"


def register_unary(name: str, types: str, kernel: Callable[..., Any], **how: Any) -> OpDef:
    """An op whose output has the shape and type of its one input."""
    op_def = register_op(name, inputs="x: T", outputs="y: T", attrs=f"T: {{{types}}}", **how)
    op_def.shape(unchanged)
    op_def.kernel(kernel)
    return op_def


def _register_gradient_op(name: str, kernel: Callable[..., Any]) -> OpDef:
    """An op that computes a gradient from the output ``y`` of another and its gradient ``dy``."""
    op_def = register_op(name, inputs="y: T, dy: T", outputs="z: T", attrs=f"T: {{{SMOOTH}}}")
    op_def.shape(broadcast)

    @op_def.kernel
    def _(xp, y, dy):
        if y.dtype.char in "fd":
            return kernel(xp, y, dy)
        return narrow(kernel(xp, widen(y), widen(dy)), y.dtype)

    return op_def


def constant_like(value: float, x: Tensor) -> Tensor:
    """A scalar constant of the type of ``x``."""
    return constant_tensor(value, x.dtype.base_dtype)


def _half(xp: Any, x: Any) -> Any:
    return xp.asarray(0.5, x.dtype)


# Sign and size --------------------------------------------------------------------------------


def _sign(xp: Any, x: Any) -> Any:
    if xp is np or x.dtype.kind not in "fV":
        return xp.sign(x)
    return xp.where(x == 0, xp.zeros((), x.dtype), xp.sign(x))  # XLA keeps the sign of -0


neg_op = register_unary("Neg", SIGNED, lambda xp, x: xp.negative(x))
abs_op = register_unary("Abs", f"{FLOATS}, int8, int16, int32, int64", lambda xp, x: xp.absolute(x))
sign_op = register_unary("Sign", SIGNED, _sign)
square_op = register_unary("Square", NUMBERS, lambda xp, x: xp.multiply(x, x))


@neg_op.gradient
def _(op, grad):
    return -grad  # sparse where it is sparse


@abs_op.gradient
def _(op, grad):
    return grad * sign_op(op.inputs[0])


@sign_op.gradient
def _(op, grad):
    x, y = op.inputs[0], op.outputs[0]
    if not x.dtype.is_complex:
        return get_op_def("ZerosLike")(x)
    # x / |x| turns with x but does not grow: the part of the gradient along it is lost.
    real = x.dtype.base_dtype.real_dtype
    cast, part = get_op_def("Cast"), get_op_def("Real")
    along = cast(part(mul_op(conjugate(grad), y), Tout=real), DstT=x.dtype.base_dtype)
    size = cast(get_op_def("ComplexAbs")(x, Tout=real), DstT=x.dtype.base_dtype)
    return get_op_def("DivNoNan")(grad - y * along, size)


@square_op.gradient
def _(op, grad):
    x = op.inputs[0]
    return mul_op(grad, mul_op(constant_like(2, x), conjugate(x)))


# Roots and reciprocals ------------------------------------------------------------------------


def _reciprocal(xp, x, *, check):
    if x.dtype.kind == "c":
        undefined = np.array(complex(np.nan, np.nan), x.dtype)
        return xp.where(x == 0, undefined, xp.reciprocal(x))
    if x.dtype.kind not in "iu":
        return xp.reciprocal(x)
    check((x != 0).all(), lambda: "Integer division by zero")
    # 1/x is whole only for 1 and -1.
    return xp.where(xp.abs(x) == 1, x, xp.zeros((), x.dtype))


def _rsqrt(xp: Any, x: Any) -> Any:
    if xp is not np:
        from jax import lax

        return lax.rsqrt(x)
    wide = widen(x)
    if x.dtype.kind == "c":
        infinite = np.array(complex(np.inf, np.nan), x.dtype)
        return np.where(x == 0, infinite, np.reciprocal(np.sqrt(x)))
    return narrow(np.reciprocal(np.sqrt(wide)), x.dtype)


sqrt_op = register_unary("Sqrt", SMOOTH, lambda xp, x: xp.sqrt(x))
rsqrt_op = register_unary("Rsqrt", SMOOTH, _rsqrt)
reciprocal_op = register_unary("Reciprocal", SIGNED, _reciprocal)
inv_op = register_unary("Inv", SIGNED, _reciprocal)

sqrt_grad_op = _register_gradient_op(
    "SqrtGrad", lambda xp, y, dy: dy * _half(xp, y) / xp.conjugate(y)
)
rsqrt_grad_op = _register_gradient_op(
    "RsqrtGrad", lambda xp, y, dy: -_half(xp, y) * dy * xp.conjugate(y) ** 3
)
reciprocal_grad_op = _register_gradient_op(
    "ReciprocalGrad", lambda xp, y, dy: -dy * xp.conjugate(y) * xp.conjugate(y)
)
inv_grad_op = _register_gradient_op(
    "InvGrad", lambda xp, y, dy: -dy * xp.conjugate(y) * xp.conjugate(y)
)


@sqrt_op.gradient
def _(op, grad):
    return sqrt_grad_op(op.outputs[0], grad)


@rsqrt_op.gradient
def _(op, grad):
    return rsqrt_grad_op(op.outputs[0], grad)


@reciprocal_op.gradient
def _(op, grad):
    return reciprocal_grad_op(op.outputs[0], grad)


@inv_op.gradient
def _(op, grad):
    return inv_grad_op(op.outputs[0], grad)


@sqrt_grad_op.gradient
def _(op, grad):
    y = op.inputs[0]
    scaled = grad / y
    return [mul_op(neg_op(conjugate(scaled)), op.outputs[0]), constant_like(0.5, y) * scaled]


@rsqrt_grad_op.gradient
def _(op, grad):
    y, dy = op.inputs
    y_conj, grad_conj = conjugate(y), conjugate(grad)
    slope = constant_like(-1.5, y) * grad_conj * dy * square_op(y_conj)
    return [slope, rsqrt_grad_op(y_conj, grad)]


def _second_reciprocal(op: Any, grad: Tensor) -> list[Tensor]:
    y, dy = op.inputs
    y_conj, grad_conj = conjugate(y), conjugate(grad)
    return [grad_conj * constant_like(-2, y) * dy * y_conj, op.op_def(y_conj, grad)]


reciprocal_grad_op.gradient(_second_reciprocal)
inv_grad_op.gradient(_second_reciprocal)


# Exponentials and logarithms ------------------------------------------------------------------


_ONES = {"f": np.float32(1), "d": np.float64(1)}
"""By NumPy's letter for a type. A number of Python costs a ufunc as much as a thousand elements."""


def _sigmoid(xp: Any, x: Any) -> Any:
    if xp is not np:
        from jax import lax

        return lax.logistic(x)
    result: Any = np.negative(widen(x))
    if result.ndim == 0:
        return narrow(1 / (np.exp(result) + 1), x.dtype)
    # In place: an array of a few thousand numbers costs more to allocate than to compute.
    one: Any = _ONES.get(result.dtype.char, 1)
    np.add(np.exp(result, result), one, result)
    return narrow(np.divide(one, result, result), x.dtype)


exp_op = register_unary("Exp", SMOOTH, lambda xp, x: xp.exp(x))
expm1_op = register_unary("Expm1", SMOOTH, lambda xp, x: xp.expm1(x))
log_op = register_unary("Log", SMOOTH, lambda xp, x: xp.log(x))
log1p_op = register_unary("Log1p", SMOOTH, lambda xp, x: xp.log1p(x))
sigmoid_op = register_unary("Sigmoid", SMOOTH, _sigmoid)
tanh_op = register_unary("Tanh", SMOOTH, lambda xp, x: xp.tanh(x))


def _conjugate(xp: Any, x: Any) -> Any:
    """The complex conjugate of ``x``; NumPy would copy one that is real."""
    return xp.conjugate(x) if x.dtype.kind == "c" else x


def _sigmoid_grad(xp: Any, y: Any, dy: Any) -> Any:
    one = _one_for(xp, y, dy)
    if one is not None:
        product = np.multiply(dy, y)
        return np.multiply(product, np.subtract(one, y), product)
    y = _conjugate(xp, y)
    return dy * y * (1 - y)


def _tanh_grad(xp: Any, y: Any, dy: Any) -> Any:
    one = _one_for(xp, y, dy)
    if one is not None:
        square = np.multiply(y, y)
        return np.multiply(dy, np.subtract(one, square, square), square)
    y = _conjugate(xp, y)
    return dy * (1 - y * y)


def _one_for(xp: Any, y: Any, dy: Any) -> Any:
    """1 in the type of arrays of one shape that NumPy computes with in place; else None."""
    return _ONES.get(y.dtype.char) if xp is np and y.shape == dy.shape != () else None


sigmoid_grad_op = _register_gradient_op("SigmoidGrad", _sigmoid_grad)
tanh_grad_op = _register_gradient_op("TanhGrad", _tanh_grad)


@exp_op.gradient
def _(op, grad):
    return mul_op(grad, conjugate(op.outputs[0]))


@expm1_op.gradient
def _(op, grad):
    return mul_op(grad, exp_op(conjugate(op.inputs[0])))


@log_op.gradient
def _(op, grad):
    return mul_op(grad, reciprocal_op(conjugate(op.inputs[0])))


@log1p_op.gradient
def _(op, grad):
    x = conjugate(op.inputs[0])
    return mul_op(grad, reciprocal_op(constant_like(1, x) + x))


@sigmoid_op.gradient
def _(op, grad):
    return sigmoid_grad_op(op.outputs[0], grad)


@tanh_op.gradient
def _(op, grad):
    return tanh_grad_op(op.outputs[0], grad)


# Both are dy times the conjugate of a slope, so y enters by its conjugate.
@sigmoid_grad_op.gradient
def _(op, grad):
    y, dy = op.inputs
    y_conj = conjugate(y)
    scaled = conjugate(grad) * dy
    return [scaled - constant_like(2, y) * scaled * y_conj, sigmoid_grad_op(y_conj, grad)]


@tanh_grad_op.gradient
def _(op, grad):
    y, dy = op.inputs
    y_conj = conjugate(y)
    return [conjugate(grad) * constant_like(-2, y) * dy * y_conj, tanh_grad_op(y_conj, grad)]


# Functions ------------------------------------------------------------------------------------


def named_unary(op_def: OpDef, x: Any, name: str | None) -> Tensor:
    """``op_def`` of ``x``, which may be anything that converts to a tensor."""
    if type(x) is Tensor:
        return op_def(x, name=name)
    with name_scope(name, op_def.name, [x]) as scope:
        return op_def(convert_to_tensor(x, name="x"), name=scope)


def negative(x: Any, name: str | None = None) -> Any:
    """``-x``; an ``IndexedSlices`` stays sparse."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(neg_op(x.values, name=name), x.indices, x.dense_shape)
    return named_unary(neg_op, x, name)


def abs(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 (TensorFlow's name)
    """The absolute value; the modulus, a real tensor, of a complex one.

    Example:
        >>> tf.abs(tf.constant([-1.5, 2.0]))
        <tf.Tensor 'Abs:0' shape=(2,) dtype=float32>
    """
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            real = x.dtype.base_dtype.real_dtype
            return get_op_def("ComplexAbs")(x, Tout=real, name=scope)
        return abs_op(x, name=scope)


def sign(x: Any, name: str | None = None) -> Tensor:
    """-1, 0 or 1 with the sign of ``x``; ``x / |x|`` for complex numbers."""
    return named_unary(sign_op, x, name)


def square(x: Any, name: str | None = None) -> Tensor:
    """``x * x``."""
    return named_unary(square_op, x, name)


def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root."""
    return named_unary(sqrt_op, x, name)


def rsqrt(x: Any, name: str | None = None) -> Tensor:
    """One over the square root."""
    return named_unary(rsqrt_op, x, name)


def reciprocal(x: Any, name: str | None = None) -> Tensor:
    """``1 / x``."""
    return named_unary(reciprocal_op, x, name)


def exp(x: Any, name: str | None = None) -> Tensor:
    """e to the power ``x``."""
    return named_unary(exp_op, x, name)


def expm1(x: Any, name: str | None = None) -> Tensor:
    """``exp(x) - 1``, accurate also near zero."""
    return named_unary(expm1_op, x, name)


def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return named_unary(log_op, x, name)


def log1p(x: Any, name: str | None = None) -> Tensor:
    """``log(1 + x)``, accurate also near zero."""
    return named_unary(log1p_op, x, name)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return named_unary(sigmoid_op, x, name)


def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent."""
    return named_unary(tanh_op, x, name)
