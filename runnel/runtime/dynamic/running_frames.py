"""The running loops of ``runnel.runtime.dynamic.region``, and their iterations."""

from __future__ import annotations

from typing import Any

from runnel.ops.send_recv import OUTERMOST
from runnel.runtime.dynamic.layout import Layout, Task


class Iteration:
    """One iteration of a running frame."""

    __slots__ = (
        "values",
        "pending",
        "ready",
        "dead",
        "dead_inputs",
        "children",
        "running",
        "number",
        "waiting",
    )

    def __init__(self, layout: Layout, running: Running, number: int) -> None:
        self.number = number
        self.waiting = 0
        """How many operations wait, in this iteration and in the loops inside it."""
        self.values: list[Any] = [None] * layout.size
        self.pending = layout.pending.copy()
        self.ready: list[int] = []
        self.dead: set[int] = set()
        self.dead_inputs: dict[int, int] | None = None
        """How many inputs of each Merge are dead."""
        self.children: dict[int, Running] | None = None
        self.running = running

    def key(self) -> tuple[str, int]:
        """The name of its frame, with the iterations around that, and its number."""
        parent = self.running.parent
        if parent is None:
            return OUTERMOST
        frame, number = parent.key()
        return f"{frame}:{number},{self.running.layout.frame.name}", self.number


class Running:
    """A frame that runs: one execution of a loop."""

    __slots__ = ("layout", "parent", "iterations", "arrived", "entered", "constants", "exited")

    def __init__(self, layout: Layout, parent: Iteration | None) -> None:
        self.layout = layout
        self.parent = parent
        self.iterations: dict[int, Iteration] = {}
        self.arrived = 0
        """How many Enters have run."""
        self.entered: list[tuple[Task, Any]] | None = None
        """What has entered, while the loop has not begun; None where it begins with what it has."""
        self.constants: list[tuple[Task, Any]] = []
        self.exited: set[int] = set()

    def has_ended(self) -> bool:
        """True when nothing is ready, waits, or can arrive any more."""
        return self.arrived == self.layout.enters and not any(
            iteration.ready or iteration.waiting for iteration in self.iterations.values()
        )
