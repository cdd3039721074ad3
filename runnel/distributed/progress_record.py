"""How far a task has come, in a small file that it overwrites after every step.

Whoever starts the task names the file in its environment (``RUNNEL_PROGRESS``) and reads it. A task
that is killed leaves its last step there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

VARIABLE = "RUNNEL_PROGRESS"
_SIZE = 160


@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """The latest session of a task and its latest step; times are seconds since the epoch."""

    chief: bool
    """True if the session restores checkpoints: what it begins with is what all go on from."""
    began: int
    """The global step that the session began with."""
    began_at: float
    step: int
    """The global step that the task has seen last."""
    step_at: float
    runs: int = 0
    """How many steps the session has made itself."""
    first_at: float = 0.0
    """When the first of these had ended."""
    fell_from: int = 0
    """The step before the last one that had a smaller number: something was restored between."""
    fell_from_at: float = 0.0

    def after(self, step: int, now: float) -> ProgressRecord:
        """The record after one more step."""
        first = self.first_at or now
        return replace(self._at(step), step=step, step_at=now, runs=self.runs + 1, first_at=first)

    def anew(self, began: int, now: float) -> ProgressRecord:
        """The record of the task's next session."""
        return replace(
            self._at(began),
            began=began,
            began_at=now,
            step=began,
            step_at=now,
            runs=0,
            first_at=0.0,
        )

    def _at(self, step: int) -> ProgressRecord:
        if step >= self.step:
            return self
        return replace(self, fell_from=self.step, fell_from_at=self.step_at)

    def to_bytes(self) -> bytes:
        """The content of the file, always of one size."""
        text = (
            f"{self.chief:d} {self.began} {self.began_at:.6f} {self.step} {self.step_at:.6f} "
            f"{self.runs} {self.first_at:.6f} {self.fell_from} {self.fell_from_at:.6f}"
        )
        return text.ljust(_SIZE - 1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes) -> ProgressRecord | None:
        """What ``to_bytes`` has written; None for anything else, such as an empty file."""
        parts = content.split()
        if len(content) != _SIZE or len(parts) != 9:
            return None
        try:
            chief, began, step, runs, fell_from = (int(parts[i]) for i in (0, 1, 3, 5, 7))
            began_at, step_at, first_at, fell_from_at = (float(parts[i]) for i in (2, 4, 6, 8))
        except ValueError:
            return None
        return cls(
            bool(chief), began, began_at, step, step_at, runs, first_at, fell_from, fell_from_at
        )

    @classmethod
    def read(cls, path: Path) -> ProgressRecord | None:
        """The record in a file; None while there is none."""
        try:
            return cls.from_bytes(path.read_bytes())
        except OSError:
            return None


class ProgressFile:
    """The file of this task, open for writing."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, record: ProgressRecord) -> None:
        """Replaces the record, by one call to the system."""
        os.pwrite(self._file, record.to_bytes(), 0)

    def close(self) -> None:
        """Closes the file; the record stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
