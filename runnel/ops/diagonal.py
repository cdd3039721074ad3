"""Diagonals and bands of matrices.

A band of diagonals ``k = (low, high)`` of matrices is stored as rows, the highest diagonal first;
shorter ones are padded on the side that ``align`` says (first word: above the main diagonal).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims, is_fully_defined
from runnel.ops.array_shape import at_run_time
from runnel.ops.fill import ones, zeros, zeros_like
from runnel.ops.joining import concat

_ALIGN = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"


class Band(NamedTuple):
    """Diagonals ``low`` to ``high`` of a matrix of ``rows`` by ``columns``."""

    low: int
    high: int
    rows: int
    columns: int
    align: str

    @property
    def length(self) -> int:
        """The number of elements of the longest diagonal."""
        return min(self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    def check(self) -> Band:
        """Itself, or a ValueError if the diagonals are not in the matrix."""
        empty = self.rows == 0 or self.columns == 0
        inside = -self.rows < self.low <= self.high < self.columns
        if self.low > self.high or not (inside or empty):
            raise ValueError(
                f"k = ({self.low}, {self.high}) are not diagonals of a {self.rows} x "
                f"{self.columns} matrix, lower one first"
            )
        return self

    def offset(self, xp: Any, diagonal: Any) -> Any:
        """Where a diagonal starts in its row, given how it is aligned."""
        length = xp.minimum(
            self.columns - xp.maximum(diagonal, 0), self.rows + xp.minimum(diagonal, 0)
        )
        above, below = self.align.split("_")
        right = xp.where(diagonal >= 0, above == "RIGHT", below == "RIGHT")
        return xp.where(right, self.length - length, 0)


def _bounds(k: Any) -> tuple[int, int]:
    values = np.atleast_1d(k).tolist()
    if len(values) not in (1, 2):
        raise ValueError(f"k must be a diagonal, or a pair of them, not {values}")
    return values[0], values[-1]


def _part_of(xp: Any, matrix: Any, band: Band, padding: Any) -> Any:
    """The diagonals of a band, as rows."""
    diagonal = band.high - xp.arange(band.high - band.low + 1)[:, None]
    at = xp.arange(band.length)[None, :] - band.offset(xp, diagonal)
    row, column = at - xp.minimum(diagonal, 0), at + xp.maximum(diagonal, 0)
    valid = (row >= 0) & (row < band.rows) & (column >= 0) & (column < band.columns)
    picked = xp.asarray(matrix)[..., xp.where(valid, row, 0), xp.where(valid, column, 0)]
    result = xp.where(valid, picked, padding)
    return result[..., 0, :] if band.low == band.high else result


def _set_diagonal(matrix: Any, band: Band, diagonal: np.ndarray) -> np.ndarray:
    """The same of one diagonal: its elements are equally far apart."""
    out = np.empty((*diagonal.shape[:-1], band.rows, band.columns), diagonal.dtype)
    out[...] = matrix
    start = max(band.low, 0) - min(band.low, 0) * band.columns
    flat = out.reshape(*diagonal.shape[:-1], band.rows * band.columns)
    stop = start + diagonal.shape[-1] * (band.columns + 1)
    flat[..., start : stop : band.columns + 1] = diagonal
    return out


def _set_band(xp: Any, matrix: Any, band: Band, diagonals: Any) -> Any:
    """``matrix`` (or a value to broadcast) with a band replaced by the rows of ``diagonals``."""
    if xp is np and band.low == band.high:
        return _set_diagonal(matrix, band, diagonals)
    if band.low == band.high:
        diagonals = diagonals[..., None, :]
    diagonals = xp.asarray(diagonals)
    row, column = xp.arange(band.rows)[:, None], xp.arange(band.columns)[None, :]
    diagonal = column - row
    valid = (diagonal >= band.low) & (diagonal <= band.high)
    at = xp.minimum(row, column) + band.offset(xp, diagonal)
    picked = diagonals[..., xp.where(valid, band.high - diagonal, 0), xp.where(valid, at, 0)]
    return xp.where(valid, picked, matrix)


# A matrix of its diagonals --------------------------------------------------------------------

matrix_diag_v1_op = register_op(
    "MatrixDiag", inputs="diagonal: T", outputs="output: T", attrs="T: type"
)
matrix_diag_op = register_op(
    "MatrixDiagV3",
    inputs="diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
    outputs="output: T",
    attrs=["T: type", _ALIGN],
    static_inputs=("k", "num_rows", "num_cols"),
)


# Version 2 aligns every diagonal to the left.
matrix_diag_v2_op = register_op(
    "MatrixDiagV2",
    inputs="diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
    outputs="output: T",
    attrs="T: type",
    static_inputs=("k", "num_rows", "num_cols"),
)
_V2_ALIGN = "LEFT_LEFT"


def _band_for(dims: Any, k: Any, rows: int, columns: int, align: str) -> Band:
    low, high = _bounds(k)
    if low != high and (len(dims) < 2 or dims[-2] != high - low + 1):
        raise ValueError(
            f"diagonal must have {high - low + 1} rows, one for each of k = ({low}, {high}), but "
            f"its shape is {format_dims(dims)}"
        )
    if not dims:
        raise ValueError("diagonal must be at least a vector")
    least_rows, least_columns = dims[-1] - min(high, 0), dims[-1] + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    band = Band(low, high, rows, columns, align).check()
    if band.length != dims[-1]:
        raise ValueError(
            f"diagonals of {dims[-1]} elements do not fit a {rows} x {columns} matrix at "
            f"k = ({low}, {high}), whose longest has {band.length}"
        )
    return band


@matrix_diag_v1_op.shape
def _(diagonal):
    if diagonal.dims is None:
        return None
    if not diagonal.dims:
        raise ValueError("diagonal must be at least a vector")
    return (*diagonal.dims, diagonal.dims[-1])


@matrix_diag_v1_op.kernel
def _(xp, diagonal):
    n = diagonal.shape[-1]
    return _set_band(xp, xp.zeros((), diagonal.dtype), Band(0, 0, n, n, "RIGHT_LEFT"), diagonal)


@matrix_diag_v1_op.gradient
def _(op, grad):
    return matrix_diag_part(grad)


@matrix_diag_op.shape
def _(diagonal, k, num_rows, num_cols, padding_value, *, align):
    return _diag_dims(diagonal, k, num_rows, num_cols, align)


@matrix_diag_v2_op.shape
def _(diagonal, k, num_rows, num_cols, padding_value):
    return _diag_dims(diagonal, k, num_rows, num_cols, _V2_ALIGN)


def _diag_dims(diagonal: Tensor, k: Tensor, num_rows: Tensor, num_cols: Tensor, align: str) -> Dims:
    dims = diagonal.dims
    known = [constant_value(t) for t in (k, num_rows, num_cols)]
    if dims is None or any(v is None for v in known):
        return None
    low, high = _bounds(known[0])
    leading = dims[:-1] if low == high else dims[:-2]
    rows, columns = (int(v) for v in known[1:] if v is not None)
    if not is_fully_defined(dims[-1:] if low == high else dims[-2:]):
        return (*leading, None if rows == -1 else rows, None if columns == -1 else columns)
    band = _band_for(dims, known[0], rows, columns, align)
    return (*leading, band.rows, band.columns)


@matrix_diag_op.kernel
def _(xp, diagonal, k, num_rows, num_cols, padding_value, *, align):
    band = at_run_time(_band_for, diagonal.shape, k, int(num_rows), int(num_cols), align)
    return _set_band(xp, padding_value, band, diagonal)


@matrix_diag_v2_op.kernel
def _(xp, diagonal, k, num_rows, num_cols, padding_value):
    band = at_run_time(_band_for, diagonal.shape, k, int(num_rows), int(num_cols), _V2_ALIGN)
    return _set_band(xp, padding_value, band, diagonal)


for _op in (matrix_diag_op, matrix_diag_v2_op):

    @_op.gradient
    def _(op, grad):
        part = _part_op(op, grad, op.inputs[1])
        return [part, None, None, None, None]


def _part_op(op: Operation, grad: Tensor, k: Tensor) -> Tensor:
    """The diagonals ``k`` of ``grad``, by the version that ``op`` has."""
    padding = zeros([], grad.dtype)
    if "align" not in op.attrs:
        return matrix_diag_part_v2_op(grad, k, padding)
    return matrix_diag_part_op(grad, k, padding, align=op.attrs["align"])


def _set_op(op: Operation, matrix: Tensor, diagonal: Tensor, k: Tensor) -> Tensor:
    """``matrix`` with the diagonals ``k`` replaced, by the version that ``op`` has."""
    if "align" not in op.attrs:
        return matrix_set_diag_v2_op(matrix, diagonal, k)
    return matrix_set_diag_op(matrix, diagonal, k, align=op.attrs["align"])


def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the given diagonals, and ``padding_value`` elsewhere.

    Example:
        >>> tf.matrix_diag([1, 2])  # [[1, 0], [0, 2]]
    """
    x = convert_to_tensor(diagonal, name="diagonal")
    padding = _padding(padding_value, x)
    sized = any(isinstance(n, Tensor) or n != -1 for n in (num_rows, num_cols))
    padded = isinstance(padding_value, Tensor) or np.any(np.asarray(padding_value) != 0)
    if _is_main(k) and not sized and not padded:
        return matrix_diag_v1_op(x, name=name)
    if _is_aligned_left(k, align):
        return matrix_diag_v2_op(x, k, num_rows, num_cols, padding, name=name)
    return matrix_diag_op(x, k, num_rows, num_cols, padding, align=align, name=name)


