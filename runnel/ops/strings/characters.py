"""The characters of strings: their number, their case, the blanks around them, parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import broadcast, unchanged
from runnel.ops.strings.texts import each, encoded, string_op

_UNIT = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"
_BLANKS = b" \t\n\v\f\r"

strip_op = string_op("StringStrip", "input: string", "output: string")
lower_op = string_op("StringLower", "input: string", "output: string", "encoding: string = ''")
upper_op = string_op("StringUpper", "input: string", "output: string", "encoding: string = ''")
length_op = string_op("StringLength", "input: string", "output: int32", _UNIT)
substr_op = string_op(
    "Substr", "input: string, pos: T, len: T", "output: string", ["T: {int32, int64}", _UNIT]
)
for _op in (strip_op, lower_op, upper_op, length_op):
    _op.shape(unchanged)


@strip_op.kernel
def _(xp, texts):
    return each(lambda text: text.strip(_BLANKS), texts)


def _cased(texts: Any, encoding: Any, method: str) -> np.ndarray:
    kind = encoded(encoding).decode().lower()
    if not kind:
        return each(getattr(bytes, method), texts)  # of ASCII's letters
    if kind != "utf-8":
        raise InvalidArgumentError(
            None, None, f"only utf-8 or '' (no encoding) is supported, received {kind!r}"
        )
    change = getattr(str, method)
    return each(
        lambda text: change(text.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        ),
        texts,
    )


@lower_op.kernel
def _(xp, texts, *, encoding):
    return _cased(texts, encoding, "lower")


@upper_op.kernel
def _(xp, texts, *, encoding):
    return _cased(texts, encoding, "upper")


_INSIDE = bytes(range(0x80, 0xC0))
"""The bytes that begin no character of UTF-8."""


def _starts(text: bytes) -> np.ndarray:
    """Where the characters of UTF-8 begin."""
    return np.flatnonzero((np.frombuffer(text, np.uint8) & 0xC0) != 0x80)


def _character_count(text: bytes) -> int:
    return len(text) if text.isascii() else len(text.translate(None, _INSIDE))


@length_op.kernel
def _(xp, texts, *, unit):
    if encoded(unit) == b"BYTE":
        return each(len, texts, np.int32)
    return each(_character_count, texts, np.int32)


@substr_op.shape
def _(texts, pos, length):
    if texts.dims is None or pos.dims is None:
        return None
    return broadcast(texts, pos)


def _part(text: bytes, position: int, length: int) -> bytes:
    size = len(text)
    if not -size <= position <= size:
        raise _out_of_range(text, position, size)
    begin = position + size if position < 0 else position
    return text[begin : begin + length] if length > 0 else b""


def _characters(text: bytes, position: int, length: int) -> bytes:
    """``length`` characters of UTF-8 from ``position`` on."""
    if text.isascii():
        return _part(text, position, length)
    try:
        whole = text.decode()
    except UnicodeDecodeError:
        return _characters_of_damaged(text, position, length)
    size = len(whole)
    if not -size <= position <= size:
        raise _out_of_range(text, position, size)
    begin = position + size if position < 0 else position
    return whole[begin : begin + length].encode() if length > 0 else b""


def _characters_of_damaged(text: bytes, position: int, length: int) -> bytes:
    """The same of what is not UTF-8: a character is a byte that may begin one, and what follows."""
    ends = [*_starts(text).tolist(), len(text)]
    size = len(ends) - 1
    if not -size <= position <= size:
        raise _out_of_range(text, position, size)
    begin = position + size if position < 0 else position
    return text[ends[begin] : ends[min(begin + max(length, 0), size)]]


def _out_of_range(text: bytes, position: int, size: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, f"pos {position} out of range for string {text[:60]!r} of length {size}"
    )


@substr_op.kernel
def _(xp, texts, pos, length, *, unit):
    if pos.shape != length.shape:
        raise InvalidArgumentError(
            None, None, f"pos and len should have the same shape, not {pos.shape}, {length.shape}"
        )
    try:
        wide, places, lengths = np.broadcast_arrays(np.asarray(texts, object), pos, length)
    except ValueError:
        raise InvalidArgumentError(
            None, None, f"pos {pos.shape} does not fit to strings {np.shape(texts)}"
        ) from None
    part = _characters if encoded(unit) == b"UTF8_CHAR" else _part
    out = np.empty(wide.size, object)
    out[:] = list(
        map(
            part,
            wide.reshape(-1).tolist(),
            places.reshape(-1).tolist(),
            lengths.reshape(-1).tolist(),
        )
    )
    return out.reshape(wide.shape)


def string_strip(input: Any, name: str | None = None) -> Tensor:  # noqa: A002 (TensorFlow's name)
    """Strings without the blanks at their ends."""
    return strip_op(input, name=name)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:  # noqa: A002
    """Strings in lower case; letters beyond ASCII's too with ``encoding="utf-8"``."""
    return lower_op(input, encoding=encoding, name=name)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:  # noqa: A002
    """Strings in upper case; letters beyond ASCII's too with ``encoding="utf-8"``."""
    return upper_op(input, encoding=encoding, name=name)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:  # noqa: A002
    """How many bytes strings have, or characters with ``unit="UTF8_CHAR"``.

    Example:
        >>> tf.strings.length(["a", "bcd"])  # [1, 3]
    """
    return length_op(input, unit=unit, name=name)


def substr(
    input: Any,  # noqa: A002 (TensorFlow's name)
    pos: Any,
    len: Any,  # noqa: A002 (TensorFlow's name)
    name: str | None = None,
    unit: str = "BYTE",
) -> Tensor:
    """``len`` bytes of each string from ``pos`` on; a negative ``pos`` counts from the end.

    Example:
        >>> tf.strings.substr(["hello", "world"], 1, 3)  # ["ell", "orl"]
    """
    return substr_op(input, pos, len, unit=unit, name=name)
