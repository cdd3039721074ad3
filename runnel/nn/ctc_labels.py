"""Labels made ready for connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.functional import map_fn
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32, int64
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, shape, size
from runnel.ops.casting import cast
from runnel.ops.comparison import logical_and, not_equal
from runnel.ops.cumulative import cumsum
from runnel.ops.gather import gather_nd
from runnel.ops.joining import stack
from runnel.ops.masking import sequence_mask
from runnel.ops.padding import pad
from runnel.ops.reduce_functions import reduce_max, reduce_sum
from runnel.ops.scatter_nd import scatter_nd
from runnel.ops.selection import where
from runnel.ops.unique import unique


def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Each row of ``labels`` with one label for a run of equal ones, and the rows' new lengths.

    Only the first ``seq_length`` labels of a row count. Rows end with zeros, and are as long as
    the longest.

    Example:
        >>> tf.nn.collapse_repeated([[7, 7, 8, 7], [1, 2, 3, 3]], [4, 2])
        ([[7, 8, 7], [1, 2, 0]], [3, 2])
    """
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        lengths = convert_to_tensor(seq_length, name="seq_length")
        other = not_equal(labels[:, 1:], labels[:, :-1])
        first = pad(other, [[0, 0], [1, 0]], constant_values=True)
        # Rows without columns have no first label.
        kept = logical_and(first[:, : shape(labels)[1]], sequence_mask(lengths, shape(labels)[1]))
        counts = reduce_sum(cast(kept, int32), 1)
        found = where(kept)
        places = gather_nd(cumsum(cast(kept, int64), 1) - 1, found)
        dims = cast(stack([shape(labels)[0], reduce_max(counts)]), int64)
        rows = scatter_nd(stack([found[:, 0], places], 1), gather_nd(labels, found), dims)
        return rows, cast(counts, lengths.dtype)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row, ending with zeros, and where each label is among them.

    Example:
        >>> tf.nn.ctc_unique_labels([[3, 4, 4, 3]])  # [[3, 4, 0, 0]] and [[0, 1, 1, 0]]
    """
    with name_scope(name, "ctc_unique_labels", [labels]):

        def of_row(row: Tensor) -> tuple[Tensor, Tensor]:
            found = unique(row)
            rest = size(found.idx) - size(found.y)
            return cast(pad(found.y, expand_dims(stack([0, rest]), 0)), int64), found.idx

        rows, places = map_fn(
            of_row, convert_to_tensor(labels, name="labels"), dtype=(int64, int32)
        )
        return rows, places
