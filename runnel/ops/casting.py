"""Changing the element type: Cast (by value), Bitcast (by bits) and their shorthands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import Dims
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.half_precision import widen

cast_op = register_op(
    "Cast",
    inputs="x: SrcT",
    outputs="y: DstT",
    attrs=["SrcT: type", "DstT: type", "Truncate: bool = false"],
)
cast_op.shape(unchanged)


@cast_op.kernel
def _(xp, x, *, SrcT, DstT, Truncate):  # noqa: N803 (TensorFlow's attribute names)
    target = DstT.np_dtype
    if x.dtype == target:
        return x
    if SrcT.is_complex and not DstT.is_complex:
        x = xp.real(x)
    if Truncate and DstT.is_floating:
        x = _without_low_bits(xp, x, target)
    if xp is not np and DstT.is_integer and x.dtype.kind not in "iub":
        return _float_to_integer(xp, x, target)
    if DstT.is_integer and x.dtype == dtypes.bfloat16.np_dtype:
        x = x.astype(np.float32)  # ml_dtypes converts to some integers only by way of floats
    if DstT.is_floating and DstT.size == 2 and x.dtype.itemsize >= 4:
        x = x.astype(np.float32)  # TensorFlow rounds twice, and so does XLA
    return x.astype(target)


def _float_to_integer(xp: Any, x: Any, target: np.dtype) -> Any:
    """Truncates towards zero as x86 processors do, and so NumPy and TensorFlow.

    What does not fit, NaN included, becomes the most negative integer of the register's width
    (XLA by itself would saturate); narrow types keep its low bits.
    """
    x = widen(x)  # the limits overflow float16
    narrow = target.itemsize <= 2 or target == np.int32
    wide = np.dtype(np.int32 if narrow else np.int64)
    if target == np.uint64:
        high = xp.asarray(2.0**63, x.dtype)
        low = _float_to_integer(xp, x, wide).astype(target)
        upper = _float_to_integer(xp, x - high, wide).astype(target) ^ np.uint64(2**63)
        return xp.where(x < high, low, upper)
    bits = 8 * wide.itemsize - 1
    limit = 2.0**bits
    fits = (x >= -limit) & (x < limit)
    return xp.where(fits, x.astype(wide), -(2**bits)).astype(target)


def _without_low_bits(xp: Any, x: Any, target: np.dtype) -> Any:
    """``x`` with the mantissa bits cleared that ``target`` does not have: no rounding up."""
    bits = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}.get(x.dtype)
    width = {"float16": 10, "bfloat16": 7, "float32": 23}.get(target.name)
    own = {4: 23, 8: 52}.get(x.dtype.itemsize)
    if bits is None or width is None or own is None or own <= width:
        return x
    mask = np.array(~((1 << (own - width)) - 1) & ((1 << (8 * x.dtype.itemsize)) - 1), bits)
    return _same_width_bits(xp, _same_width_bits(xp, x, bits) & mask, x.dtype)


def _same_width_bits(xp: Any, x: Any, dtype: Any) -> Any:
    if xp is np:
        return np.asarray(x).view(dtype)
    from jax import lax

    return lax.bitcast_convert_type(x, dtype)


@cast_op.gradient
def _(op, grad):
    source = op.inputs[0].dtype.base_dtype
    numeric = (*dtypes.FLOATING, dtypes.complex64, dtypes.complex128)
    if source in numeric and grad.dtype.base_dtype in numeric:
        return cast(grad, source)
    return None


bitcast_op = register_op(
    "Bitcast",
    inputs="input: T",
    outputs="output: type",
    attrs=[
        "T: {numbertype, quantizedtype}",
        "type: {numbertype, quantizedtype}",
    ],
    differentiable=False,
)


@bitcast_op.shape
def _(x, *, type):  # noqa: A002
    source, target = x.dtype.size, type.size
    dims: Dims = x.dims
    if source == target or dims is None:
        return dims
    if source > target:
        return (*dims, source // target)
    if not dims or dims[-1] not in (None, target // source):
        raise ValueError(
            f"Cannot bitcast {x.dtype.name} to {type.name}: the last dimension must be "
            f"{target // source}"
        )
    return dims[:-1]


@bitcast_op.kernel
def _(xp, x, *, type):  # noqa: A002
    target = type.np_dtype
    source_size, target_size = x.dtype.itemsize, target.itemsize
    if target_size > source_size and (not x.ndim or x.shape[-1] != target_size // source_size):
        raise ValueError(
            f"Cannot bitcast from {x.dtype.name} to {type.name}: the last dimension of shape "
            f"{list(x.shape)} must be {target_size // source_size}"
        )
    if xp is not np:
        return _bitcast_compiled(xp, x, target)
    shape = x.shape
    if source_size > target_size:
        shape = (*shape, source_size // target_size)
    elif source_size < target_size:
        shape = shape[:-1]
    return np.ascontiguousarray(x).reshape(-1).view(target).reshape(shape)


def _bitcast_compiled(xp: Any, x: Any, target: np.dtype) -> Any:
    from jax import lax

    # XLA does not reinterpret complex numbers; their parts are the two halves.
    if x.dtype.kind == "c" and target.kind != "c":
        x = xp.stack([xp.real(x), xp.imag(x)], axis=-1)
        if x.dtype.itemsize < target.itemsize:
            return lax.bitcast_convert_type(x, target)
        bits = lax.bitcast_convert_type(x, target)
        return bits if bits.ndim == x.ndim else bits.reshape(*x.shape[:-1], -1)
    if target.kind == "c" and x.dtype.kind != "c":
        part = np.dtype(np.float32 if target == np.complex64 else np.float64)
        if x.dtype.itemsize == target.itemsize:
            x = lax.bitcast_convert_type(x, part)
        else:
            x = x.reshape(*x.shape[:-1], 2, -1) if x.dtype.itemsize < part.itemsize else x
            x = lax.bitcast_convert_type(x, part)
        return lax.complex(x[..., 0], x[..., 1])
    return lax.bitcast_convert_type(x, target)


# Functions ------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """``x`` with its elements converted to ``dtype``.

    Floating point numbers are truncated towards zero to become integers; anything but zero is
    True; of a complex number only the real part counts when the target is not complex.

    Example:
        >>> tf.cast([1.8, 2.2], tf.int32)
        <tf.Tensor 'Cast:0' shape=(2,) dtype=int32>
    """
    target = as_dtype(dtype).base_dtype
    if type(x) is Tensor and x.dtype.base_dtype is target:
        return x
    if type(x) is Tensor:
        return cast_op(x, DstT=target, name=name)
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, IndexedSlices):
            values = cast(x.values, target, name=scope)
            return IndexedSlices(values, x.indices, x.dense_shape)
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, target, name=scope), x.dense_shape)
        tensor = convert_to_tensor(x, name="x")
        if tensor.dtype.base_dtype is target:
            return tensor
        return cast_op(tensor, DstT=target, name=scope)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """``value`` as ``dtype``, with what does not fit replaced by the nearest value that does."""
    with name_scope(name, "saturate_cast", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        target = as_dtype(dtype).base_dtype
        source = tensor.dtype.base_dtype
        if source.min < target.min:
            low = _representable(target.min, source, upper=False)
            tensor = get_op_def("Maximum")(tensor, constant_tensor(low, source, name="min"))
        if source.max > target.max:
            high = _representable(target.max, source, upper=True)
            tensor = get_op_def("Minimum")(tensor, constant_tensor(high, source, name="max"))
        return cast(tensor, target, name=scope)


def _representable(limit: Any, source: DType, upper: bool) -> Any:
    """The value of ``source`` nearest to ``limit`` that does not lie beyond it."""
    if not source.is_floating:
        return int(limit)
    nearest = source.np_dtype.type(limit)
    if upper and float(nearest) > limit:
        nearest = np.nextafter(nearest, source.np_dtype.type(-math.inf))
    elif not upper and float(nearest) < limit:
        nearest = np.nextafter(nearest, source.np_dtype.type(math.inf))
    return nearest


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The bits of ``input`` read as elements of ``type``, without conversion.

    A smaller element type adds a last dimension; a larger one takes the last away.

    Example:
        >>> tf.bitcast(tf.constant(1.0), tf.int32)
        <tf.Tensor 'Bitcast:0' shape=() dtype=int32>
    """
    return bitcast_op(convert_to_tensor(input), type=as_dtype(type).base_dtype, name=name)


def to_float(x: Any, name: str = "ToFloat") -> Any:
    """``x`` as float32."""
    return cast(x, dtypes.float32, name=name)


def to_double(x: Any, name: str = "ToDouble") -> Any:
    """``x`` as float64."""
    return cast(x, dtypes.float64, name=name)


def to_int32(x: Any, name: str = "ToInt32") -> Any:
    """``x`` as int32."""
    return cast(x, dtypes.int32, name=name)


def to_int64(x: Any, name: str = "ToInt64") -> Any:
    """``x`` as int64."""
    return cast(x, dtypes.int64, name=name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Any:
    """``x`` as bfloat16."""
    return cast(x, dtypes.bfloat16, name=name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Any:
    """``x`` as complex64."""
    return cast(x, dtypes.complex64, name=name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Any:
    """``x`` as complex128."""
    return cast(x, dtypes.complex128, name=name)
