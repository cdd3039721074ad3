"""Buffers that a call of a compiled segment leaves for the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runnel.runtime.compile.buffers import new_buffers

if TYPE_CHECKING:
    from runnel.runtime.compile.compiler import Executable


class SpareBuffers:
    """The buffers in which a segment's last call worked; used under the store's lock."""

    __slots__ = ("_executable", "_buffers")

    def __init__(self) -> None:
        self.keep(None, ())

    def keep(self, executable: Executable | None, buffers: tuple[Any, ...]) -> None:
        """Keeps them for the next call."""
        self._executable = executable
        self._buffers = buffers

    def take(self, executable: Executable, device: Any) -> tuple[Any, ...]:
        """Buffers for a call: those of the last one, if it was of the same executable."""
        last, buffers = self._executable, self._buffers
        self.keep(None, ())
        if not executable.work:
            return ()
        return buffers if last is executable else new_buffers(executable.work, device)
