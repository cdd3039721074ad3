"""A compiled segment that has been started, but not yet been seen to succeed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from runnel.runtime.state import Cell


class Unconfirmed:
    """What is still to be waited for: the segment's checks, and arrays that use the caller's."""

    __slots__ = ("_check", "_arrays", "_cells")

    def __init__(
        self,
        check: Callable[[], None] | None,
        arrays: Sequence[Any] = (),
        cells: Sequence[Cell] = (),
    ) -> None:
        self._check = check
        self._arrays = arrays
        self._cells = cells

    def confirm(self) -> None:
        """Waits for the checks, if there are any; raises when one has failed."""
        check, self._check = self._check, None
        if check is not None:
            check()

    def finish(self) -> None:
        """Waits for everything; raises what went wrong."""
        self.confirm()
        # A later segment may have replaced the state in place; its result follows from this one.
        for array in (*self._arrays, *(cell.value for cell in self._cells)):
            if hasattr(array, "block_until_ready") and not array.is_deleted():
                array.block_until_ready()

    def settle(self) -> None:
        """Waits, whatever the outcome: the step has failed elsewhere."""
        self._check = None
        with suppress(Exception):
            self.finish()
