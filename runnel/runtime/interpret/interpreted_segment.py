"""A segment with the state that it reads and replaces, run by the interpreter."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from runnel.passes.program.program import Node
from runnel.runtime.interpret.code import Code
from runnel.runtime.interpret.interpreter import interpret, interpret_watched, missing_variable
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.state.cell import as_numpy, owned, store_all
from runnel.runtime.state.step_context import StepContext

_LONG_SECONDS = 0.02


class InterpretedSegment:
    """Instructions, bound to the cells of a session.

    ``node`` is what an error names that comes before any instruction. ``inside`` says that it runs
    as a part of something interpreted, which has NumPy's warnings off.
    """

    def __init__(self, code: Code, state: SegmentState, node: Node, inside: bool = False) -> None:
        self._code = code
        self._state = state
        self._inside = inside
        self._node = node
        self._takes_long = True
        """Whether the last run took so long that the step is to be looked at while it runs."""

    def run(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced."""
        state = self._state
        if state.writers is None:
            return self._run_locked(inputs, context)
        release = state.writers.acquire(context, self._node)
        try:
            return self._run_locked(inputs, context)
        finally:
            deque(release, 0)

    def _run_locked(self, inputs: list[Any], context: StepContext) -> list[Any]:
        code, state = self._code, self._state
        slots = self.slots(inputs, context)
        if state.written:
            values: list[Any] = [owned(slots[slot]) for slot in state.store_slots]
            for cell, _, drawn in state.streams:
                values.append(cell.value.skip(slots[drawn]))
                context.drawn = [*context.drawn, (cell, cell.value, values[-1])]
            with state.task.lock:
                store_all(state.written, values)
        return [slots[slot] for slot in code.outputs]

    def slots(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """The slots after the instructions have run; no state has changed yet."""
        code, state = self._code, self._state
        slots = code.template.copy()
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value if isinstance(value, np.ndarray) else as_numpy(value)
        if context.deadline is not None:
            for cell, _, _, node in state.loads:  # not under the lock
                context.await_ready(cell.value, (node or self._node).op)
        if state.loads or state.streams:
            # Looking at a buffer that another step donates meanwhile is safe: JAX leaves a
            # buffer that someone is looking at alone, and gives that step a copy.
            with state.task.lock:
                for cell, slot, variable, node in state.loads:
                    value = cell.value
                    if value is None:
                        if node is not None:
                            raise missing_variable(variable, node)
                        continue
                    slots[slot] = as_numpy(value)
                for cell, slot, _ in state.streams:
                    slots[slot] = cell.value.words()
        if code.watch is not None:
            slots[code.watch] = context
        if self._inside:
            self._interpret(slots, context)
        else:
            with np.errstate(all="ignore"):
                self._interpret(slots, context)
        return slots

    def _interpret(self, slots: list[Any], context: StepContext) -> None:
        start = time.perf_counter()
        if self._takes_long or context.deadline is not None or context.observer is not None:
            interpret_watched(self._code.instructions, slots, context)
        else:
            interpret(self._code.instructions, slots)
        self._takes_long = time.perf_counter() - start > _LONG_SECONDS
