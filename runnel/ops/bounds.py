"""Checks that indices, which are data, stay inside the tensor that they point into."""

from __future__ import annotations

from typing import Any

import numpy as np

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def in_range(xp: Any, indices: Any, size: int, check: Any, what: str = "indices") -> None:
    """Checks that every index is in [0, size); the message names the first that is not."""

    def explain() -> str:
        bad = np.argwhere((indices < 0) | (indices >= size))[0]
        at = ",".join(map(str, bad))
        value = np.asarray(indices)[tuple(bad)]
        return f"{what}[{at}] = {value} is not in [0, {size})"

    if xp is np:
        holds = are_in_range(indices, size)
    else:
        holds = xp.all((indices >= 0) & (indices < size))
    check(holds, explain)


def are_in_range(indices: np.ndarray, size: int) -> bool:
    """Whether every index is in [0, size)."""
    # As unsigned numbers negative ones are huge, so one pass over them is enough.
    unsigned = indices.view(_UNSIGNED[indices.dtype.itemsize])
    return bool(indices.size == 0 or unsigned.max() < size)
