"""A segment with the state that it reads and replaces, run by the interpreter."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import repeat, starmap
from typing import Any

import numpy as np

from runnel.ops.block_value import BlockValue
from runnel.ops.row_update import RowUpdate
from runnel.passes.program.program import Node
from runnel.runtime.interpret.code import Code
from runnel.runtime.interpret.interpreter import (
    as_op_error,
    interpret,
    interpret_watched,
    missing_variable,
)
from runnel.runtime.interpret.row_blocks import join_row_blocks
from runnel.runtime.interpret.row_updates import keep_rows_apart, store_rows
from runnel.runtime.interpret.run_totals import join_run_totals
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.interpret.stacked_code import StackedCode
from runnel.runtime.interpret.written_code import PIECE, WrittenCode
from runnel.runtime.state.cell import Cell, as_numpy, owned, store_all
from runnel.runtime.state.step_context import StepContext

_LONG_SECONDS = 0.02
_OFTEN = 200
"""The runs after which instructions are written as Python."""


class _Form:
    """Instructions, with what they load and store of a task's state."""

    def __init__(
        self,
        code: Code,
        state: SegmentState,
        packs: StackedCode | None = None,
        whole: bool = False,
    ) -> None:
        """``whole`` has each update make the whole new value of its variable."""
        task = state.task
        self.code = code
        if not whole and packs is None:
            self.code = keep_rows_apart(code)
            if self.code is not code:
                self.code = join_row_blocks(join_run_totals(self.code))
        self.loads, self.written, self.store_slots = state.loads, state.written, state.store_slots
        if packs is not None:  # other instructions than those that the state is of
            self.loads = [(task.cell(v), slot, v, node) for v, slot, node in code.loads]
            cells = [task.cell(v) for v, _ in code.stores]
            self.written = [*cells, *(cell for cell, *_ in state.streams)]
            self.store_slots = [slot for _, slot in code.stores]
        loads, stores = ([], []) if packs is None else (packs.loads, packs.stores)
        self.pack_loads = [(task.pack([*map(task.cell, vs)]), slot) for vs, slot in loads]
        self.pack_stores = [(task.pack([*map(task.cell, vs)]), slot) for vs, slot in stores]
        self._drawn = [drawn for _, _, drawn in state.streams]
        as_nodes = len(self.code.instructions) == len(code.instructions) and packs is None
        self._infos = code.infos if as_nodes else None
        self._runs = 0
        self._written: WrittenCode | None = None

    def interpret(self, slots: list[Any], context: StepContext) -> None:
        """Runs the instructions over ``slots``, looking at the step now and then."""
        if self._written is not None:
            self._written.run(slots, context)
            return
        instructions = self.code.instructions
        for start in range(0, len(instructions), PIECE):
            if start:
                context.require_time(instructions[start].node)
            interpret(instructions[start : start + PIECE], slots)
        self._runs += 1
        if self._runs == _OFTEN:
            kept = {*self.code.outputs, *self.store_slots, *self._drawn}
            kept.update(slot for _, slot in self.pack_stores)
            self._written = WrittenCode(self.code, kept, self._infos)


