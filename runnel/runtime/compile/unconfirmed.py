"""A compiled segment that has been started, but not yet been seen to succeed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any


class Unconfirmed:
    """What is still to be waited for: the end of a call and its checks, or arrays.

    ``check`` waits for the call and raises when one of its checks has failed.
    """

    __slots__ = ("_check", "_arrays")

    def __init__(self, check: Callable[[], None] | None, arrays: Sequence[Any] = ()) -> None:
        self._check = check
        self._arrays = arrays

    def confirm(self) -> None:
        """Waits for the checks, if there are any; raises when one has failed."""
        if self._check is not None:
            try:
                self._check()
            except Exception:
                self._check = None  # but a wait that was interrupted is repeated
                raise
            self._check = None

    def finish(self) -> None:
        """Waits for everything; raises what went wrong."""
        self.confirm()
        for array in self._arrays:
            if hasattr(array, "block_until_ready"):
                array.block_until_ready()

    def finish_for_good(self) -> None:
        """:meth:`finish`; an interrupt is raised when nothing is in use any more."""
        try:
            self.finish()
        except BaseException:
            self.await_end()
            raise

    def await_end(self) -> None:
        """Waits, whatever the outcome: the step has failed elsewhere; a failed check is undone."""
        with suppress(Exception):
            self.finish()
