"""Traces joined updates: one call of a kernel does what each lane does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel.runtime.compile.checks import Checks
from runnel.runtime.compile.joined_updates import JoinedUpdates, Operand
from runnel.runtime.compile.rows import taken_out
from runnel.runtime.compile.update_lanes import EACH, MADE, PACK
from runnel.runtime.interpret.code import Instruction
from runnel.runtime.state.flat_pack import joined, parts_of

Evaluate = Callable[[Instruction, list[Any]], Any]


class JoinedTrace:
    """The updates in one trace; ``packs`` are the arrays that they start from."""

    def __init__(self, updates: JoinedUpdates, packs: Sequence[Any]) -> None:
        self._updates = updates
        self._before = packs
        self.packs: list[Any] = [None] * len(packs)
        """The new arrays, once the updates have been traced."""
        self.first = updates.first

    def run(
        self,
        instructions: Sequence[Instruction],
        slots: Sequence[Any],
        checks: Checks,
        kept_on_failure: Mapping[int, Any],
        evaluate: Evaluate,
    ) -> dict[int, Any]:
        """Traces the updates; the result of each instruction, by its index."""
        made: list[Any] = []
        found: dict[int, Any] = {}
        together: dict[tuple[int, ...], Any] = {}
        for step in self._updates.steps:
            values = [self._value(operand, slots, made, together) for operand in step.operands]
            instruction = instructions[step.indices[0]]
            if len(values) < len(instruction.args):
                values.insert(0, None)  # a reference that is overwritten
            result = evaluate(instruction, values)
            if step.gated_by is not None and step.indices[0] in kept_on_failure:
                result = checks.gate(result, self._before[step.gated_by])
            made.append(result)
            if step.stores is not None:
                self.packs[step.stores] = result
            # XLA leaves out what nobody takes.
            found.update(zip(step.indices, parts_of(result, self._updates.shapes), strict=True))
        return found

    def _value(
        self,
        operand: Operand,
        slots: Sequence[Any],
        made: Sequence[Any],
        together: dict[tuple[int, ...], Any],
    ) -> Any:
        if operand.kind == MADE:
            return made[operand.number]
        if operand.kind == PACK:
            return self._before[operand.number]
        values = taken_out([slots[slot] for slot in operand.slots])
        if operand.kind != EACH:
            return values[0]
        if operand.slots not in together:
            together[operand.slots] = joined(values)
        return together[operand.slots]
