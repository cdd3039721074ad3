"""Binary arithmetic with broadcasting: sums, products, powers, extrema and their relatives.

Division and remainders are in ``division.py``, Python's operators in ``operators.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shape_inference import broadcast
from runnel.graph.shapes import Dims, TensorShape, merge_dims
from runnel.ops.broadcast_gradient import Gradient, unbroadcast

FLOATS = "float, double, half, bfloat16"  # the commonest first: it is looked up by scanning
COMPLEX = "complex64, complex128"
INTEGERS = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"
NUMBERS = f"{FLOATS}, {INTEGERS}, {COMPLEX}"
SIGNED = f"{FLOATS}, int8, int16, int32, int64, {COMPLEX}"


def register_binary(
    name: str, types: str, kernel: Callable[..., Any], inputs: str = "x: T, y: T", **how: Any
) -> OpDef:
    """An op of two tensors of one type, broadcast together."""
    op_def = register_op(name, inputs=inputs, outputs="z: T", attrs=f"T: {{{types}}}", **how)
    op_def.shape(broadcast)
    op_def.kernel(kernel)
    return op_def


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate of ``x``, which for a real tensor is ``x`` itself."""
    return get_op_def("Conj")(x) if x.dtype.is_complex else x


def select(condition: Tensor, x: Any, y: Any) -> Tensor:
    """``x`` where ``condition`` holds, else ``y``; broadcasts."""
    return get_op_def("SelectV2")(condition, x, y)


# Sums and differences -------------------------------------------------------------------------

add_op = register_binary("AddV2", NUMBERS, lambda xp, x, y: xp.add(x, y))
_OLD_NUMBERS = (
    "half, bfloat16, float, double, uint8, int8, int16, int32, int64, complex64, complex128"
)
add_v1_op = register_binary("Add", f"{_OLD_NUMBERS}, string", lambda xp, x, y: xp.add(x, y))


@add_v1_op.kernel(dtype="string", tier="interpreted")
def _(xp, x, y):
    return np.asarray(np.add(x, y), dtype=object)


def _add_gradient(op: Any, grad: Gradient) -> list[Any]:
    x, y = op.inputs
    return unbroadcast(x, y, grad, grad)


add_op.gradient(_add_gradient)
add_v1_op.gradient(_add_gradient)

sub_op = register_binary("Sub", NUMBERS, lambda xp, x, y: xp.subtract(x, y))


@sub_op.gradient
def _(op, grad):
    x, y = op.inputs
    return unbroadcast(x, y, grad, -grad)


add_n_op = register_op(
    "AddN",
    inputs="inputs: N * T",
    outputs="sum: T",
    attrs=["N: int >= 1", "T: {numbertype, variant}"],
)


@add_n_op.shape
def _(values):
    dims: Dims = None
    for value in values:
        dims = merge_dims(dims, value.dims)
    return dims


@add_n_op.kernel
def _(xp, values):
    shape = values[0].shape
    if len(values) == 2 and values[1].shape == shape:
        return xp.add(values[0], values[1])
    for i, value in enumerate(values):
        if value.shape != shape:
            raise ValueError(
                "Inputs must have the same size and shape. "
                f"Input 0: {list(shape)} != input {i}: {list(value.shape)}"
            )
    total = values[0]
    for i, value in enumerate(values[1:]):
        if i and isinstance(total, np.ndarray):
            np.add(total, value, out=total)  # a sum that this kernel made
        else:
            total = xp.add(total, value)
    return total


@add_n_op.gradient
def _(op, grad):
    return [grad] * len(op.inputs)


accumulate_n_op = register_op(
    "AccumulateNV2",
    inputs="inputs: N * T",
    outputs="sum: T",
    attrs=["N: int >= 1", "T: numbertype", "shape: shape"],
)
accumulate_n_op.kernel(add_n_op.kernels[0].function)
accumulate_n_op.gradient(lambda op, grad: [grad] * len(op.inputs))


@accumulate_n_op.shape
def _(values, *, shape):
    return shape._dims


# Products and powers --------------------------------------------------------------------------

mul_op = register_binary("Mul", NUMBERS, lambda xp, x, y: xp.multiply(x, y))


@mul_op.gradient
def _(op, grad):
    x, y = op.inputs
    return unbroadcast(x, y, mul_op(grad, conjugate(y)), mul_op(grad, conjugate(x)))


def _squared_difference(xp: Any, x: Any, y: Any) -> Any:
    difference = x - y
    if difference.dtype.kind == "c":
        return difference * xp.conjugate(difference)
    return difference * difference


