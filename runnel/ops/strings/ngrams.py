"""Runs of neighbouring strings, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import string
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.joining import concat
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.strings.texts import encoded, string_op

ngrams_op = string_op(
    "StringNGrams",
    "data: string, data_splits: Tsplits",
    "ngrams: string, ngrams_splits: Tsplits",
    [
        "separator: string",
        "ngram_widths: list(int) >= 0",
        "left_pad: string",
        "right_pad: string",
        "pad_width: int",
        "preserve_short_sequences: bool",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
)


@ngrams_op.shape
def _(data, splits):
    return [(None,), splits.dims]


@ngrams_op.kernel
def _(
    xp,
    data,
    splits,
    *,
    separator,
    ngram_widths,
    left_pad,
    right_pad,
    pad_width,
    preserve_short_sequences,
    Tsplits,  # noqa: N803 (TensorFlow's name)
):
    ends = np.asarray(splits).tolist()
    if ends and (ends[0] != 0 or ends[-1] != len(data) or sorted(ends) != ends):
        raise InvalidArgumentError(
            None, None, f"Invalid split values {ends[:20]} of {len(data)} strings"
        )
    between, left, right = encoded(separator), encoded(left_pad), encoded(right_pad)
    texts = np.asarray(data, object).tolist()

    def grams(row: list[bytes], width: int, pads: int) -> list[bytes]:
        wide = [left] * pads + row + [right] * pads
        return [between.join(wide[at : at + width]) for at in range(len(wide) - width + 1)]

    found: list[bytes] = []
    out_splits = [0] if ends else []
    for begin, end in zip(ends, ends[1:], strict=False):
        row = texts[begin:end]
        of_row: list[bytes] = []
        for width in ngram_widths:
            pads = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            of_row += grams(row, width, pads)
        if not of_row and preserve_short_sequences and row:
            pads = max(pad_width, 0)
            of_row = grams(row, len(row) + 2 * pads, pads)
        found += of_row
        out_splits.append(len(found))
    values = np.empty(len(found), object)
    values[:] = found
    return values, np.array(out_splits, Tsplits.np_dtype)


def ngrams(
    data: Any,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The runs of ``ngram_width`` neighbouring strings of each row, joined by ``separator``.

    ``pad_values``, one string or one for each side, are put around rows, ``padding_width`` of them
    (by default one less than the width). With ``preserve_short_sequences`` a row that is too short
    is one run. Rows are those of the last dimension of a tensor or a ragged tensor.

    Example:
        >>> tf.strings.ngrams(["to", "be", "or"], 2)  # ["to be", "be or"]
    """
    pads = ("", "") if pad_values is None else pad_values
    pads = (pads, pads) if isinstance(pads, str | bytes) else pads
    if not (
        isinstance(pads, list | tuple)
        and len(pads) == 2
        and all(isinstance(pad, str | bytes) for pad in pads)
    ):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    pad_width = (-1 if padding_width is None else padding_width) if pad_values is not None else 0

    def of(rows: RaggedTensor) -> RaggedTensor:
        if rows.ragged_rank > 1:
            return rows.with_values(of(rows.values))
        flat, splits = ngrams_op(
            rows.values,
            rows.row_splits,
            separator=separator,
            ngram_widths=widths,
            left_pad=pads[0],
            right_pad=pads[1],
            pad_width=pad_width,
            preserve_short_sequences=preserve_short_sequences,
        )
        return RaggedTensor.from_row_splits(flat, splits, validate=False)

    with name_scope(name, "StringNGrams", []):
        if isinstance(data, RaggedTensor):
            return of(data)
        texts: Tensor = convert_to_tensor(data, string)
        if texts.dims is None or not texts.dims:
            raise ValueError(f"The rank of data must be known and positive, not {texts.shape}.")
        if len(texts.dims) == 1:
            return of(RaggedTensor.from_tensor(reshape(texts, [1, -1]))).values
        rows = RaggedTensor.from_tensor(texts, ragged_rank=len(texts.dims) - 1)
        return reshape(of(rows).flat_values, concat([shape_of(texts)[:-1], [-1]], 0))
