"""A segment of a session, run for many sets of inputs at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.passes.program.program import Node
from runnel.runtime.interpret.code import Code
from runnel.runtime.interpret.interpreter import missing_variable
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.lockstep.lockstep_code import LockstepCode, Streams, runs_in_lockstep
from runnel.runtime.state.cell import as_numpy, store_all
from runnel.runtime.state.step_context import StepContext


class LockstepSegment:
    """Instructions in lockstep, bound to the cells of a session."""

    def __init__(self, code: Code, state: SegmentState, node: Node, device: str) -> None:
        """``node`` is what an error names that comes before any instruction."""
        self._code, self._state, self._node = LockstepCode(code, device), state, node
        cells = [cell for cell, _, _ in state.streams]
        self._streams = list(zip([op for op, _, _ in code.streams], cells, strict=True))

    @classmethod
    def of(cls, code: Code, state: SegmentState, node: Node, device: str) -> LockstepSegment | None:
        """That of a segment; None where rows cannot run side by side."""
        return cls(code, state, node, device) if runs_in_lockstep(code) else None

    def run(self, inputs: Sequence[Any], count: int, context: StepContext) -> list[Any]:
        """The outputs for ``count`` rows. If it fails, it has moved no stream."""
        state = self._state
        if state.writers is None:
            return self._run_locked(inputs, count, context)
        release = state.writers.acquire(context, self._node)
        try:
            return self._run_locked(inputs, count, context)
        finally:
            deque(release, 0)

    def _run_locked(self, inputs: Sequence[Any], count: int, context: StepContext) -> list[Any]:
        loaded, streams = self._loaded()
        before = dict(streams)
        with np.errstate(all="ignore"):
            outputs = self._code.run(inputs, count, streams, context, loaded)
        if self._streams:
            cells, values = [], []
            for op, cell in self._streams:
                if streams[op] is not before[op]:
                    cells.append(cell)
                    values.append(streams[op])
                    context.drawn = [*context.drawn, (cell, before[op], streams[op])]
            with self._state.task.lock:
                store_all(cells, values)
        return outputs

    def _loaded(self) -> tuple[dict[int, Any], Streams]:
        loaded: dict[int, Any] = {}
        state = self._state
        with state.task.lock:
            for cell, slot, variable, node in state.loads:
                if cell.value is not None:
                    loaded[slot] = as_numpy(cell.value)
                elif node is not None:
                    raise missing_variable(variable, node)
            return loaded, {op: cell.value for op, cell in self._streams}
