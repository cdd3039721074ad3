"""Lines of comma-separated values as tensors, one for each column (RFC 4180)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.native.input_library import carried_library
from runnel.ops.parsing.csv_native import NativeLines
from runnel.ops.parsing.numerals import FEWEST, number_of, numbers_of

decode_csv_op = register_op(
    "DecodeCSV",
    inputs="records: string, record_defaults: OUT_TYPE",
    outputs="output: OUT_TYPE",
    attrs=[
        "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
        "field_delim: string = ','",
        "use_quote_delim: bool = true",
        "na_value: string = ''",
        "select_cols: list(int) = []",
    ],
    host=True,
    differentiable=False,
)


@decode_csv_op.shape
def _(records, defaults):
    for i, default in enumerate(defaults):
        if default.dims is not None and (len(default.dims) > 1 or default.dims[:1] > (1,)):
            raise ValueError(
                f"The default of column {i} must be one value, or an empty list if the column is "
                f"required, not of shape {default.shape}"
            )
    return [records.dims] * len(defaults)


def _mistake(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)


def _fields(line: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of a line."""
    if not line:
        return []
    if b"\n" in line or b"\r" in line or (quotes and b'"' in line):
        return _quoted_fields(line, delimiter, quotes)
    return line.split(delimiter)


def _quoted_fields(line: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    found: list[bytes] = []
    place, size = 0, len(line)
    while place < size:
        if line[place] in b"\r\n":
            place += 1
        elif quotes and line[place : place + 1] == b'"':
            field, place = _quoted(line, place + 1, delimiter)
            found.append(field)
        else:
            end = line.find(delimiter, place)
            end = size if end < 0 else end
            field = line[place:end]
            if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
                raise _mistake("Unquoted fields cannot have quotes/CRLFs inside")
            found.append(field)
            place = end + 1
    if line.endswith(delimiter):
        found.append(b"")
    return found


def _quoted(line: bytes, place: int, delimiter: bytes) -> tuple[bytes, int]:
    """The quoted field that begins at ``place``, and where the next one begins."""
    pieces = []
    while True:
        end = line.find(b'"', place)
        if end < 0:
            raise _mistake("Quoted field has to end with quote followed by delim or end")
        pieces.append(line[place:end])
        after = line[end + 1 : end + 2]
        if not after or after == delimiter:
            return b"".join(pieces), end + 2
        if after != b'"':
            raise _mistake("Quote inside a string has to be escaped by another quote")
        pieces.append(b'"')
        place = end + 2


def _column(
    fields: Sequence[bytes], default: np.ndarray, dtype: DType, number: int, missing: bytes
) -> np.ndarray:
    """The values of a column, of which ``fields`` has the texts."""
    absent: list[int] = []
    if b"" in fields or missing in fields:
        absent = [row for row, field in enumerate(fields) if not field or field == missing]
    if absent and not default.size:
        _values(fields[: absent[0]], dtype, number)  # whose mistakes come first
        raise _mistake(f"Field {number} is required but missing in record {absent[0]}!")
    if not absent:
        return _values(fields, dtype, number)
    present = list(fields)
    for row in absent:
        present[row] = b"0"
    out = _values(present, dtype, number)
    out[absent] = default.reshape(-1)[0]
    return out


def _values(fields: Sequence[bytes], dtype: DType, number: int) -> np.ndarray:
    """What the fields of a column are, of which none is missing."""
    if dtype is not dtypes.string:
        numbers = numbers_of(fields, dtype) if len(fields) >= FEWEST else None
        return _numbers(fields, dtype, number) if numbers is None else numbers
    out = np.empty(len(fields), object)
    out[:] = fields
    return out


def _numbers(fields: Sequence[bytes], dtype: DType, number: int) -> np.ndarray:
    out = np.empty(len(fields), dtype.np_dtype)
    for row, field in enumerate(fields):
        value = number_of(field, dtype)
        if value is None:
            text = field.decode(errors="backslashreplace")
            raise _mistake(f"Field {number} in record {row} is not a valid {dtype.name}: {text}")
        out[row] = value
    return out


@decode_csv_op.kernel
def _(
    xp,
    records,
    defaults,
    *,
    OUT_TYPE,  # noqa: N803 (TensorFlow's name)
    field_delim,
    use_quote_delim,
    na_value,
    select_cols,
):
    records = np.asarray(records, object)
    delimiter = field_delim.encode() if isinstance(field_delim, str) else field_delim
    missing = na_value.encode() if isinstance(na_value, str) else na_value
    lines = records.reshape(-1).tolist()
    how = (delimiter, use_quote_delim, missing, select_cols)
    columns = decoded_columns(lines, defaults, OUT_TYPE, *how)
    return [column.reshape(records.shape) for column in columns]


def decoded_columns(
    lines: list[bytes],
    defaults: Sequence[Any],
    types: Sequence[DType],
    delimiter: bytes,
    quotes: bool,
    missing: bytes,
    chosen: Sequence[int],
) -> list[np.ndarray]:
    """The values of each column of ``lines``, or of the ``chosen`` ones."""
    count = len(types)
    library = carried_library() if len(lines) >= FEWEST and len(delimiter) == 1 else None
    if library is not None:
        read = NativeLines(library, lines, types, delimiter, quotes, missing, chosen)
        if read.are_right:
            return [
                _native_column(read, np.asarray(defaults[i]), types[i], i, missing)
                for i in range(count)
            ]
    columns = _plain_columns(lines, count, delimiter, quotes, chosen)
    if columns is None:
        columns = _general_columns(lines, count, delimiter, quotes, chosen)
    return [
        _column(columns[i], np.asarray(defaults[i]), types[i], i, missing) for i in range(count)
    ]


def _native_column(
    lines: NativeLines, default: np.ndarray, dtype: DType, number: int, missing: bytes
) -> np.ndarray:
    found = lines.values(number, default)
    return _column(lines.texts(number), default, dtype, number, missing) if found is None else found


def _plain_columns(
    lines: list[bytes], count: int, delimiter: bytes, quotes: bool, chosen: Sequence[int]
) -> list[list[bytes]] | None:
    """The texts of each column of lines alike that have no quotes; None for others."""
    content = b"".join(lines)
    if not lines or (quotes and b'"' in content) or b"\n" in content or b"\r" in content:
        return None
    width = lines[0].count(delimiter) + 1
    if width == 1 and b"" in lines:  # an empty line has no fields
        return None
    if (chosen[-1] >= width) if chosen else (count != width):
        return None
    # Between any two lines stands a mark: in its place, if all have as many fields.
    fields = (delimiter + b"\n" + delimiter).join(lines).split(delimiter)
    if len(fields) != len(lines) * (width + 1) - 1:
        return None
    if fields[width :: width + 1].count(b"\n") < len(lines) - 1:
        return None
    return [fields[column :: width + 1] for column in chosen or range(width)]


def _general_columns(
    lines: list[bytes], count: int, delimiter: bytes, quotes: bool, chosen: Sequence[int]
) -> list[Any]:
    """The texts of each column, of any lines."""
    rows = []
    for i, line in enumerate(lines):
        fields = _fields(line, delimiter, quotes)
        if chosen:
            fields = [fields[c] for c in chosen if c < len(fields)]
        if len(fields) != count:
            raise _mistake(f"Expect {count} fields but have {len(fields)} in record {i}")
        rows.append(fields)
    return list(zip(*rows, strict=True)) if rows else [()] * count


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """A tensor for each column of lines of comma-separated values.

    ``record_defaults`` has for each column its type and the value where a field is empty or
    ``na_value``: one value, or an empty list where a field must not be missing. ``select_cols``
    names the columns wanted, in ascending order.

    Example:
        >>> tf.decode_csv(["1,a", ",b"], [[0], [""]])  # [1, 0] and ["a", "b"]
    """
    chosen = [] if select_cols is None else list(select_cols)
    if chosen and (chosen != sorted(set(chosen)) or chosen[0] < 0):
        raise ValueError("select_cols is not strictly increasing.")
    if chosen and len(chosen) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    return decode_csv_op(
        records,
        list(record_defaults),
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=chosen,
        name=name,
    )
