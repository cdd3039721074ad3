"""Arrays as ``TensorProto`` protocol buffers, and back.

A proto holds its elements as raw little-endian bytes (``tensor_content``) or in a repeated
field of its type (``float_val`` and so on). A repeated field may be shorter than the shape:
its last value then fills the rest, and an empty one means zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import make_array
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.shapes import as_dims, format_dims

# A serialized protocol buffer cannot exceed this, so no tensor that came in one should either:
# a larger claim, made of a few repeated values, is a mistake or an attack.
MAX_BYTES = 2**31 - 1
_MAX_RANK = 254

_FIELDS = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.int64: "int64_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.bool_: "bool_val",
    dtypes.string: "string_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    # The 16-bit floats travel as their bit patterns.
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
} | dict.fromkeys(
    (
        *(dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.uint16),
        *(dtypes.qint8, dtypes.quint8, dtypes.qint16, dtypes.quint16, dtypes.qint32),
    ),
    "int_val",
)


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """``values`` as a ``TensorProto``.

    ``shape`` may ask for more elements than there are values (the last one is repeated), unless
    ``verify_shape``; with ``allow_broadcast`` only a single value may be repeated.

    Example:
        >>> tf.make_ndarray(tf.make_tensor_proto([1.0, 2.0]))
        array([1., 2.], dtype=float32)
    """
    if _is_tensor_proto(values):
        return values
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    array = make_array(values, wanted)
    wanted = wanted or as_dtype(array.dtype)
    if shape is None:
        return encode_array(array, wanted)
    dims = _known_dims(shape)
    size = _count(dims)
    if verify_shape and array.shape != dims:
        raise TypeError(f"Expected the shape {format_dims(dims)}, but got {array.shape}.")
    if allow_broadcast and array.size not in (1, size):
        raise TypeError(
            f"Expected the shape {format_dims(dims)}, but got {array.shape}, which is not a "
            "single value that could be broadcast."
        )
    if array.size > size:
        raise ValueError(
            f"Too many elements: the shape {format_dims(dims)} has {size}, but {array.size} "
            "are given."
        )
    if array.size == size:
        return encode_array(array.reshape(dims), wanted)
    if array.size == 0:
        raise ValueError(f"No value is given for a tensor of shape {format_dims(dims)}.")
    proto = _empty_proto(wanted, dims)
    _append_values(proto, array.reshape(-1), wanted)
    return proto


def _is_tensor_proto(value: Any) -> bool:
    descriptor = getattr(value, "DESCRIPTOR", None)
    return descriptor is not None and descriptor.name == "TensorProto"


def _known_dims(shape: Any) -> tuple[int, ...]:
    dims = as_dims(shape)
    if dims is None or None in dims:
        raise ValueError(f"A tensor needs a fully known shape, not {format_dims(dims)}.")
    return tuple(d for d in dims if d is not None)


def _count(dims: Sequence[int]) -> int:
    total = 1  # Python's integers, so that an absurd shape cannot wrap around
    for d in dims:
        total *= d
    return total


def _empty_proto(dtype: DType, dims: Sequence[int]) -> Any:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    proto = TensorProto(dtype=dtype.as_datatype_enum)
    shape = proto.tensor_shape
    shape.SetInParent()  # a scalar's shape is present, and empty
    for d in dims:
        shape.dim.add(size=d)
    return proto


def encode_array(array: np.ndarray, dtype: DType) -> Any:
    """``array``, whose elements are stored as ``dtype``, as a ``TensorProto``."""
    proto = _empty_proto(dtype, array.shape)
    if array.size > 1 and _is_one_value(array):
        _append_values(proto, array.reshape(-1)[:1], dtype)
    elif dtype.np_dtype == object or array.size <= 1:
        _append_values(proto, array.reshape(-1), dtype)
    else:
        if array.nbytes > MAX_BYTES:
            raise ValueError(
                f"A tensor of {array.nbytes} bytes does not fit into a protocol buffer (2 GiB at "
                "most): load it from a checkpoint or feed it instead of making it a constant."
            )
        proto.tensor_content = array.tobytes()
    return proto


def encode_values(array: np.ndarray, dtype: DType) -> Any:
    """:func:`encode_array` with a value for each element, in the field for their type."""
    proto = _empty_proto(dtype, array.shape)
    _append_values(proto, array.reshape(-1), dtype)
    return proto


def _is_one_value(array: np.ndarray) -> bool:
    """True for a view of a single element, and for many elements with the same bits."""
    if not any(array.strides):
        return True
    if array.dtype == object or array.nbytes < 64 or array.nbytes > MAX_BYTES:
        return False
    first, last = array.flat[0], array.flat[-1]
    content = memoryview(first.tobytes())
    return content == last.tobytes() and array.tobytes() == bytes(content) * array.size


def _append_values(proto: Any, flat: np.ndarray, dtype: DType) -> None:
    name = _FIELDS.get(dtype)
    if name is None:
        raise TypeError(f"A tensor of type {dtype.name} cannot be a protocol buffer.")
    if name == "half_val":
        flat = flat.view(np.uint16)
    elif dtype.is_complex:
        flat = np.ascontiguousarray(flat).view(dtype.real_dtype.np_dtype)
    elif dtype is dtypes.string:
        proto.string_val.extend(v.encode() if isinstance(v, str) else v for v in flat.tolist())
        return
    getattr(proto, name).extend(flat.tolist())


def MakeNdarray(tensor: Any) -> np.ndarray:  # noqa: N802 (TensorFlow's name)
    """The array that a ``TensorProto`` holds; strings become an array of ``bytes`` objects.

    A proto that contradicts itself (sizes, types, values out of range) is a ValueError.
    """
    if not _is_tensor_proto(tensor):
        raise TypeError(f"Expected a TensorProto, not {type(tensor).__name__}.")
    array = decode_array(tensor)[0]
    return array if array.flags.owndata and array.flags.writeable else array.copy()


make_ndarray = MakeNdarray


def decode_array(proto: Any) -> tuple[np.ndarray, DType]:
    """The array (perhaps a read-only view) and element type of a ``TensorProto``."""
    dtype = _element_type(proto.dtype)
    name = _FIELDS.get(dtype)
    if name is None:
        raise ValueError(f"A tensor of type {dtype.name} has no array of values.")
    dims = _proto_dims(proto.tensor_shape)
    size = _count(dims)
    what = f"A {dtype.name} tensor of shape {format_dims(dims)}"
    if proto.tensor_content:
        flat = _decode_content(proto.tensor_content, dtype, size, what)
    else:
        flat = _decode_values(getattr(proto, name), dtype, what)
        _check_size(size, dtype, what)
        if flat.size > size:
            raise ValueError(f"{what} has {size} elements, but {flat.size} are given.")
        if flat.size == 0:
            flat = np.full(1, b"", object) if dtype is dtypes.string else np.zeros(1, flat.dtype)
        if flat.size == 1 and size != 1:
            return np.broadcast_to(flat.reshape(()), dims), dtype
        if flat.size < size:
            flat = np.concatenate((flat, np.broadcast_to(flat[-1:], size - flat.size)))
    return flat.reshape(dims), dtype


def _element_type(number: int) -> DType:
    try:
        dtype = as_dtype(number)
    except TypeError:
        raise ValueError(f"{number} is not the number of an element type known here.") from None
    if dtype.is_ref_dtype:
        raise ValueError(f"A tensor's element type cannot be the reference {dtype.name}.")
    return dtype


def _proto_dims(shape: Any) -> tuple[int, ...]:
    if shape.unknown_rank:
        raise ValueError("A tensor's shape must be known, but its rank is given as unknown.")
    dims = tuple(d.size for d in shape.dim)
    if len(dims) > _MAX_RANK:
        raise ValueError(f"A tensor has at most {_MAX_RANK} dimensions, not {len(dims)}.")
    if any(d < 0 for d in dims):
        raise ValueError(f"A tensor's shape {dims} has a negative dimension.")
    if len(dims) > 64:
        # NumPy's own limit; TensorFlow's kernels stop long before it.
        raise ValueError(f"Tensors of {len(dims)} dimensions are not supported (64 at most).")
    return dims


def _check_size(size: int, dtype: DType, what: str) -> None:
    taken = size * dtype.np_dtype.itemsize
    if taken > MAX_BYTES:
        raise ValueError(
            f"{what} would take {taken} bytes, more than the 2 GiB that a tensor in a protocol "
            "buffer may have."
        )


def _decode_content(content: bytes, dtype: DType, size: int, what: str) -> np.ndarray:
    if dtype is dtypes.string:
        return _decode_strings(content, size, what)
    expected = size * dtype.np_dtype.itemsize
    if len(content) != expected:
        raise ValueError(f"{what} takes {expected} bytes, but tensor_content has {len(content)}.")
    flat = np.frombuffer(content, dtype.np_dtype)
    if dtype is dtypes.bool_ and (flat.view(np.uint8) > 1).any():
        raise ValueError(f"{what} holds bytes that are neither 0 nor 1.")
    return flat


def _decode_strings(content: bytes, size: int, what: str) -> np.ndarray:
    """Strings as raw bytes: all lengths first, as varints, then the characters."""
    if size > len(content):
        raise ValueError(f"{what} does not fit into the {len(content)} bytes of tensor_content.")
    lengths = []
    position = 0
    for _ in range(size):
        length = shift = 0
        while True:
            if position >= len(content) or shift > 28:
                raise ValueError(f"{what}: the lengths in tensor_content are cut off or malformed.")
            byte = content[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise ValueError(
            f"{what} takes {position + sum(lengths)} bytes, but tensor_content has {len(content)}."
        )
    flat = np.empty(size, object)
    for i, length in enumerate(lengths):
        flat[i] = content[position : position + length]
        position += length
    return flat


def _decode_values(values: Any, dtype: DType, what: str) -> np.ndarray:
    if dtype is dtypes.string:
        flat = np.empty(len(values), object)
        flat[:] = list(values)
        return flat
    if dtype.is_complex:
        if len(values) % 2:
            raise ValueError(f"{what} has an odd number of real and imaginary parts.")
        return np.array(values, dtype.real_dtype.np_dtype).view(dtype.np_dtype)
    if dtype.is_floating and dtype.np_dtype.itemsize == 2:
        return _in_range(values, np.dtype(np.uint16), what).view(dtype.np_dtype)
    if dtype.np_dtype.itemsize < 4 and dtype.np_dtype.kind in "iu":
        return _in_range(values, dtype.np_dtype, what)
    return np.array(values, dtype.np_dtype)


def _in_range(values: Any, storage: np.dtype, what: str) -> np.ndarray:
    """Values of a 32-bit field as a narrower type; NumPy alone would wrap them around."""
    wide = np.array(values, np.int32)
    limits = np.iinfo(storage)
    if wide.size and (wide.min() < limits.min or wide.max() > limits.max):
        raise ValueError(f"{what} holds a value outside the range of its type.")
    return wide.astype(storage)
