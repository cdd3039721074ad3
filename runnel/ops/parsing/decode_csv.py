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
from runnel.ops.parsing.numerals import number_of

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
    fields: list[bytes], default: np.ndarray, dtype: DType, number: int, missing: bytes
) -> np.ndarray:
    """The values of a column, of which ``fields`` has the texts."""
    out = np.empty(len(fields), dtype.np_dtype)
    for row, field in enumerate(fields):
        if not field or field == missing:
            if not default.size:
                raise _mistake(f"Field {number} is required but missing in record {row}!")
            out[row] = default.reshape(-1)[0]
        elif dtype is dtypes.string:
            out[row] = field
        else:
            value = number_of(field, dtype)
            if value is None:
                text = field.decode(errors="backslashreplace")
                raise _mistake(
                    f"Field {number} in record {row} is not a valid {dtype.name}: {text}"
                )
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
    rows = []
    for i, line in enumerate(lines):
        fields = _fields(line, delimiter, quotes)
        if chosen:
            fields = [fields[c] for c in chosen if c < len(fields)]
        if len(fields) != count:
            raise _mistake(f"Expect {count} fields but have {len(fields)} in record {i}")
        rows.append(fields)
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * count
    return [
        _column(list(columns[i]), np.asarray(defaults[i]), types[i], i, missing)
        for i in range(count)
    ]


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