squared_difference_op = register_binary(
    "SquaredDifference", f"{FLOATS}, int32, int64, {COMPLEX}", _squared_difference
)


@squared_difference_op.gradient
def _(op, grad):
    x, y = op.inputs
    two = constant_tensor(2, x.dtype.base_dtype)
    slope = mul_op(mul_op(two, grad), sub_op(x, y))
    return unbroadcast(x, y, slope, get_op_def("Neg")(slope))


pow_op = register_op(
    "Pow",
    inputs="x: T, y: T",
    outputs="z: T",
    attrs=f"T: {{{FLOATS}, int8, int16, int32, int64, {COMPLEX}}}",
)
pow_op.shape(broadcast)


@pow_op.kernel
def _(xp, x, y, *, check):
    if y.dtype.kind == "i":
        check((y >= 0).all(), lambda: "Integers to negative integer powers are not allowed")
        return np.power(x, y) if xp is np else _integer_power(xp, x, y)
    if x.dtype.kind == "c":
        return _complex_power(xp, x, y)
    return _real_power(x, y) if xp is np else xp.power(x, y)


def _real_power(x: Any, y: Any) -> Any:
    """``x ** y`` with NumPy, whose powers of negative numbers take forty times as long."""
    exponent = y.item() if y.size == 1 and y.ndim <= x.ndim else None
    if exponent in (2, 3):  # as XLA has them
        return x * x if exponent == 2 else x * x * x
    if exponent == -1:
        return x.dtype.type(1) / x
    if exponent == 0.5:  # NumPy takes the root, which differs for -0 and -infinity
        return np.sqrt(np.abs(x, where=x == -np.inf, out=np.array(x))) + x.dtype.type(0)
    if exponent is None or not exponent.is_integer() or x.dtype not in (np.float32, np.float64):
        return np.power(x, y)
    size = np.power(np.abs(x), y)
    return np.copysign(size, x) if exponent % 2 else size


def _integer_power(xp: Any, x: Any, y: Any) -> Any:
    """``x ** y`` modulo the range of the type, by squaring.

    (``jax.numpy.power`` looks at six bits of the exponent.)
    """
    x, y, power = xp.asarray(x), xp.asarray(y), xp.ones((), x.dtype)
    for _ in range(8 * y.dtype.itemsize - 1):
        power = xp.where(y & 1 == 1, power * x, power)
        x, y = x * x, y >> 1
    return power


def _complex_power(xp: Any, x: Any, y: Any) -> Any:
    """``x ** y``; a power of zero is that of exp(y log(0)), as C and TensorFlow compute it."""
    is_zero = x == 0
    infinite, undefined = np.array([complex(np.inf, np.nan), complex(np.nan, np.nan)], x.dtype)
    limit = xp.where(y.real > 0, x.dtype.type(0), xp.where(y.real < 0, infinite, undefined))
    return xp.where(is_zero, limit, xp.power(xp.where(is_zero, x.dtype.type(1), x), y))


@pow_op.gradient
def _(op, grad):
    base, exponent = op.inputs
    x, y, z = conjugate(base), conjugate(exponent), conjugate(op.outputs[0])
    kind = x.dtype.base_dtype
    one, zero = constant_tensor(1, kind), constant_tensor(0, kind)
    grad_x = mul_op(mul_op(grad, y), pow_op(x, sub_op(y, one)))
    # log(x) is used only where it is real; elsewhere the power does not vary smoothly with y.
    compare = get_op_def("NotEqual" if kind.is_complex else "Greater")
    usable = compare(x, zero)
    log_x = select(usable, get_op_def("Log")(select(usable, x, one)), zero)
    return unbroadcast(base, exponent, grad_x, mul_op(mul_op(grad, z), log_x))


# Extrema --------------------------------------------------------------------------------------

_ORDERED = f"{FLOATS}, {INTEGERS}"
maximum_op = register_binary("Maximum", _ORDERED, lambda xp, x, y: xp.maximum(x, y))
minimum_op = register_binary("Minimum", _ORDERED, lambda xp, x, y: xp.minimum(x, y))


def _extremum_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    compare = get_op_def("GreaterEqual" if op.type == "Maximum" else "LessEqual")
    from_x = compare(x, y)
    zero = constant_tensor(0, grad.dtype.base_dtype)
    return unbroadcast(x, y, select(from_x, grad, zero), select(from_x, zero, grad))


maximum_op.gradient(_extremum_gradient)
minimum_op.gradient(_extremum_gradient)


