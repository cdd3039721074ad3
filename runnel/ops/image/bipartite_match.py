"""Pairs of rows and columns of a matrix of distances: the nearest first, each used once.

Which of equal distances comes first is what the heap of GNU's C++ library makes of them, as in
TensorFlow: matrices of overlaps between boxes are full of equal elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims

bipartite_match_op = register_op(
    "BipartiteMatch",
    inputs="distance_mat: float, num_valid_rows: float",
    outputs="row_to_col_match_indices: int32, col_to_row_match_indices: int32",
    attrs="top_k: int = -1",
    host=True,
    differentiable=False,
)


@bipartite_match_op.shape
def _(distance_mat, num_valid_rows, *, top_k):
    dims = distance_mat.dims
    if dims is not None and len(dims) != 2:
        raise ValueError(f"distance_mat must be a matrix, not of shape {format_dims(dims)}")
    rows, columns = dims or (None, None)
    return [(rows,), (columns,)]


@bipartite_match_op.kernel
def _(xp, distance_mat, num_valid_rows, *, top_k):
    if distance_mat.ndim != 2 or num_valid_rows.size != 1:
        raise InvalidArgumentError(
            None,
            None,
            "distance_mat must be a matrix and num_valid_rows one number, not of shapes "
            f"{list(distance_mat.shape)} and {list(num_valid_rows.shape)}",
        )
    rows, columns = distance_mat.shape
    given = float(num_valid_rows.reshape(()))
    valid = rows if given < 0 else int(given + 0.1)
    if valid > rows:
        raise InvalidArgumentError(
            None, None, f"distance_mat has {rows} rows, of which {valid} cannot be valid"
        )
    of_row, of_column = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    wanted = min(valid, columns)
    if top_k > 0:
        wanted = min(wanted, top_k)
    heap = _Nearest(distance_mat[:valid].ravel().tolist())
    while wanted and heap.places:
        row, column = divmod(heap.pop(), columns)
        if of_row[row] == of_column[column] == -1:
            of_row[row], of_column[column] = column, row
            wanted -= 1
    return of_row, of_column


class _Nearest:
    """The places of distances, the least on top of a binary heap, in the order of libstdc++."""

    def __init__(self, distances: list[float]) -> None:
        self._distances = distances
        self.places: list[int] = []
        for place in range(len(distances)):
            self.places.append(place)
            self._rise(len(self.places) - 1, place)

    def pop(self) -> int:
        """The place of the least distance, which leaves the heap."""
        places, distances = self.places, self._distances
        top, last = places[0], places.pop()
        if not places:
            return top
        # The hole at the top sinks to a leaf; the last element rises from there.
        hole, count = 0, len(places)
        while (child := 2 * hole + 2) < count:
            if distances[places[child - 1]] < distances[places[child]]:
                child -= 1
            places[hole] = places[child]
            hole = child
        if child == count:
            places[hole] = places[child - 1]
            hole = child - 1
        self._rise(hole, last)
        return top

    def _rise(self, hole: int, place: int) -> None:
        places, distances = self.places, self._distances
        while hole and distances[place] < distances[places[(hole - 1) // 2]]:
            places[hole] = places[(hole - 1) // 2]
            hole = (hole - 1) // 2
        places[hole] = place


def bipartite_match(
    distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str = "bipartite_match"
) -> tuple[Tensor, Tensor]:
    """The column of each row and the row of each column, -1 for none: the nearest pairs first.

    Only the first ``num_valid_rows`` rows are matched (all, if it is negative), and only ``top_k``
    pairs, if it is positive.

    Example:
        >>> column_of_row, row_of_column = tf.contrib.image.bipartite_match([[0.1, 0.3]], -1)
    """
    found: tuple[Tensor, Tensor] = bipartite_match_op(
        distance_mat, num_valid_rows, top_k=top_k, name=name
    )
    return found