# Graphs have the oldest operation that does, for the sake of TensorFlow 1.15, which lacks the third
# versions.


def _is_main(k: Any) -> bool:
    return not isinstance(k, Tensor) and _bounds(k) == (0, 0)


def _is_aligned_left(k: Any, align: str) -> bool:
    """True where version 2 does what version 3 would do with ``align``."""
    if isinstance(k, Tensor):
        return align == _V2_ALIGN
    low, high = _bounds(k)
    return low == high or align == _V2_ALIGN


def _padding(value: Any, x: Tensor) -> Any:
    return bool(value) if x.dtype.is_bool and not isinstance(value, Tensor) else value


# The diagonals of a matrix --------------------------------------------------------------------

matrix_diag_part_v1_op = register_op(
    "MatrixDiagPart", inputs="input: T", outputs="diagonal: T", attrs="T: type"
)
matrix_diag_part_op = register_op(
    "MatrixDiagPartV3",
    inputs="input: T, k: int32, padding_value: T",
    outputs="diagonal: T",
    attrs=["T: type", _ALIGN],
    static_inputs=("k",),
)


matrix_diag_part_v2_op = register_op(
    "MatrixDiagPartV2",
    inputs="input: T, k: int32, padding_value: T",
    outputs="diagonal: T",
    attrs="T: type",
    static_inputs=("k",),
)