class InterpretedSegment:
    """Instructions, bound to the cells of a session.

    ``node`` is what an error names that comes before any instruction. ``inside`` says that it runs
    as a part of something interpreted, which has NumPy's warnings off. ``stack`` makes the same
    instructions with groups, where there are some: they run from the second time on, unless an
    observer wants to see each operation.
    """

    def __init__(
        self,
        code: Code,
        state: SegmentState,
        node: Node,
        inside: bool = False,
        stack: Callable[[], StackedCode | None] | None = None,
    ) -> None:
        self._state = state
        self._inside = inside
        self._node = node
        self._takes_long = True
        """Whether the last run took so long that the step is to be looked at all the time."""
        self._plain = _Form(code, state)
        self._watched = _Form(code, state, whole=not state.is_mapped)
        self._stacked: _Form | None = None
        self._stack = stack
        self._was_run = False
        self._shape_changers = 0

    def run(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced."""
        state = self._state
        if state.writers is None:
            outputs = self._run_locked(inputs, context)
        else:
            release = state.writers.acquire(context, self._node)
            try:
                outputs = self._run_locked(inputs, context)
            finally:
                deque(release, 0)
        if state.task.await_readers:
            for event in list(state.task.await_readers):
                event.set()
        return outputs

    def _run_locked(self, inputs: list[Any], context: StepContext) -> list[Any]:
        state = self._state
        form, slots = self._run_forms(inputs, context)
        outputs = [slots[slot] for slot in form.code.outputs]
        if state.written:
            values: list[Any] = [slots[slot] for slot in form.store_slots]
            by_rows = any(type(value) is RowUpdate for value in values)
            values = [
                value if type(value) is RowUpdate else self._owned(cell, value, context)
                for cell, value in zip(form.written, values, strict=False)
            ]
            for cell, _, drawn in state.streams:
                values.append(cell.value.skip(slots[drawn]))
                context.drawn = [*context.drawn, (cell, cell.value, values[-1])]
            if by_rows:
                slots.clear()  # they refer to the arrays of variables
                store_rows(state.task, form.written, values, self._looking_at(context))
            elif form.pack_stores:
                self._store_packs(form, values, slots)
            else:
                with state.task.lock:
                    store_all(form.written, values)
        return outputs

    def _looking_at(self, context: StepContext) -> Callable[[], None]:
        """What raises when the step is to stop."""
        return lambda: context.require_time(self._node)

    def _owned(self, cell: Cell, value: Any, context: StepContext) -> Any:
        """``value`` as ``cell`` keeps it."""
        if not cell.folder:
            return owned(value)
        try:
            return cell.owned(value, self._looking_at(context))
        except Exception as error:
            node = value.node if isinstance(value, BlockValue) else self._node
            raise as_op_error(error, node or self._node, ()) from error

    def _store_packs(self, form: _Form, values: list[Any], slots: list[Any]) -> None:
        """Stores ``values`` into what is not packed, and packs, as a whole."""
        arrays = [(pack, owned(slots[slot])) for pack, slot in form.pack_stores]
        changes = list(zip(form.written, repeat("held"), values, strict=False))
        with self._state.task.lock:
            for pack, array in arrays:
                changes += pack.stores(array)
            deque(starmap(setattr, changes), 0)

    def slots(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The slots after the instructions have run; no state has changed yet."""
        return self._run_forms(inputs, context)[1]

    def _run_forms(self, inputs: list[Any], context: StepContext) -> tuple[_Form, list[Any]]:
        """Runs the stacked instructions if they fit, else the plain ones; which, and the slots."""
        state = self._state
        if context.deadline is not None:
            for cell, _, _, node in state.loads:  # not under the lock
                context.await_ready(cell.held, (node or self._node).op)
        stack = self._stack
        if stack is not None and self._was_run:
            self._stack = None  # another thread runs the plain ones meanwhile
            stacked = stack()
            if stacked is not None:
                self._stacked = _Form(stacked.code, state, stacked)
        self._was_run = True
        if self._stacked is not None and state.task.shape_changers != self._shape_changers:
            self._shape_changers = state.task.shape_changers
            if any(cell.changes_shape for cell in state.load_cells):
                self._stacked = None
        form = self._watched if context.observer is not None else self._stacked or self._plain
        slots = self._loaded(form, inputs)
        if slots is None:
            form = self._plain
            slots = self._loaded(form, inputs)
            assert slots is not None
        if form.code.watch is not None:
            slots[form.code.watch] = context
        if not form.code.instructions:
            return form, slots
        if self._inside:
            self._interpret(form, slots, context)
        else:
            with np.errstate(all="ignore"):
                self._interpret(form, slots, context)
        return form, slots

    def _loaded(self, form: _Form, inputs: list[Any]) -> list[Any] | None:
        """The slots before the first instruction; None where something cannot be stacked."""
        code, state = form.code, self._state
        slots = code.template.copy()
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value if isinstance(value, np.ndarray) else as_numpy(value)
        if state.loads or state.streams:
            # Looking at a buffer that another step donates meanwhile is safe: JAX leaves a
            # buffer that someone is looking at alone, and gives that step a copy.
            with state.task.lock:
                for cell, slot, variable, node in form.loads:
                    value = cell.value
                    if value is None:
                        if node is not None:
                            raise missing_variable(variable, node)
                        continue
                    slots[slot] = as_numpy(value)
                for pack, slot in form.pack_loads:
                    slots[slot] = as_numpy(pack.load())
                    if slots[slot] is None:
                        return None
                for cell, slot, _ in state.streams:
                    slots[slot] = cell.value.words()
        return slots

    def _interpret(self, form: _Form, slots: list[Any], context: StepContext) -> None:
        start = time.perf_counter()
        if self._takes_long or context.deadline is not None or context.observer is not None:
            interpret_watched(form.code.instructions, slots, context)
        else:
            form.interpret(slots, context)
        seconds, pieces = time.perf_counter() - start, len(form.code.instructions) / PIECE
        self._takes_long = seconds > _LONG_SECONDS * max(1.0, pieces)
