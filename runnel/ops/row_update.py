"""An update of some rows of a variable, kept apart until the step has succeeded.

A kernel returns the whole new value of a variable. Of one that changes a few rows of a large table
that is a copy of the table. So such an operation has a second kernel (``OpDef.row_kernel``), which
returns what is to be set where; the runtime sets it in the variable's own memory when nothing of
the step can fail any more, and nobody else looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.mapped_array import no_look, own_copy


class RowUpdate:
    """``base`` with ``rows`` at ``where``, an index of it."""

    __slots__ = ("base", "where", "rows")

    def __init__(self, base: np.ndarray, where: Any, rows: Any) -> None:
        self.base = base
        self.where = where
        self.rows = rows

    def whole(self, look: Callable[[], None] = no_look) -> np.ndarray:
        """The new value, as an array of its own; mapped if ``base`` is (``look`` may stop that)."""
        value = own_copy(self.base, look)
        set_rows(value, self.where, self.rows)
        return value


def set_rows(target: np.ndarray, where: Any, rows: Any) -> None:
    """``target[where] = rows``."""
    target, rows = whole_rows(target, where, rows)
    target[where] = rows


def whole_rows(target: np.ndarray, where: Any, rows: Any) -> tuple[np.ndarray, Any]:
    """Views of ``target`` and ``rows`` for ``target[where] = rows``, each row an opaque element.

    NumPy sets such elements more than twice as fast as rows of a matrix. Both are given back as
    they are where their layout, or what ``where`` is, does not allow it.
    """
    if not (
        isinstance(rows, np.ndarray)
        and isinstance(where, np.ndarray)
        and where.ndim == 1
        and where.dtype.kind in "iu"
        and target.ndim > 1
        and rows.dtype == target.dtype
        and not target.dtype.hasobject
        and rows.shape == (where.size, *target.shape[1:])
        and target.flags.c_contiguous
        and rows.flags.c_contiguous
        and rows.size
    ):
        return target, rows
    row = np.dtype((np.void, rows.nbytes // where.size))
    return tuple(array.reshape(-1).view(row) for array in (target, rows))  # type: ignore[return-value]
