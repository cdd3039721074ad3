"""Comparisons and logic, elementwise with broadcasting.

``==`` and ``!=`` between tensors ask whether they are the same tensor, as in TensorFlow 1.15;
:func:`equal` compares values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.apply import apply_op
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shape_inference import broadcast, unchanged
from runnel.graph.shapes import broadcast_dims, is_fully_defined
from runnel.ops.operators import override_binary, override_comparison


def _register_equality(name: str, when_incompatible: bool, compare: Callable[..., Any]) -> OpDef:
    op_def = register_op(
        name,
        inputs="x: T, y: T",
        outputs="z: bool",
        attrs=["T: type", "incompatible_shape_error: bool = true"],
        differentiable=False,
    )

    @op_def.shape
    def _(x, y, *, incompatible_shape_error):
        if incompatible_shape_error:
            return broadcast(x, y)
        if x.dims == () or y.dims == ():
            return y.dims if x.dims == () else x.dims
        if not is_fully_defined(x.dims) or not is_fully_defined(y.dims):
            return None  # the shapes may turn out not to fit, which gives a scalar
        try:
            return broadcast_dims(x.dims, y.dims)
        except ValueError:
            return ()

    @op_def.kernel
    def _(xp, x, y, *, incompatible_shape_error):
        if not incompatible_shape_error:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return np.asarray(when_incompatible)
        result = compare(xp, x, y)
        return result if x.dtype != object else np.asarray(result, np.bool_)

    return op_def


equal_op = _register_equality("Equal", False, lambda xp, x, y: xp.equal(x, y))
not_equal_op = _register_equality("NotEqual", True, lambda xp, x, y: xp.not_equal(x, y))


def _register_order(name: str, compare: Callable[..., Any]) -> OpDef:
    op_def = register_op(
        name,
        inputs="x: T, y: T",
        outputs="z: bool",
        attrs="T: realnumbertype",
        differentiable=False,
    )
    op_def.shape(broadcast)
    op_def.kernel(compare)
    return op_def


less_op = _register_order("Less", lambda xp, x, y: xp.less(x, y))
less_equal_op = _register_order("LessEqual", lambda xp, x, y: xp.less_equal(x, y))
greater_op = _register_order("Greater", lambda xp, x, y: xp.greater(x, y))
greater_equal_op = _register_order("GreaterEqual", lambda xp, x, y: xp.greater_equal(x, y))


def _register_logic(name: str, combine: Callable[..., Any]) -> OpDef:
    op_def = register_op(name, inputs="x: bool, y: bool", outputs="z: bool", differentiable=False)
    op_def.shape(broadcast)
    op_def.kernel(combine)
    return op_def


logical_and_op = _register_logic("LogicalAnd", lambda xp, x, y: xp.logical_and(x, y))
logical_or_op = _register_logic("LogicalOr", lambda xp, x, y: xp.logical_or(x, y))
logical_not_op = register_op(
    "LogicalNot", inputs="x: bool", outputs="y: bool", differentiable=False
)
logical_not_op.shape(unchanged)


@logical_not_op.kernel
def _(xp, x):
    return xp.logical_not(x)


approximate_equal_op = register_op(
    "ApproximateEqual",
    inputs="x: T, y: T",
    outputs="z: bool",
    attrs=["T: numbertype", "tolerance: float = 1e-05"],
    differentiable=False,
)


@approximate_equal_op.shape
def _(x, y):
    if x.dims is not None and y.dims is not None and len(x.dims) != len(y.dims):
        raise ValueError("x and y must have the same shape")
    return broadcast(x, y)


@approximate_equal_op.kernel
def _(xp, x, y, *, tolerance):
    if x.shape != y.shape:
        raise ValueError(
            f"x and y must be of the same shape, not {list(x.shape)} and {list(y.shape)}"
        )
    difference = xp.where(x > y, x - y, y - x) if x.dtype.kind in "iu" else xp.abs(x - y)
    return difference < np.asarray(tolerance, difference.dtype)


# Functions ------------------------------------------------------------------------------------


def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x`` and ``y`` are equal.

    Example:
        >>> tf.Session().run(tf.equal([1, 2], [1, 3]))
        array([ True, False])
    """
    return equal_op(x, y, name=name)


def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x`` and ``y`` differ."""
    return not_equal_op(x, y, name=name)


def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x < y``."""
    return less_op(x, y, name=name)


def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x <= y``."""
    return less_equal_op(x, y, name=name)


def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x > y``."""
    return greater_op(x, y, name=name)


def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x >= y``."""
    return greater_equal_op(x, y, name=name)


def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where both ``x`` and ``y`` are true."""
    return logical_and_op(x, y, name=name)


def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Where ``x`` or ``y`` is true."""
    return logical_or_op(x, y, name=name)


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Where ``x`` is false."""
    return logical_not_op(x, name=name)


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Where just one of ``x`` and ``y`` is true."""
    either = logical_or_op(x, y)
    both = logical_and_op(x, y)
    return logical_and_op(either, logical_not_op(both), name=name)


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05, name: str | None = None) -> Tensor:
    """Where ``x`` and ``y``, of the same shape, differ by less than ``tolerance``."""
    return approximate_equal_op(x, y, tolerance=tolerance, name=name)


# Operators ------------------------------------------------------------------------------------


def _logical_or_bitwise(logical: Callable[..., Any], bitwise: str) -> Callable[..., Any]:
    def function(x: Tensor, y: Tensor, name: str) -> Tensor:
        if x.dtype.is_bool:
            return logical(x, y, name)
        return get_op_def(bitwise)(x, y, name=name)

    return function


def _invert(x: Tensor) -> Tensor:
    op_def = logical_not_op if x.dtype.is_bool else get_op_def("Invert")
    return apply_op(op_def, (x,), {}, None)


override_comparison("__lt__", less_op)
override_comparison("__le__", less_equal_op)
override_comparison("__gt__", greater_op)
override_comparison("__ge__", greater_equal_op)
override_binary("and", _logical_or_bitwise(logical_and, "BitwiseAnd"))
override_binary("or", _logical_or_bitwise(logical_or, "BitwiseOr"))
override_binary("xor", _logical_or_bitwise(logical_xor, "BitwiseXor"))
Tensor._override_operator("__invert__", _invert)