def _require_matrix(dims: Dims) -> None:
    if dims is not None and len(dims) < 2:
        raise ValueError(f"input must be at least a matrix, not of shape {format_dims(dims)}")


@matrix_diag_part_v1_op.shape
def _(x):
    _require_matrix(x.dims)
    if x.dims is None:
        return None
    rows, columns = x.dims[-2:]
    return (*x.dims[:-2], None if rows is None or columns is None else min(rows, columns))


@matrix_diag_part_v1_op.kernel
def _(xp, x):
    return xp.diagonal(x, axis1=-2, axis2=-1)


@matrix_diag_part_v1_op.gradient
def _(op, grad):
    return matrix_set_diag(zeros_like(op.inputs[0]), grad)


def _parts_dims(dims: Dims, k: Any) -> Dims:
    if dims is None or k is None:
        return None
    low, high = _bounds(k)
    rows = () if low == high else (high - low + 1,)
    if None in dims[-2:]:
        return (*dims[:-2], *rows, None)
    height, width = dims[-2:]
    assert height is not None and width is not None
    return (*dims[:-2], *rows, Band(low, high, height, width, "RIGHT_LEFT").check().length)


for _op in (matrix_diag_part_op, matrix_diag_part_v2_op):

    @_op.shape
    def _(x, k, padding_value):
        _require_matrix(x.dims)
        return _parts_dims(x.dims, constant_value(k))


@matrix_diag_part_op.kernel
def _(xp, x, k, padding_value, *, align):
    return _parts(xp, x, k, padding_value, align)


@matrix_diag_part_v2_op.kernel
def _(xp, x, k, padding_value):
    return _parts(xp, x, k, padding_value, _V2_ALIGN)


def _parts(xp: Any, x: Any, k: Any, padding_value: Any, align: str) -> Any:
    low, high = at_run_time(_bounds, k)
    band = Band(low, high, x.shape[-2], x.shape[-1], align)
    at_run_time(band.check)
    if low == high == 0:
        return xp.diagonal(x, axis1=-2, axis2=-1)
    return _part_of(xp, x, band, padding_value)


for _op in (matrix_diag_part_op, matrix_diag_part_v2_op):

    @_op.gradient
    def _(op, grad):
        x, k, _ = op.inputs
        return [_set_op(op, zeros_like(x), grad, k), None, None]


