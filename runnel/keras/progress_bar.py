"""``tf.keras.utils.Progbar``: how far a loop is, in one line of a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np


class Progbar:
    """A bar that is drawn over itself in a terminal; elsewhere, one line when it is complete.

    ``values`` are pairs of a name and the value of the last step. They are averaged over steps,
    unless the name is among ``stateful_metrics``.

    Example:
        >>> bar = tf.keras.utils.Progbar(3)
        >>> for step in range(3):
        ...     bar.update(step + 1, [("loss", 0.5)])
    """

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.width, self.verbose = target, width, verbose
        self.interval, self.unit_name = interval, unit_name
        self.stateful_metrics = set(stateful_metrics or ())
        self._in_place = (
            (hasattr(sys.stdout, "isatty") and sys.stdout.isatty())
            or "ipykernel" in sys.modules
            or "PYCHARM_HOSTED" in os.environ
        )
        self._shown = 0
        self._seen = 0
        self._values: dict[str, list[Any]] = {}
        self._start = time.time()
        self._last_update = 0.0

    def update(self, current: int, values: Any = None) -> None:
        """Says that ``current`` steps are done, and what was measured in the last of them."""
        for name, value in values or ():
            kept = self._values.setdefault(name, [0.0, 0])
            if name in self.stateful_metrics:
                kept[:] = [value, 1]
            else:
                kept[0] += value * (current - self._seen)
                kept[1] += current - self._seen
        self._seen = current
        now = time.time()
        complete = self.target is not None and current >= self.target
        if self.verbose == 1:
            if not complete and (not self._in_place or now - self._last_update < self.interval):
                return
            self._draw(current, now, complete)
        elif self.verbose == 2 and complete:
            took = f" - {now - self._start:.0f}s"
            self._write(f"{current:{self._digits()}d}/{self.target}{took}{self._described()}\n")
        self._last_update = now

    def add(self, n: int, values: Any = None) -> None:
        """Says that ``n`` more steps are done."""
        self.update(self._seen + n, values)

    def _digits(self) -> int:
        return len(str(self.target))

    def _draw(self, current: int, now: float, complete: bool) -> None:
        before = self._shown
        start = "\b" * before + "\r" if self._in_place else ""
        if self.target is None:
            bar = f"{current:7d}/Unknown"
        else:
            filled = int(self.width * current / self.target) if self.target else self.width
            head = "=" * max(filled - 1, 0) + ("=" if complete else ">") * (filled > 0)
            empty = "." * (self.width - filled)
            bar = f"{current:{self._digits()}d}/{self.target} [{head}{empty}]"
        each = (now - self._start) / current if current else 0.0
        if self.target is not None and not complete:
            took = f" - ETA: {_clock(each * (self.target - current))}"
        else:
            took = f" - {now - self._start:.0f}s {_duration(each)}/{self.unit_name}"
        text = bar + took + self._described()
        self._shown = len(text)
        text += " " * (before - self._shown) if before > self._shown and self._in_place else ""
        self._write(start + text + ("\n" if complete else ""))

    def _described(self) -> str:
        parts = []
        for name, (total, number) in self._values.items():
            mean = float(np.mean(total / max(1, number)))
            parts.append(f" - {name}: {mean:.4f}" if abs(mean) > 1e-3 else f" - {name}: {mean:.4e}")
        return "".join(parts)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _clock(seconds: float) -> str:
    if seconds > 3600:
        whole = f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d}"
        return f"{whole}:{int(seconds % 60):02d}"
    if seconds > 60:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
    return f"{int(seconds)}s"


def _duration(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.0f}ms"
    return f"{seconds * 1e6:.0f}us"
