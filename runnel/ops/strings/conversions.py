"""Strings from numbers, numbers from strings, and base64."""

from __future__ import annotations

import binascii
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
from runnel.ops.parsing.numerals import number_of, numbers_of
from runnel.ops.strings.texts import each, encoded, in_pieces, one_by_one, string_op

to_number_op = string_op(
    "StringToNumber",
    "string_tensor: string",
    "output: out_type",
    "out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT",
)
as_string_op = string_op(
    "AsString",
    "input: T",
    "output: string",
    [
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, complex64, complex128, bool, variant, string}",
        "precision: int = -1",
        "scientific: bool = false",
        "shortest: bool = false",
        "width: int = -1",
        "fill: string = ''",
    ],
)
encode_base64_op = string_op("EncodeBase64", "input: string", "output: string", "pad: bool = false")
decode_base64_op = string_op("DecodeBase64", "input: string", "output: string")
for _op in (to_number_op, as_string_op, encode_base64_op, decode_base64_op):
    _op.shape(unchanged)


@to_number_op.kernel
def _(xp, texts, *, out_type):
    array = np.asarray(texts, object)
    found = [numbers_of(piece, out_type) for piece in in_pieces(array)]
    numbers = [part for part in found if part is not None]
    if numbers and len(numbers) == len(found):
        return np.concatenate(numbers).reshape(array.shape)

    def one(text: bytes) -> Any:
        value = number_of(text, out_type)
        if value is None:
            shown = text.decode(errors="backslashreplace")
            raise InvalidArgumentError(
                None, None, f"StringToNumberOp could not correctly convert string: {shown}"
            )
        return value

    return each(one, texts, out_type.np_dtype)


def _format(
    dtype: Any, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Callable[[Any], str]:
    """How a number of ``dtype`` is written."""
    real = dtype.is_floating or dtype.is_complex
    if not real and (scientific or shortest or precision >= 0):
        raise InvalidArgumentError(
            None,
            None,
            f"precision, scientific and shortest are for floating-point numbers, not {dtype.name}",
        )
    if scientific and shortest:
        raise InvalidArgumentError(
            None, None, "Cannot select both scientific and shortest notation"
        )
    flags = f"{fill if width >= 0 else ''}{width if width >= 0 else ''}"
    if not real:
        return f"%{flags}d".__mod__
    digits = f".{precision}" if precision >= 0 else ""
    pattern = f"%{flags}{digits}{'e' if scientific else 'g' if shortest else 'f'}"
    if dtype.is_complex:
        return lambda value: f"({pattern % value.real},{pattern % value.imag})"
    return pattern.__mod__


@as_string_op.kernel
def _(xp, values, *, T, precision, scientific, shortest, width, fill):  # noqa: N803
    dtype, filled = T.base_dtype, encoded(fill).decode()
    if filled not in ("", " ", "+", "-", "0", "#"):
        raise InvalidArgumentError(None, None, f"Fill argument not supported: {filled!r}")
    values = np.asarray(values)
    if dtype is dtypes.string:
        return values.copy()
    if dtype is dtypes.bool_:
        write: Any = lambda value: "true" if value else "false"  # noqa: E731
    else:
        write = _format(dtype, precision, scientific, shortest, width, filled)
    if dtype.is_floating:
        values = values.astype(np.float64)
    out = np.empty(values.size, object)
    out[:] = [write(value).encode() for value in one_by_one(values)]
    return out.reshape(values.shape)


# Base64's last two digits: TensorFlow writes those of the alphabet for the web.
_WEB_ALPHABET = (string.ascii_letters + string.digits + "-_").encode()
_PADS, _ZEROS = (b"", b"===", b"==", b"="), (b"", b"", b"AA", b"A")
_FROM_WEB, _TO_WEB = bytes.maketrans(b"-_", b"+/"), bytes.maketrans(b"+/", b"-_")


@encode_base64_op.kernel
def _(xp, texts, *, pad):
    def one(text: bytes) -> bytes:
        made = binascii.b2a_base64(text, newline=False).translate(_TO_WEB)
        return made if pad else made.rstrip(b"=")

    return each(one, texts)


def _content_of(texts: list[bytes]) -> list[bytes] | None:
    """What texts in base64 hold; None where one of them may be wrong."""
    joined = b"".join(texts)
    if b"=" in joined:
        texts = [text.rstrip(b"=") for text in texts]
        joined = b"".join(texts)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    if joined.translate(None, _WEB_ALPHABET) or (sizes % 4 == 1).any():
        return None
    if (sizes % 4).any():  # each begins with a group of its own
        joined = b"".join([text + _ZEROS[len(text) & 3] for text in texts])
    content = binascii.a2b_base64(joined.translate(_FROM_WEB))
    begins = np.cumsum((sizes + 3) // 4 * 3) - (sizes + 3) // 4 * 3
    ends = begins + sizes * 3 // 4
    return [content[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]


@decode_base64_op.kernel
def _(xp, texts):
    array = np.asarray(texts, object)
    found = [_content_of(piece) for piece in in_pieces(array)]
    if None not in found:
        out = np.empty(array.size, object)
        out[:] = [text for piece in found for text in piece or ()]
        return out.reshape(array.shape)
    decode = binascii.a2b_base64

    def one(text: bytes) -> bytes:
        try:
            if b"+" in text or b"/" in text:
                raise ValueError("the alphabet is that for the web")
            padded = text + _PADS[len(text) & 3]
            if text.endswith(b"="):  # which need not be as many as there should be
                content = text.rstrip(b"=")
                padded = content + _PADS[len(content) & 3]
            return decode(padded.translate(_FROM_WEB), strict_mode=True)
        except ValueError as error:
            raise InvalidArgumentError(
                None, None, f"Invalid character found in base64: {text[:60]!r} ({error})"
            ) from None

    return each(one, texts)


def string_to_number(
    string_tensor: Any = None,
    out_type: Any = dtypes.float32,
    name: str | None = None,
    input: Any = None,  # noqa: A002 (TensorFlow's name)
) -> Tensor:
    """The numbers that strings are.

    Example:
        >>> tf.string_to_number(["1.5", "-2"])  # [1.5, -2]
    """
    texts = input if string_tensor is None else string_tensor
    return to_number_op(texts, out_type=as_dtype(out_type), name=name)


def as_string(
    input: Any,  # noqa: A002 (TensorFlow's name)
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers written as C's ``printf`` writes them.

    Example:
        >>> tf.as_string([3.14159, 2.0], precision=2)  # ["3.14", "2.00"]
    """
    return as_string_op(
        input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
        name=name,
    )


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:  # noqa: A002
    """Strings in base64, with the alphabet for the web."""
    return encode_base64_op(input, pad=pad, name=name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:  # noqa: A002 (TensorFlow's name)
    """Strings out of base64, with the alphabet for the web; padding may be there or not."""
    return decode_base64_op(input, name=name)