# Transcendental -------------------------------------------------------------------------------

atan2_op = register_binary("Atan2", FLOATS, lambda xp, y, x: xp.arctan2(y, x), inputs="y: T, x: T")


@atan2_op.gradient
def _(op, grad):
    y, x = op.inputs
    square = get_op_def("Square")
    scaled = get_op_def("RealDiv")(grad, add_op(square(x), square(y)))
    return unbroadcast(y, x, mul_op(x, scaled), mul_op(get_op_def("Neg")(y), scaled))


def _next_after(xp: Any, x: Any, y: Any) -> Any:
    return xp.nextafter(x, y)


next_after_op = register_op(
    "NextAfter",
    inputs="x1: T, x2: T",
    outputs="output: T",
    attrs="T: {double, float} = DT_FLOAT",
    differentiable=False,
)
next_after_op.shape(broadcast)
next_after_op.kernel(_next_after)


# Functions ------------------------------------------------------------------------------------


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x + y``, elementwise with broadcasting; strings are concatenated.

    Example:
        >>> tf.add([1, 2], [10, 20])
        <tf.Tensor 'Add:0' shape=(2,) dtype=int32>
    """
    if type(x) is Tensor and type(y) is Tensor and x.dtype.base_dtype.name != "string":
        return add_op(x, y, name=name or "Add")
    with name_scope(name, "Add", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        chosen = add_v1_op if x.dtype.base_dtype.name == "string" else add_op
        return chosen(x, y, name=scope)


def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x - y``, elementwise with broadcasting."""
    return sub_op(x, y, name=name)


def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``x * y``, elementwise with broadcasting."""
    return mul_op(x, y, name=name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """``scalar * x`` for a scalar; an ``IndexedSlices`` stays sparse."""
    scalar = convert_to_tensor(scalar, dtype=x.dtype.base_dtype, name="scalar")
    if scalar.dims not in (None, ()):
        raise ValueError(f"Only scalar multiply works, got shape {scalar.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(mul_op(scalar, x.values, name=name), x.indices, x.dense_shape)
    return mul_op(scalar, x, name=name)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of the same shape and type.

    Example:
        >>> tf.add_n([tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)])
        <tf.Tensor 'AddN:0' shape=() dtype=float32>
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices.")
    tensors = [convert_to_tensor(value) for value in inputs]
    if len(tensors) == 1:
        return tensors[0] if name is None else get_op_def("Identity")(tensors[0], name=name)
    return add_n_op(tensors, name=name)


def accumulate_n(
    inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of tensors of the same shape and type, as :func:`add_n`."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype")
    tensors = [convert_to_tensor(value) for value in inputs]
    if tensor_dtype is not None and tensors[0].dtype.base_dtype != tensor_dtype:
        raise TypeError(f"tensor_dtype is {tensor_dtype}, but the inputs are {tensors[0].dtype}")
    merged = TensorShape(shape)
    for tensor in tensors:
        merged = merged.merge_with(tensor.shape)
    if len(tensors) == 1:
        return tensors[0] if name is None else get_op_def("Identity")(tensors[0], name=name)
    return accumulate_n_op(tensors, shape=merged, name=name)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:  # noqa: A001 (TensorFlow's name)
    """``x`` to the power ``y``, elementwise with broadcasting."""
    with name_scope(name, "Pow", [x]) as scope:
        return pow_op(x, y, name=scope)


def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of ``x`` and ``y``, elementwise with broadcasting."""
    return maximum_op(x, y, name=name)


def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of ``x`` and ``y``, elementwise with broadcasting."""
    return minimum_op(x, y, name=name)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``(x - y) * (x - y)``, conjugating the second factor for complex tensors."""
    return squared_difference_op(x, y, name=name)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point ``(x, y)``, in (-pi, pi]."""
    return atan2_op(y, x, name=name)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next representable number after ``x1`` in the direction of ``x2``."""
    return next_after_op(x1, x2, name=name)


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """The polynomial with ``coeffs``, highest power first, at ``x``.

    Example:
        >>> tf.math.polyval([1.0, 0.0, 2.0], x)  # x**2 + 2
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"coeffs must be a list, not {type(coeffs).__name__}")
    with name_scope(name, "polyval", [x]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return get_op_def("ZerosLike")(x)
        terms = [convert_to_tensor(c, dtype_hint=x.dtype.base_dtype) for c in coeffs]
        value = terms[0]
        for term in terms[1:]:
            value = add_op(term, mul_op(value, x))
        return value
