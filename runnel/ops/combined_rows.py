"""Combining rows that belong together by native code, where the package carries it."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.native.input_library import carried_library

_OPERATIONS: dict[Any, int] = {np.add: 0, np.multiply: 1, np.maximum: 2, np.minimum: 3}
_TYPES = {np.dtype(t): i for i, t in enumerate((np.float32, np.float64, np.int32, np.int64))}


def combined_natively(
    ufunc: np.ufunc,
    out: np.ndarray,
    targets: np.ndarray,
    data: np.ndarray,
    *,
    sources: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    anew: bool = False,
) -> bool:
    """``out[targets[i]] = ufunc(out[targets[i]], data[i])`` for one i after the other.

    ``sources`` says which row of ``data`` is meant instead of row i, and ``weights`` by what it is
    multiplied. With ``anew`` the first row for a place replaces what is there; it has no weights.
    Targets and sources that do not exist are skipped. False, and nothing is done, where native code
    cannot do it.
    """
    kind = _TYPES.get(out.dtype)
    operation = _OPERATIONS.get(ufunc)
    if kind is None or operation is None or data.dtype != out.dtype or not out.flags.c_contiguous:
        return False
    library = carried_library()
    if library is None:
        return False
    if not targets.size or not data.size or not out.size:
        return True
    places = np.ascontiguousarray(targets, np.int64)
    rows = np.ascontiguousarray(data)
    chosen = None if sources is None else np.ascontiguousarray(sources, np.int64)
    factors = None if weights is None else np.ascontiguousarray(weights, out.dtype)
    begun = np.zeros(out.shape[0], np.uint8) if anew else None
    library.runnel_combine_rows(
        operation,
        kind,
        places.ctypes.data,
        None if chosen is None else chosen.ctypes.data,
        rows.ctypes.data,
        None if factors is None else factors.ctypes.data,
        places.size,
        out.size // out.shape[0],
        rows.shape[0],
        out.shape[0],
        out.ctypes.data,
        None if begun is None else begun.ctypes.data,
    )
    return True
