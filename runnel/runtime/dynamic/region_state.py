"""State as one run of a region sees it: taken at its start, kept apart while it runs, then stored.

Data may decide which variable a node touches (a reference may come out of a ``Merge``), so a
reference is a value like any other here: a :class:`Reference`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from runnel.graph.operation import Operation
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import requires_shape
from runnel.passes.structure.structured import Touched
from runnel.runtime.interpret.code import require_assignable
from runnel.runtime.interpret.interpreter import missing_variable, uninitialized
from runnel.runtime.state.cell import Cell, WriterLocks, as_numpy, store_all
from runnel.runtime.state.step_context import StepContext
from runnel.runtime.state.task_state import TaskState


class Reference:
    """Denotes a variable; ``value`` is what an update left, None for the variable itself."""

    __slots__ = ("variable", "cell", "value")

    def __init__(self, variable: Operation, cell: Cell, value: Any = None) -> None:
        self.variable = variable
        self.cell = cell
        self.value = value


class RegionVariables:
    """The variables and random streams that a dynamic region may touch; made once for a plan.

    Those that it may write are locked while it runs.
    """

    def __init__(self, program: Program, touched: Touched, task: TaskState) -> None:
        self.task = task
        self._node = program.nodes[0]
        self.cells = {node.op: task.cell(node.op) for node in program.nodes if node.op_def.variable}
        self.streams = {op: task.streams.cell(op) for op in touched.random}
        written = [self.cells[variable] for variable in touched.writes]
        self._locks = WriterLocks([*written, *self.streams.values()], task.writing)
        task.note_shape_changes([self.cells[variable] for variable in touched.reshaped])

    def begin(self, context: StepContext) -> RegionState:
        """Takes the locks and the values; :meth:`RegionState.end` must follow."""
        release = self.acquire(context)
        try:
            return RegionState(self, release)
        except BaseException:
            deque(release, 0)
            raise

    def acquire(self, context: StepContext) -> Iterable[None]:
        """Takes the locks; exhausting the result releases them."""
        return self._locks.acquire(context, self._node)


class RegionState:
    """The state of one run of a region."""

    def __init__(self, variables: RegionVariables, release: Iterable[None]) -> None:
        self._variables = variables
        self._release = release
        self._new: dict[Cell, Any] = {}
        self._take()

    def _take(self) -> None:
        variables = self._variables
        with variables.task.lock:
            self._take_values()
            self._positions = {op: cell.value for op, cell in variables.streams.items()}

    def _take_values(self) -> None:
        self._values = {
            cell: None if cell.value is None else as_numpy(cell.value)
            for cell in self._variables.cells.values()
        }

    def reference(self, variable: Operation) -> Reference:
        """What the variable's own operation gives."""
        return Reference(variable, self._variables.cells[variable])

    def read(self, reference: Reference, node: Node) -> Any:
        """The value where ``reference`` is used by ``node``; None if it may have none yet."""
        if reference.value is not None:
            return reference.value
        return self.present(reference, node)

    def present(self, reference: Reference, node: Node) -> Any:
        """The variable's value at this point of the step."""
        value = self._values[reference.cell]
        if value is None and not node.op_def.allows_uninitialized:
            raise missing_variable(reference.variable, node)
        return value

    def final(self, reference: Reference) -> Any:
        """The value of a fetched reference, when everything else has run."""
        if reference.value is not None:
            return reference.value
        value = self._values[reference.cell]
        if value is None:
            raise uninitialized(reference.variable, "it is fetched")
        return value.copy()

    def write(self, reference: Reference, value: Any, node: Node) -> Reference:
        """Replaces the variable's value; returns the reference to what was written."""
        overwrites = bool(node.op_def.overwrites)
        if overwrites and requires_shape(node):
            require_assignable(value.shape, reference.variable.attrs["shape"]._dims)
        kept = reference.cell.owned(value)
        self._values[reference.cell] = self._new[reference.cell] = kept
        return Reference(reference.variable, reference.cell, kept)

    def stream(self, op: Operation) -> Any:
        """The words of a random op's stream at its present position."""
        return self._positions[op].words()

    def advance(self, op: Operation, drawn: int) -> None:
        """Moves a random op's stream on."""
        self._positions[op] = self._positions[op].skip(drawn)

    def commit(self, context: StepContext) -> None:
        """Stores what the step has written; before this, nothing of it has happened."""
        variables = self._variables
        streams = list(variables.streams.items())
        with variables.task.lock:
            moved = [(cell, cell.value, self._positions[op]) for op, cell in streams]
            context.drawn = [*context.drawn, *moved]
            store_all(
                [*self._new, *(cell for _, cell in streams)],
                [*self._new.values(), *(self._positions[op] for op, _ in streams)],
            )

    def before_exchange(self, context: StepContext) -> None:
        """Stores what the step has written: whoever gets what it is about to give sees that too.

        A queue's element, or a tensor that is sent, says that what came before it has happened.
        """
        if self._new:
            self.commit(context)
            self._new = {}

    def after_exchange(self) -> None:
        """Takes the values that the variables have by now: as they were for whoever gave something.

        A step that had to wait for it does so in :meth:`resume`.
        """
        if self._values:
            with self._variables.task.lock:
                self._take_values()

    def suspend(self, context: StepContext) -> None:
        """Stores what the step has written and releases the locks: the step is about to sleep."""
        self.commit(context)
        self._new = {}
        self.end()

    def resume(self, context: StepContext) -> None:
        """Takes the locks again, and the values that the variables have by now."""
        self._release = self._variables.acquire(context)
        self._take()

    def end(self) -> None:
        """Releases the locks."""
        release, self._release = self._release, ()
        deque(release, 0)
