"""Strings as arrays of numbers, and compressed strings as what they hold."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged

decode_raw_op = register_op(
    "DecodeRaw",
    inputs="bytes: string",
    outputs="output: out_type",
    attrs=[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, "
        "complex128, bool, bfloat16}",
        "little_endian: bool = true",
    ],
    host=True,
    differentiable=False,
)
decode_padded_raw_op = register_op(
    "DecodePaddedRaw",
    inputs="input_bytes: string, fixed_length: int32",
    outputs="output: out_type",
    attrs=[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}",
        "little_endian: bool = true",
    ],
    host=True,
    differentiable=False,
)
decode_compressed_op = register_op(
    "DecodeCompressed",
    inputs="bytes: string",
    outputs="output: string",
    attrs=["compression_type: string = ''"],
    host=True,
    differentiable=False,
)
decode_compressed_op.shape(unchanged)


@decode_raw_op.shape
def _(text):
    return None if text.dims is None else (*text.dims, None)


def _numbers(content: bytes, shape: tuple[int, ...], out_type: Any, little_endian: bool) -> Any:
    """``content`` as numbers, a row for each element of ``shape``."""
    flat = np.frombuffer(content, out_type.np_dtype)
    if not little_endian:
        part = 2 if out_type.is_complex else 1
        width = out_type.np_dtype.itemsize // part
        flat = np.frombuffer(content, np.uint8).reshape(-1, width)[:, ::-1].copy().reshape(-1)
        flat = flat.view(out_type.np_dtype)
    return flat.reshape((*shape, -1 if shape_size(shape) else 0)).copy()


def shape_size(shape: tuple[int, ...]) -> int:
    """How many elements there are."""
    return int(np.prod(shape, dtype=np.int64))


@decode_raw_op.kernel
def _(xp, text, *, out_type, little_endian):
    text = np.asarray(text, object)
    items = text.reshape(-1).tolist()
    size = len(items[0]) if items else 0
    for i, item in enumerate(items):
        if len(item) != size:
            raise InvalidArgumentError(
                None,
                None,
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{i} has size {len(item)} != {size}. tf.decode_raw(..., fixed_length=...) pads.",
            )
    if size % out_type.np_dtype.itemsize:
        raise InvalidArgumentError(
            None,
            None,
            f"Input to DecodeRaw has length {size} that is not a multiple of "
            f"{out_type.np_dtype.itemsize}, the size of {out_type.name}",
        )
    if not size:
        return np.empty((*text.shape, 0), out_type.np_dtype)
    return _numbers(b"".join(items), text.shape, out_type, little_endian)


@decode_padded_raw_op.shape
def _(text, fixed_length, *, out_type):
    length = constant_value(fixed_length)
    width = None if length is None else int(length) // out_type.np_dtype.itemsize
    return None if text.dims is None else (*text.dims, width)


@decode_padded_raw_op.kernel
def _(xp, text, fixed_length, *, out_type, little_endian):
    text, length = np.asarray(text, object), int(fixed_length)
    if length <= 0 or length % out_type.np_dtype.itemsize:
        raise InvalidArgumentError(
            None,
            None,
            f"fixed_length ({length}) must be a positive multiple of the size of {out_type.name} "
            f"({out_type.np_dtype.itemsize})",
        )
    content = b"".join(item[:length].ljust(length, b"\0") for item in text.reshape(-1).tolist())
    return _numbers(content, text.shape, out_type, little_endian)


@decode_compressed_op.kernel
def _(xp, text, *, compression_type):
    kind = compression_type.decode() if isinstance(compression_type, bytes) else compression_type
    if kind not in ("", "ZLIB", "GZIP"):
        raise InvalidArgumentError(
            None, None, f"Only ZLIB, GZIP or NONE are supported compressions, not {kind!r}"
        )
    text = np.asarray(text, object)
    out = np.empty(text.shape, object)
    for place in np.ndindex(text.shape):
        try:
            bits = 31 if kind == "GZIP" else 15
            out[place] = zlib.decompress(text[place], bits) if kind else text[place]
        except zlib.error as error:
            raise DataLossError(None, None, f"Element {place} is not {kind}: {error}") from None
    return out


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,  # noqa: A002 (TensorFlow's name)
    *,
    fixed_length: Any = None,
) -> Tensor:
    """The bytes of each string as numbers of ``out_type``, along a new last axis.

    With ``fixed_length`` strings are cut, or padded with zeros, to as many bytes.

    Example:
        >>> tf.decode_raw(b"\\x01\\x00\\x02\\x00", tf.int16)  # [1, 2]
    """
    if input_bytes is not None and bytes is not None:
        raise ValueError("Give input_bytes or bytes, which is its old name, not both.")
    text = input_bytes if bytes is None else bytes
    kind = as_dtype(out_type)
    if fixed_length is not None:
        return decode_padded_raw_op(
            text, fixed_length, out_type=kind, little_endian=little_endian, name=name
        )
    return decode_raw_op(text, out_type=kind, little_endian=little_endian, name=name)


def decode_compressed(
    bytes: Any,  # noqa: A002 (TensorFlow's name)
    compression_type: str = "",
    name: str | None = None,
) -> Tensor:
    """What compressed strings hold; ``compression_type`` is "", "ZLIB" or "GZIP"."""
    return decode_compressed_op(bytes, compression_type=compression_type, name=name)
