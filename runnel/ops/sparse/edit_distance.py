"""How many changes turn one sequence into another."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.ops.sparse.coordinates import as_sparse, require_sparse, sparse_op

edit_distance_op = sparse_op(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64",
    "output: float",
    ["normalize: bool = true", "T: type"],
)


@edit_distance_op.shape
def _(hi, hv, hypothesis_shape, ti, tv, truth_shape):
    ranks = [s.dims[0] for s in (hypothesis_shape, truth_shape) if s.dims]
    rank = next((r for r in ranks if r is not None), None)
    return None if rank is None else (None,) * (rank - 1)


def distance(a: list[Any], b: list[Any]) -> int:
    """Levenshtein's distance: insertions, deletions and replacements.

    A column of the table of distances is two numbers, whose bits say where it grows and where it
    falls, so each element of ``a`` takes a few operations (Hyyrö, "A bit-vector algorithm for
    computing Levenshtein and Damerau edit distances", 2003).

    >>> distance(list("kitten"), list("sitting"))
    3
    """
    if not a or not b:
        return len(a) + len(b)
    places: dict[Any, int] = {}
    for i, x in enumerate(b):
        places[x] = places.get(x, 0) | 1 << i
    every, last = (1 << len(b)) - 1, 1 << len(b) - 1
    grows, falls, changes = every, 0, len(b)
    for x in a:
        same = places.get(x, 0)
        diagonal = (((same & grows) + grows) ^ grows) | same | falls
        right_grows = falls | (every & ~(diagonal | grows))
        right_falls = diagonal & grows
        if right_grows & last:
            changes += 1
        elif right_falls & last:
            changes -= 1
        right_grows = right_grows << 1 | 1
        grows = (right_falls << 1 | ~(diagonal | right_grows)) & every
        falls = right_grows & diagonal & every
    return changes


def _sequences(indices: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place), []).append(value)
    return found


@edit_distance_op.kernel
def _(xp, hi, hv, hs, ti, tv, ts, *, normalize):
    require_sparse(hi, hv, hs, "hypothesis")
    require_sparse(ti, tv, ts, "truth")
    if len(hs) != len(ts):
        raise InvalidArgumentError(
            None, None, f"hypothesis and truth have ranks {len(hs)} and {len(ts)}"
        )
    hypotheses, truths = _sequences(hi, hv), _sequences(ti, tv)
    groups = tuple(np.maximum(hs[:-1], ts[:-1]).tolist())
    out = np.zeros(groups, np.float32)
    for place in {*hypotheses, *truths}:
        guess, truth = hypotheses.get(place, []), truths.get(place, [])
        changes = distance(guess, truth)
        if normalize:
            out[place] = changes / len(truth) if truth else np.inf if changes else 0
        else:
            out[place] = changes
    return out


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Levenshtein's distance between the sequences of two sparse tensors, in their last dimension.

    Normalized, it is divided by the length of the truth.
    """
    guess, right = as_sparse(hypothesis, "hypothesis"), as_sparse(truth, "truth")
    return edit_distance_op(
        guess.indices,
        guess.values,
        guess.dense_shape,
        right.indices,
        right.values,
        right.dense_shape,
        normalize=normalize,
        name=name,
    )
