"""Runs the instructions of a segment for many sets of inputs at once: each for all of them.

Values have *rows* (``rows.py``), one for each set of inputs. An instruction whose arguments are the
same in every row runs once. Where a rule (``rules.py``) says how, one call of the kernel computes
all rows; elsewhere each row is a call. In a conditional the rows that take a branch go through it
together. Random ops draw for each row what they would have drawn if the rows had run one after the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.errors import OpError
from runnel.graph.operation import Operation
from runnel.graph.registry import INTERPRETED
from runnel.ops.sampling.philox import PhiloxStream
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.kernel_call import interpreted
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import (
    Conditional,
    nested_nodes,
    structure_of,
    touched_by,
)
from runnel.runtime.interpret.code import Code, Instruction, lower
from runnel.runtime.lockstep.rows import (
    RowsTooLarge,
    SeparateRows,
    each,
    is_rows,
    joined,
    row_bytes,
    some,
    stacked,
)
from runnel.runtime.lockstep.rules import Call, random_rows, rule_for
from runnel.runtime.state.step_context import StepContext

_LARGE_ROW = 1 << 18
"""Bytes of a row from which on what is done to it takes longer than the calls."""
Streams = dict[Operation, PhiloxStream]
"""Where each random op stands."""

_REPEATABLE = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2", "ReadFile", "NoOp"})
"""Stateful operations that change nothing: they may run in any order, and again."""


def runs_in_lockstep(code: Code) -> bool:
    """Whether rows may run side by side: nothing is changed by one that another could see."""
    if code.stores:
        return False
    return all(map(_is_pure, nested_nodes(one.node for one in code.instructions)))


def _is_pure(node: Node) -> bool:
    op_def = node.op_def
    if op_def.blocking or op_def.updates or op_def.overwrites or op_def.heavy:
        return False
    if structure_of(node) is not None:
        return not touched_by(node).writes
    return not op_def.stateful or op_def.random is not None or op_def.name in _REPEATABLE


class LockstepCode:
    """Instructions that are run for all rows, one after the other."""

    def __init__(self, code: Code, device: str) -> None:
        self._code = code
        streams = {stream: (op, drawn) for op, stream, drawn in code.streams}
        self._steps = [_step(one, streams, device) for one in code.instructions]

    def run(
        self,
        inputs: Sequence[Any],
        count: int,
        streams: Streams,
        context: StepContext,
        loaded: dict[int, Any] | None = None,
    ) -> list[Any]:
        """The outputs for ``count`` rows; moves ``streams`` on. ``loaded`` are values for slots."""
        code = self._code
        slots = code.template.copy()
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value
        for slot, value in (loaded or {}).items():
            slots[slot] = value
        if code.watch is not None:
            slots[code.watch] = context
        for step in self._steps:
            context.require_time(step.node)
            step.run(slots, count, streams, context)
        return [slots[slot] for slot in code.outputs]


def _step(
    instruction: Instruction,
    streams: dict[int, tuple[Operation, int]],
    device: str,
) -> _RowCall | _PartedCall:
    node = instruction.node
    if structure_of(node) is not None:
        if _can_part(node):
            return _PartedCall(instruction, device)
        return _RowCall(instruction, streams)
    return _OperationCall(instruction, streams, device)


class _RowCall:
    """An instruction that is called for each row."""

    def __init__(self, instruction: Instruction, streams: dict[int, tuple[Operation, int]]) -> None:
        self._call, self._args, out, self.node = instruction
        self._single, self._out = type(out) is int, instruction.outs
        self._streams = [
            (place, streams[slot][0], self._out.index(streams[slot][1]))
            for place, slot in enumerate(self._args)
            if slot in streams
        ]
        """Where a stream is among the arguments, whose it is, where it says how far it moved."""

    def run(self, slots: list[Any], count: int, streams: Streams, context: StepContext) -> None:
        """Takes its arguments from ``slots``, and puts its results there."""
        args = [slots[slot] for slot in self._args]
        for slot, value in zip(self._out, self._results(args, count, streams), strict=True):
            if is_rows(value) and row_bytes(value) > _LARGE_ROW:
                raise RowsTooLarge
            slots[slot] = value

    def _results(self, args: list[Any], count: int, streams: Streams) -> list[Any]:
        if self._streams:
            found = self._drawing(args, count, streams)
        elif not any(map(is_rows, args)):
            once = self._call(*args)
            return [once] if self._single else list(once)
        else:
            found = [self._call(*row) for row in zip(*map(each, args), strict=False)]
        if self._single:
            return [SeparateRows(found)]
        return [SeparateRows(list(column)) for column in zip(*found, strict=True)]

    def _drawing(self, args: list[Any], count: int, streams: Streams) -> list[Any]:
        """Calls for each row, each with the streams where the one before left them."""
        iterators = [iter(each(arg)) for arg in args]
        found = []
        for _ in range(count):
            row = [next(iterator) for iterator in iterators]
            for place, op, _ in self._streams:
                row[place] = streams[op].words()
            results = self._call(*row)
            for _, op, drawn in self._streams:
                streams[op] = streams[op].skip(int(results[drawn]))
            found.append(results)
        return found


class _OperationCall(_RowCall):
    """An operation, which may be one call for all rows."""

    def __init__(
        self,
        instruction: Instruction,
        streams: dict[int, tuple[Operation, int]],
        device: str,
    ) -> None:
        super().__init__(instruction, streams)
        self._rule = rule_for(self.node.op_def)
        # Not the instruction's call: the shapes that a node declares are those of a row.
        self._together: Call = interpreted(self.node, device)

    def _results(self, args: list[Any], count: int, streams: Streams) -> list[Any]:
        if self._streams:
            _, op, _ = self._streams[0]
            drawn = random_rows(self.node, self._together, args[:-1], streams[op], count)
            if drawn is None:
                return super()._results(args, count, streams)
            streams[op] = streams[op].skip(drawn[1])
            return [drawn[0], drawn[1]]
        if self._rule is None or not any(map(is_rows, args)):
            return super()._results(args, count, streams)
        try:
            found = self._rule(self.node, self._together, args, count)
        except (OpError, ValueError, TypeError, IndexError):
            found = None  # the call for the row that is wrong says what is
        if found is None:
            return super()._results(args, count, streams)
        return [found] if self._single else list(found)


def _can_part(node: Node) -> bool:
    structure = structure_of(node)
    if not isinstance(structure, Conditional) or touched_by(node).variables:
        return False
    fetches = (*structure.when_true.fetches, *structure.when_false.fetches)
    return None not in fetches


class _PartedCall:
    """A conditional: rows part, and are joined again behind it."""

    def __init__(self, instruction: Instruction, device: str) -> None:
        _, args, _, self.node = instruction
        structure = structure_of(self.node)
        assert isinstance(structure, Conditional)
        # Behind the context come the inputs, then streams, which are looked up by their operation.
        self._args = args[1 : 1 + len(self.node.inputs)]
        self._out = instruction.outs[: len(self.node.outputs)]
        self._branches = [_lockstep_of(program, device) for program in structure.programs]

    def run(self, slots: list[Any], count: int, streams: Streams, context: StepContext) -> None:
        predicate, *given = (slots[slot] for slot in self._args)
        chosen = stacked(predicate) if is_rows(predicate) else predicate
        assert chosen is not None
        when_true, when_false = self._branches
        if not is_rows(predicate) or chosen.all() or not chosen.any():
            branch = when_true if np.all(chosen) else when_false
            results = branch.run(given, count, streams, context)
        else:
            parts = []
            for branch, places in (
                (when_true, np.flatnonzero(chosen)),
                (when_false, np.flatnonzero(~chosen)),
            ):
                taken = [some(value, places) for value in given]
                parts.append((places, branch.run(taken, len(places), streams, context)))
            results = [
                joined([(places, found[i]) for places, found in parts], count)
                for i in range(len(self._out))
            ]
        for slot, value in zip(self._out, results, strict=True):
            slots[slot] = value


def _lockstep_of(program: Program, device: str) -> LockstepCode:
    given = tuple(program.feeds.values())
    outputs = tuple(value for value in program.fetches if value is not None)
    segment = Segment(tuple(program.nodes), False, given, outputs, frozenset(), frozenset())
    return LockstepCode(lower(program, segment, StateAccess(program), device, INTERPRETED), device)