def matrix_diag_part(
    input: Any,  # noqa: A002
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The main diagonals of matrices, or diagonal ``k``, or those from ``k[0]`` to ``k[1]``.

    Example:
        >>> tf.matrix_diag_part([[1, 2], [3, 4]])  # [1, 4]
    """
    x = convert_to_tensor(input, name="input")
    if _is_main(k):
        return matrix_diag_part_v1_op(x, name=name)
    if _is_aligned_left(k, align):
        return matrix_diag_part_v2_op(x, k, _padding(padding_value, x), name=name)
    return matrix_diag_part_op(x, k, _padding(padding_value, x), align=align, name=name)


# A matrix with other diagonals ----------------------------------------------------------------

matrix_set_diag_v1_op = register_op(
    "MatrixSetDiag", inputs="input: T, diagonal: T", outputs="output: T", attrs="T: type"
)
matrix_set_diag_op = register_op(
    "MatrixSetDiagV3",
    inputs="input: T, diagonal: T, k: int32",
    outputs="output: T",
    attrs=["T: type", _ALIGN],
    static_inputs=("k",),
)


matrix_set_diag_v2_op = register_op(
    "MatrixSetDiagV2",
    inputs="input: T, diagonal: T, k: int32",
    outputs="output: T",
    attrs="T: type",
    static_inputs=("k",),
)


@matrix_set_diag_v1_op.shape
def _(x, diagonal):
    _require_matrix(x.dims)
    return x.dims


for _op in (matrix_set_diag_op, matrix_set_diag_v2_op):

    @_op.shape
    def _(x, diagonal, k):
        _require_matrix(x.dims)
        return x.dims


def _replaced(xp: Any, x: Any, diagonal: Any, k: Any, align: str) -> Any:
    low, high = at_run_time(_bounds, k)
    band = Band(low, high, x.shape[-2], x.shape[-1], align)
    at_run_time(band.check)
    wanted = _parts_dims(x.shape, k)
    if diagonal.shape != wanted:
        raise InvalidArgumentError(
            None,
            None,
            f"diagonal must have the shape {format_dims(wanted)} for matrices of shape "
            f"{format_dims(x.shape)}, not {format_dims(diagonal.shape)}",
        )
    return _set_band(xp, x, band, diagonal)


@matrix_set_diag_v1_op.kernel
def _(xp, x, diagonal):
    return _replaced(xp, x, diagonal, 0, "RIGHT_LEFT")


@matrix_set_diag_op.kernel
def _(xp, x, diagonal, k, *, align):
    return _replaced(xp, x, diagonal, k, align)


@matrix_set_diag_v2_op.kernel
def _(xp, x, diagonal, k):
    return _replaced(xp, x, diagonal, k, _V2_ALIGN)


@matrix_set_diag_v1_op.gradient
def _(op, grad):
    return [matrix_set_diag(grad, zeros_like(op.inputs[1])), matrix_diag_part(grad)]


for _op in (matrix_set_diag_op, matrix_set_diag_v2_op):

    @_op.gradient
    def _(op, grad):
        _, diagonal, k = op.inputs
        kept = _set_op(op, grad, zeros_like(diagonal), k)
        return [kept, _part_op(op, grad, k), None]


def matrix_set_diag(
    input: Any,  # noqa: A002
    diagonal: Any,
    name: str = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with their main diagonal (or those that ``k`` says) replaced.

    Example:
        >>> tf.matrix_set_diag([[1, 2], [3, 4]], [8, 9])  # [[8, 2], [3, 9]]
    """
    if _is_main(k):
        return matrix_set_diag_v1_op(input, diagonal, name=name)
    if _is_aligned_left(k, align):
        return matrix_set_diag_v2_op(input, diagonal, k, name=name)
    return matrix_set_diag_op(input, diagonal, k, align=align, name=name)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """An identity matrix, or a batch of them.

    Example:
        >>> tf.eye(2)  # [[1., 0.], [0., 1.]]
    """
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        columns = num_rows if num_columns is None else num_columns
        batch = [] if batch_shape is None else batch_shape
        kind = as_dtype(dtype)
        static = all(isinstance(n, int | np.integer) for n in (num_rows, columns))
        if static and not isinstance(batch, Tensor):
            lead: Any = list(batch)
            whole: Any = [*lead, num_rows, columns]
            diagonal: Any = [*lead, min(num_rows, columns)]
        else:
            lead = convert_to_tensor(batch, dtypes.int32)
            n, m = (convert_to_tensor(v, dtypes.int32) for v in (num_rows, columns))
            from runnel.ops.arithmetic import minimum

            whole = concat([lead, [n, m]], 0)
            diagonal = concat([lead, [minimum(n, m)]], 0)
        if num_columns is None:
            return matrix_diag(ones(diagonal, kind))
        return matrix_set_diag(zeros(whole, kind), ones(diagonal, kind))
