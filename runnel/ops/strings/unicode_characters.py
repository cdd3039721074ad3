"""Strings as rows of characters, and characters as strings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import num_elements
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.joining import concat
from runnel.ops.ragged.ragged_tensor import RaggedTensor, ragged_or_tensor
from runnel.ops.ranges import range as sequence
from runnel.ops.strings.texts import encoded, in_pieces, one_by_one, string_op

_HOW = [
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
    "Tsplits: {int32, int64} = DT_INT64",
]
_SPLITS = "row_splits: Tsplits, char_values: int32"

decode_op = string_op("UnicodeDecode", "input: string", _SPLITS, ["input_encoding: string", *_HOW])
decode_with_offsets_op = string_op(
    "UnicodeDecodeWithOffsets",
    "input: string",
    f"{_SPLITS}, char_to_byte_starts: int64",
    ["input_encoding: string", *_HOW],
)
encode_op = string_op(
    "UnicodeEncode",
    "input_values: int32, input_splits: Tsplits",
    "output: string",
    [
        "errors: {'ignore', 'replace', 'strict'} = 'replace'",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "replacement_char: int = 65533",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
)

_CONTROL = {*range(0x20), *range(0x7F, 0xA0)}


def _row_dims(texts: Tensor) -> list[Any]:
    count = num_elements(texts.dims)
    return [(None if count is None else count + 1,), (None,)]


@decode_op.shape
def _(texts):
    return _row_dims(texts)


@decode_with_offsets_op.shape
def _(texts):
    return [*_row_dims(texts), (None,)]


@encode_op.shape
def _(values, splits):
    rows = splits.dims[0] if splits.dims else None
    return (None if rows is None else rows - 1,)


def _characters(
    text: bytes, encoding: str, how: str, stand_in: int, no_controls: bool
) -> tuple[list[int], list[int]]:
    """The numbers of the characters of ``text``, and at which bytes they begin."""
    found: list[int] = []
    starts: list[int] = []

    def add(number: int, start: int) -> None:
        found.append(number)
        starts.append(start)

    place = 0
    while place < len(text):
        try:
            rest = text[place:].decode(encoding)
            bad: UnicodeDecodeError | None = None
        except UnicodeDecodeError as error:
            rest, bad = text[place : place + error.start].decode(encoding), error
        for character in rest:
            number = ord(character)
            if no_controls and number in _CONTROL and how != "strict":
                if how == "replace":
                    add(stand_in, place)
            else:
                add(number, place)
            place += len(character.encode(encoding))
        if bad is None:
            break
        if how == "strict":
            raise InvalidArgumentError(
                None, None, f"Invalid formatting on input string {text[:60]!r}: {bad}"
            )
        if how == "replace":
            add(stand_in, place)
        place += bad.end - bad.start
    return found, starts


_WIDTHS = {
    "utf-8": (1, [0x80, 0x800, 0x10000], 1),
    "utf-16-be": (2, [0x10000], 2),
    "utf-32-be": (4, [], 0),
}
"""How many bytes a character has at least, from which ones on it has more, and how many more."""


def _decoded_together(
    texts: np.ndarray, codec: str, kind: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The characters of texts; ``UnicodeDecodeError`` where one of them has something else."""
    decoded: list[str] = []
    for piece in in_pieces(texts):
        decoded += [text.decode(codec) for text in piece]
    splits = np.zeros(len(decoded) + 1, np.int64)
    splits[1:] = np.cumsum(np.fromiter(map(len, decoded), np.int64, len(decoded)))
    numbers = np.frombuffer("".join(decoded).encode("utf-32-le"), "<i4")
    least, bounds, more = _WIDTHS[codec]
    sizes = np.full(len(numbers), least, np.int64)
    for bound in bounds:
        sizes += more * (numbers >= bound)
    begins = np.cumsum(sizes) - sizes
    # From the first byte of all texts to the first of the own one.
    firsts = np.append(begins, 0)[splits[:-1]] if len(numbers) else splits[:-1]
    return splits.astype(kind), numbers.copy(), begins - np.repeat(firsts, np.diff(splits))


