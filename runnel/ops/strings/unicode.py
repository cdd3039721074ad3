"""Strings in another encoding."""

from __future__ import annotations

from typing import Any

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
from runnel.ops.strings.texts import each, encoded, string_op

transcode_op = string_op(
    "UnicodeTranscode",
    "input: string",
    "output: string",
    [
        "input_encoding: string",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false",
    ],
)
transcode_op.shape(unchanged)

_MARK = "\ufffd"
_CONTROL = {*range(0x20), *range(0x7F, 0xA0)} - {*b"\t\n\r"}


@transcode_op.kernel
def _(
    xp,
    texts,
    *,
    input_encoding,
    output_encoding,
    errors,
    replacement_char,
    replace_control_characters,
):
    source = encoded(input_encoding).decode()
    target = encoded(output_encoding).decode().replace("-BE", "-be")
    how = encoded(errors).decode()
    stand_in = chr(replacement_char) if how == "replace" else ""

    def one(text: bytes) -> bytes:
        try:
            decoded = text.decode(source, how)
        except LookupError:
            raise InvalidArgumentError(
                None, None, f"Could not create converter for input encoding: {source}"
            ) from None
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                None, None, f"Invalid formatting on input string {text[:60]!r}: {error}"
            ) from None
        if how == "replace" and stand_in != _MARK:
            decoded = decoded.replace(_MARK, stand_in)
        if replace_control_characters:
            decoded = "".join(stand_in if ord(c) in _CONTROL else c for c in decoded)
        return decoded.encode(target)

    return each(one, texts)


def unicode_transcode(
    input: Any,  # noqa: A002 (TensorFlow's name)
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Strings of one encoding in another: "UTF-8", "UTF-16-BE" or "UTF-32-BE"."""
    return transcode_op(
        input,
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )
