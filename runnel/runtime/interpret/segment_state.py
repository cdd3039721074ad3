"""The state of a task that a segment touches."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Operation
from runnel.runtime.interpret.code import Code
from runnel.runtime.interpret.interpreter import missing_variable
from runnel.runtime.state.cell import Cell, WriterLocks
from runnel.runtime.state.task_state import TaskState


class Reshaped(Exception):
    """Another step has given a variable another shape meanwhile."""


class SegmentState:
    """The cells that a segment loads from and stores into: variables, and random streams."""

    def __init__(self, code: Code, task: TaskState) -> None:
        self.task = task
        self.loads = [(task.cell(v), slot, v, node) for v, slot, node in code.loads]
        """For each variable that is read: cell, slot, the variable, and the node that needs it.

        There is no such node where only a branch or a loop uses the variable: it may be without
        a value, if that branch is not taken."""
        self.load_cells = [cell for cell, *_ in self.loads]
        self.optional = [cell for cell, _, _, node in self.loads if node is None]
        self.stored = [task.cell(v) for v, _ in code.stores]
        self.store_slots = [slot for _, slot in code.stores]
        self._stored_variables = [variable for variable, _ in code.stores]
        task.note_shape_changes([task.cell(v) for v in code.reshaped])
        self.streams = [(task.streams.cell(op), slot, drawn) for op, slot, drawn in code.streams]
        self.is_mapped = any(cell.folder for cell in (*self.load_cells, *self.stored))
        """Whether a variable that it touches has its value in a mapped file."""
        self.written = [*self.stored, *(cell for cell, *_ in self.streams)]
        self.writers = WriterLocks(self.written, task.writing) if self.written else None

    def require_values(self, values: list[Any]) -> None:
        """An error that names the first variable that has no value and needs one."""
        for value, (_, _, variable, node) in zip(values, self.loads, strict=True):
            if value is None and node is not None:
                raise missing_variable(variable, node)

    def cells(self) -> list[tuple[Cell, Operation]]:
        """The variables that the segment touches."""
        touched = {cell: variable for cell, _, variable, _ in self.loads}
        touched.update(zip(self.stored, self._stored_variables, strict=True))
        return list(touched.items())