def _decoded(
    texts: Any, encoding: Any, errors: Any, stand_in: int, no_controls: bool, kind: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    name = encoded(encoding).decode()
    codec = name.lower() if name.upper().endswith("BE") or name.upper() == "UTF-8" else name
    try:
        "".encode(codec)
    except LookupError:
        raise InvalidArgumentError(
            None, None, f"Could not create converter for input encoding: {name}"
        ) from None
    how = encoded(errors).decode()
    array = np.asarray(texts, object)
    if codec.lower() in _WIDTHS and (how == "strict" or not no_controls):
        with suppress(UnicodeDecodeError):
            return _decoded_together(array, codec.lower(), kind)
    numbers: list[int] = []
    places: list[int] = []
    splits = [0]
    for text in one_by_one(array):
        found, starts = _characters(text, codec, how, stand_in, no_controls)
        numbers += found
        places += starts
        splits.append(len(numbers))
    return np.array(splits, kind), np.array(numbers, np.int32), np.array(places, np.int64)


@decode_op.kernel
def _(
    xp,
    texts,
    *,
    input_encoding,
    errors,
    replacement_char,
    replace_control_characters,
    Tsplits,  # noqa: N803 (TensorFlow's name)
):
    return _decoded(
        texts,
        input_encoding,
        errors,
        replacement_char,
        replace_control_characters,
        Tsplits.np_dtype,
    )[:2]


@decode_with_offsets_op.kernel
def _(
    xp,
    texts,
    *,
    input_encoding,
    errors,
    replacement_char,
    replace_control_characters,
    Tsplits,  # noqa: N803 (TensorFlow's name)
):
    return _decoded(
        texts,
        input_encoding,
        errors,
        replacement_char,
        replace_control_characters,
        Tsplits.np_dtype,
    )


@encode_op.kernel
def _(xp, values, splits, *, errors, output_encoding, replacement_char):
    how = encoded(errors).decode()
    target = encoded(output_encoding).decode().lower()

    def one(number: int) -> str:
        if 0 <= number < 0x110000 and not 0xD800 <= number < 0xE000:
            return chr(number)
        if how == "strict":
            raise InvalidArgumentError(None, None, f"Code point is out of range: {number}")
        return chr(replacement_char) if how == "replace" else ""

    usual = (values >= 0) & (values < 0x110000) & ((values < 0xD800) | (values >= 0xE000))
    characters: Any
    if usual.all():
        characters = values.astype("<i4").tobytes().decode("utf-32-le")
    else:
        characters = [one(number) for number in values.tolist()]
    cuts = splits.tolist()
    out = np.empty(len(cuts) - 1, object)
    out[:] = [
        "".join(characters[a:b]).encode(target) for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    return out


# Functions ------------------------------------------------------------------------------------


def _by_rows(texts: Any, make: Any) -> Any:
    """``make`` of a vector of strings, in the form of ``texts``: a scalar, a vector or more."""
    if isinstance(texts, RaggedTensor):
        return _each(texts.with_values, _by_rows(texts.values, make))
    rank = None if texts.dims is None else len(texts.dims)
    if rank is None:
        raise ValueError("The rank of the strings must be known")
    if rank > 1:
        ragged = RaggedTensor.from_tensor(texts, ragged_rank=rank - 1)
        return _each(ragged.with_flat_values, _by_rows(ragged.flat_values, make))
    made = make(reshape(texts, [-1]))
    if rank == 1:
        return made
    return _each(lambda rows: rows.values, made)


def _each(function: Any, made: Any) -> Any:
    return tuple(map(function, made)) if isinstance(made, tuple) else function(made)


def _split_into(
    input: Any,
    encoding: str,
    errors: str,
    stand_in: int,
    controls: bool,
    offsets: bool,
    name: Any,  # noqa: A002
) -> Any:
    how: dict[str, Any] = {
        "input_encoding": encoding,
        "errors": errors,
        "replacement_char": stand_in,
        "replace_control_characters": controls,
    }
    with name_scope(name, "UnicodeDecode", []):
        texts = ragged_or_tensor(input, dtypes.string)

        def make(vector: Tensor) -> Any:
            if not offsets:
                splits, numbers = decode_op(vector, **how)
                return RaggedTensor(numbers, splits)
            splits, numbers, starts = decode_with_offsets_op(vector, **how)
            return RaggedTensor(numbers, splits), RaggedTensor(starts, splits)

        return _by_rows(texts, make)


def unicode_decode(
    input: Any,  # noqa: A002 (TensorFlow's name)
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The numbers of the characters of each string, as a ragged tensor.

    Example:
        >>> tf.strings.unicode_decode(["aä"], "UTF-8")  # [[97, 228]]
    """
    return _split_into(
        input, input_encoding, errors, replacement_char, replace_control_characters, False, name
    )


def unicode_decode_with_offsets(
    input: Any,  # noqa: A002 (TensorFlow's name)
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """:func:`unicode_decode`, and at which byte each character begins."""
    return _split_into(
        input, input_encoding, errors, replacement_char, replace_control_characters, True, name
    )


def unicode_encode(
    input: Any,  # noqa: A002 (TensorFlow's name)
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Strings of characters, whose numbers are the rows of ``input``."""
    how: dict[str, Any] = {
        "output_encoding": output_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
    }
    with name_scope(name, "UnicodeEncode", []):
        numbers = ragged_or_tensor(input, dtypes.int32)
        if isinstance(numbers, RaggedTensor):
            if isinstance(numbers.values, RaggedTensor):
                return numbers.with_values(unicode_encode(numbers.values, **how))
            return encode_op(numbers.values, numbers.row_splits, **how)
        rank = None if numbers.dims is None else len(numbers.dims)
        if rank == 1:
            ends = concat([[0], shape_of(numbers)], 0)
            return reshape(encode_op(numbers, ends, **how), [])
        if rank != 2:
            raise ValueError("unicode_encode needs rows of numbers: a vector, a matrix, or ragged")
        return unicode_encode(RaggedTensor.from_tensor(numbers), **how)


def _as_strings(numbers: Any, encoding: str) -> Any:
    """Each number as a string of one character."""
    flat = numbers.flat_values if isinstance(numbers, RaggedTensor) else numbers
    singles = encode_op(flat, sequence(shape_of(flat)[0] + 1), output_encoding=encoding)
    return numbers.with_flat_values(singles) if isinstance(numbers, RaggedTensor) else singles


def unicode_split(
    input: Any,  # noqa: A002 (TensorFlow's name)
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """The characters of each string, as strings."""
    numbers = unicode_decode(input, input_encoding, errors, replacement_char, name=name)
    return _as_strings(numbers, input_encoding)


def unicode_split_with_offsets(
    input: Any,  # noqa: A002 (TensorFlow's name)
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """:func:`unicode_split`, and at which byte each character begins."""
    numbers, starts = unicode_decode_with_offsets(
        input, input_encoding, errors, replacement_char, name=name
    )
    return _as_strings(numbers, input_encoding), starts
