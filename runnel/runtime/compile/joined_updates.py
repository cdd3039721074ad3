"""Joins updates that do the same to many variables into one over the elements of all of them.

An optimizer applies one formula to every variable. On an accelerator each array that a call takes
or gives costs the host microseconds, and each of the formula's kernels costs the device some. So
the slots of all variables (Adam's moments) are one array of the state, a flat pack; the gradients
are put one after another; and the formula is computed once. Its effect on the variables themselves
is computed apart, because others use them and want them as they are.

It joins lanes (``update_lanes``) of one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runnel.graph.operation import Operation
from runnel.graph.shapes import num_elements
from runnel.runtime.compile.checks import Checks
from runnel.runtime.compile.rows import taken_out
from runnel.runtime.compile.update_lanes import (
    EACH,
    MADE,
    ONE,
    PACK,
    RESULT,
    Definition,
    Lane,
    Lanes,
)
from runnel.runtime.interpret.code import Code, Instruction
from runnel.runtime.state.flat_pack import end_to_end, parts_of

_PLATFORMS = frozenset({"gpu", "tpu"})
"""A CPU copies large arrays more slowly than it calls."""
_FEWEST = 4
_MOST_BYTES = 1 << 29
"""Of all variables that are joined."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What a joined instruction takes.

    It was ``MADE`` by the step of that number, is the array of the ``PACK`` of that number, has a
    slot for ``EACH`` lane, or ``ONE`` for all.
    """

    kind: str
    number: int = -1
    slots: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinedStep:
    """Instructions, one of each lane, that are one."""

    indices: tuple[int, ...]
    operands: tuple[Operand, ...]
    gated_by: int | None
    """The pack whose old values take the place of the result when a check fails."""
    stores: int | None
    """The pack whose new values the result is."""


@dataclass(frozen=True, slots=True)
class JoinedUpdates:
    """Lanes of equal structure, from which variables that are apart are left out."""

    first: int
    """The instruction before which all of it can be computed."""
    steps: tuple[JoinedStep, ...]
    packs: tuple[tuple[Operation, ...], ...]
    """Variables whose values lie behind one another in one array, by lane."""
    shapes: tuple[tuple[int, ...], ...]
    """The shape of each lane."""


def joined_updates(
    code: Code, gates: Mapping[int, Operation], platform: str
) -> list[JoinedUpdates]:
    """The updates of ``code`` that can be joined; ``gates`` are those of its instructions."""
    if platform not in _PLATFORMS:
        return []
    lanes = Lanes(code, gates)
    found = (_Joining(code, lanes).joined(group) for group in lanes.find())
    return [updates for updates in found if updates is not None]


class _Joining:
    def __init__(self, code: Code, lanes: Lanes) -> None:
        self._code = code
        self._lanes = lanes

    def joined(self, lanes: list[Lane]) -> JoinedUpdates | None:
        """``lanes`` as one; None where they are too few, or nothing is won."""
        first = min(lane.indices[0] for lane in lanes)
        lanes = self._affordable([x for x in lanes if self._is_there(x, first)])
        if len(lanes) < _FEWEST:
            return None
        first = min(lane.indices[0] for lane in lanes)
        template = lanes[0].signature
        packed = {n for _, _, _, operands, *_ in template for kind, n in operands if kind == PACK}
        joined: list[bool] = []
        while packed:
            joined = self._joinable(template, packed)
            kept = {number for number in packed if self._keeps(template, number, joined)}
            if kept == packed:
                break
            packed = kept
        if not packed:
            return None
        return self._described(lanes, first, sorted(packed), joined)

    def _is_there(self, lane: Lane, first: int) -> bool:
        """True when all that ``lane`` takes is there before the instruction ``first``."""
        taken = {t for index in lane.indices for t in self._lanes.arguments(index)}
        results = [t.number for t in taken if t.kind == RESULT and t.number not in lane.indices]
        return all(index < first for index in results)

    def _affordable(self, lanes: list[Lane]) -> list[Lane]:
        """``lanes`` in their order, up to so many bytes."""
        kept, total = [], 0
        for lane in sorted(lanes, key=lambda lane: lane.indices[0]):
            size = self._lanes.dtype(self._code.instructions[lane.indices[0]].node).size
            total += size * (
                num_elements(self._lanes.dims[Definition(RESULT, lane.indices[0])]) or 0
            )
            if total <= _MOST_BYTES:
                kept.append(lane)
        return kept

    @staticmethod
    def _joinable(template: Sequence[Any], packed: set[int]) -> list[bool]:
        """Which instructions of a lane can be joined: those that take no variable by itself."""
        joined: list[bool] = []
        for _, _, _, operands, (gate, *_), _ in template:
            joined.append(
                (gate is None or gate in packed)
                and all(
                    joined[number] if kind == MADE else kind in (EACH, ONE) or number in packed
                    for kind, number in operands
                )
            )
        return joined

    @staticmethod
    def _keeps(template: Sequence[Any], number: int, joined: list[bool]) -> bool:
        """True when the variable of that number is read and replaced by joined instructions."""
        users = [
            position
            for position, (_, _, _, operands, *_) in enumerate(template)
            if (PACK, number) in operands
        ]
        stores = [p for p, (*_, places, _) in enumerate(template) if number in places[1:]]
        return len(stores) == 1 and all(joined[p] for p in (*users, *stores))

    def _described(
        self, lanes: list[Lane], first: int, packed: list[int], joined: list[bool]
    ) -> JoinedUpdates:
        pack_of = {number: pack for pack, number in enumerate(packed)}
        step_of: dict[int, int] = {}
        steps: list[JoinedStep] = []
        for position, (_, _, _, operands, (gate, *stored), _) in enumerate(lanes[0].signature):
            if not joined[position]:
                continue
            step_of[position] = len(steps)
            taken = []
            arguments = self._lanes.arguments(lanes[0].indices[position])
            for (kind, number), definition in zip(operands, arguments, strict=True):
                if kind == MADE:
                    taken.append(Operand(MADE, step_of[number]))
                elif kind == ONE:
                    taken.append(Operand(ONE, slots=(self._lanes.slot_of[definition],)))
                elif number in pack_of:
                    taken.append(Operand(PACK, pack_of[number]))
                else:
                    slots = tuple([self._lanes.slot_of[lane.outside[number]] for lane in lanes])
                    taken.append(Operand(EACH, slots=slots))
            stores = [pack_of[number] for number in stored if number in pack_of]
            steps.append(
                JoinedStep(
                    tuple([lane.indices[position] for lane in lanes]),
                    tuple(taken),
                    None if gate is None else pack_of[gate],
                    stores[0] if stores else None,
                )
            )
        variable_of = self._lanes.variable_of
        packs = [tuple([variable_of[lane.outside[n]] for lane in lanes]) for n in packed]
        dims = [self._lanes.dims[Definition(RESULT, lane.indices[0])] or () for lane in lanes]
        shapes = [tuple([size or 0 for size in each]) for each in dims]
        return JoinedUpdates(first, tuple(steps), tuple(packs), tuple(shapes))


Evaluate = Callable[[Instruction, list[Any]], Any]


class JoinedTrace:
    """The updates in one trace: one call of a kernel does what each lane does.

    ``packs`` are the arrays that they start from.
    """

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
            together[operand.slots] = end_to_end(values)
        return together[operand.slots]
