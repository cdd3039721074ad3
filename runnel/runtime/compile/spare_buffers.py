"""Buffers that a call of a compiled segment leaves for the next one."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from runnel.runtime.compile.buffers import new_buffers

if TYPE_CHECKING:
    from runnel.runtime.compile.executable import Executable


class SpareBuffers:
    """The buffers in which a segment's last call worked."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        # Single operations of a deque need no lock.
        self._left: deque[tuple[Executable, tuple[Any, ...]]] = deque(maxlen=1)

    def keep(self, executable: Executable, buffers: tuple[Any, ...]) -> None:
        """Keeps them for the next call."""
        self._left.append((executable, buffers))

    def forget(self) -> None:
        """Gives their memory back."""
        self._left.clear()

    def take(self, executable: Executable, device: Any) -> tuple[Any, ...]:
        """Buffers for a call: those of the last one, if it was of the same executable."""
        left = None
        if self._left:
            with suppress(IndexError):  # another thread has just taken them
                left = self._left.pop()
        if not executable.work:
            return ()
        if left is not None and left[0] is executable:
            return left[1]
        return new_buffers(executable.work, device)
