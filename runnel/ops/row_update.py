"""An update of some rows of a variable, kept apart until the step has succeeded.

A kernel returns the whole new value of a variable. Of one that changes a few rows of a large table
that is a copy of the table. So such an operation has a second kernel (``OpDef.row_kernel``), which
returns what is to be set where; the runtime sets it in the variable's own memory when nothing of
the step can fail any more, and nobody else looks at it.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class RowUpdate:
    """``base`` with ``rows`` at ``where``, an index of it."""

    __slots__ = ("base", "where", "rows")

    def __init__(self, base: np.ndarray, where: Any, rows: Any) -> None:
        self.base = base
        self.where = where
        self.rows = rows

    def whole(self) -> np.ndarray:
        """The new value, as an array of its own."""
        value = np.array(self.base)
        value[self.where] = self.rows
        return value
