"""Repetitions: finds equal blocks of instructions that follow one another in a segment.

A loop of Python builds an unrolled network, or one of many equal layers. So its instructions, in
the order of construction, are periodic, forward and backward. One turn of such a loop makes one
block of a *repetition*. Blocks are equal when they have the same instructions, in the same order,
whose inputs come from the same places: from the same block, from the block before, or from outside.
Blocks follow one another without a gap, so an input from outside exists before the first of them,
and the users of their results come after the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from runnel.passes.program.program import Node
from runnel.passes.program.step_resources import RESOURCE_OPS
from runnel.passes.rewrites.common_subexpressions import frozen
from runnel.passes.structure.structured import structure_of
from runnel.runtime.interpret.code import Code, Instruction

_FEWEST_TIMES = 4
_LONGEST_BLOCK = 2_000
_MOST_STARTS = 16
"""Blocks at which a repetition may begin, of those that are tried."""
_SMALL = 16
"""Elements of a constant that may say how something is done: a shape, an axis, a range."""
_READS = frozenset({"ReadVariableOp"})
_SEEDS = frozenset({"seed", "seed2"})
"""Attributes that say where a stream begins, not what is drawn from it."""
_NOWHERE = -1


class Source(NamedTuple):
    """Where an instruction of a block takes something: result ``output`` of the instruction at
    ``position``, of the same block or of the one before (``is_carried``)."""

    position: int
    output: int
    is_carried: bool


@dataclass(frozen=True, slots=True)
class Repetition:
    """``times`` blocks of ``length`` instructions, the first at ``start``."""

    start: int
    length: int
    times: int
    sources: tuple[tuple[Source | None, ...], ...]
    """For each argument of each instruction of a block; None for what comes from outside."""
    used: dict[tuple[int, int], tuple[int, ...]]
    """By position and output, the blocks whose result something after all of them uses."""
    summed: frozenset[tuple[int, int]]
    """Those of ``used`` that are only added up, all by one instruction."""

    @property
    def end(self) -> int:
        """The first instruction after the blocks."""
        return self.start + self.length * self.times

    @property
    def saved(self) -> int:
        """The instructions that need not be compiled."""
        return self.length * (self.times - 1)


def find_repetitions(
    code: Code, apart: Collection[int], fewest_saved: int, gated: Collection[int] = ()
) -> list[Repetition]:
    """The repetitions in ``code`` that save so many instructions, in their order.

    The instructions ``apart`` (by index) are in none; those that are ``gated`` are equal only to
    others that are.
    """
    if len(code.instructions) <= fewest_saved:
        return []
    return _Finder(code, apart, fewest_saved, gated).run()


class _Finder:
    def __init__(
        self, code: Code, apart: Collection[int], fewest_saved: int, gated: Collection[int]
    ) -> None:
        self._code = code
        self._fewest_saved = fewest_saved
        self._kinds = _kinds(code, apart, gated)
        self._link()

    def _link(self) -> None:
        """Finds the instruction that makes each argument, and those that use each result."""
        maker: dict[int, tuple[int, int]] = {}
        makers: list[int] = []
        outputs: list[int] = []
        self._first_argument = [0]
        """Where the arguments of each instruction begin in the arrays of all arguments."""
        self._users: dict[tuple[int, int], set[int]] = {}
        for index, instruction in enumerate(self._code.instructions):
            for slot in instruction.args:
                made = maker.get(slot, (_NOWHERE, 0))
                makers.append(made[0])
                outputs.append(made[1])
                self._users.setdefault(made, set()).add(index)
            self._first_argument.append(len(makers))
            for output, slot in enumerate(instruction.outs):
                maker[slot] = index, output
        code = self._code
        left = [*code.outputs, *(slot for _, slot in code.stores)]
        for slot in [*left, *(drawn for _, _, drawn in code.streams)]:
            end = len(code.instructions)
            self._users.setdefault(maker.get(slot, (_NOWHERE, 0)), set()).add(end)
        self._makers = np.array(makers, np.int64)
        self._outputs = np.array(outputs, np.int64)

    def run(self) -> list[Repetition]:
        found: list[Repetition] = []
        # Of a stretch with a period, the multiples of that are periods too, and save less.
        for _, length, start, count in sorted(self._stretches(), reverse=True):
            pending = _free(start, start + count, found)
            while pending:
                start, end = pending.pop()
                repetition = self._aligned(start, -length, (end - start) // -length)
                if repetition is not None:
                    found.append(repetition)
                    pending += [(start, repetition.start), (repetition.end, end)]
        return sorted(found, key=lambda repetition: repetition.start)

    def _stretches(self) -> Iterator[tuple[int, int, int, int]]:
        """Periodic stretches: what each saves, minus its period, its start, its length."""
        kinds = self._kinds
        for length in range(1, min(len(kinds) // _FEWEST_TIMES, _LONGEST_BLOCK) + 1):
            least = max(self._fewest_saved, (_FEWEST_TIMES - 1) * length)
            different = np.flatnonzero(kinds[length:] != kinds[:-length])
            bounds = np.concatenate([[-1], different, [len(kinds) - length]])
            equal = np.diff(bounds) - 1
            for place in np.flatnonzero(equal >= least):
                count = int(equal[place]) + length
                yield count // length * length - length, -length, int(bounds[place]) + 1, count

    def _aligned(self, start: int, length: int, times: int) -> Repetition | None:
        """The most blocks of a periodic stretch that take things from the same places."""
        if times < _FEWEST_TIMES:
            return None
        first, last = self._first_argument[start], self._first_argument[start + length * times]
        makers = self._makers[first:last].reshape(times, -1)
        outputs = self._outputs[first:last].reshape(times, -1)
        counts = [len(i.args) for i in self._code.instructions[start : start + length]]
        position = np.repeat(np.arange(length), counts)
        begins = start + length * np.arange(times)
        distance = (begins[:, None] + position) - makers
        distance[makers == _NOWHERE] = len(self._kinds) * 2
        # How it is in a block that agrees with the one before is how it is in most of them.
        agree = (distance[1:] == distance[:-1]) & (outputs[1:] == outputs[:-1])
        agree &= distance[1:] <= position + length
        typical = int(np.argmax(agree.sum(1))) + 1
        near = agree[typical - 1]
        carried = near & (distance[typical] > position)
        same = (distance == distance[typical]) & (outputs == outputs[typical])
        local_fits = same[:, near & ~carried].all(1)
        carried_fits = same[:, carried].all(1)
        newest_given = _most(makers[:, ~near])
        newest_carried = _most(makers[:, carried])
        best = (0, 0)
        block = 0
        for _ in range(min(_MOST_STARTS, times)):
            before = begins[block]
            given_fits = newest_given < before
            fits = local_fits & given_fits & carried_fits
            # What the first block takes over may be anything that is there.
            fits[block] = (local_fits & given_fits & (newest_carried < before))[block]
            rest = np.flatnonzero(~fits[block:])
            stop = block + (int(rest[0]) if len(rest) else times - block)
            best = max(best, (stop - block, -block))
            if stop == times:
                break
            block = max(stop, block + 1) if given_fits[stop] else block + 1
            if block == times:
                break
        times, block = best[0], -best[1]
        if times < _FEWEST_TIMES or length * (times - 1) < self._fewest_saved:
            return None
        sources: list[Source | None] = [
            Source(int(at - d) % length, int(output), bool(c)) if n else None
            for at, d, output, n, c in zip(
                position, distance[typical], outputs[typical], near, carried, strict=True
            )
        ]
        ends = np.cumsum(counts)
        by_instruction = tuple(tuple(sources[e - c : e]) for e, c in zip(ends, counts, strict=True))
        start += block * length
        used, summed = self._used(start, length, times)
        return Repetition(start, length, times, by_instruction, used, summed)

    def _used(
        self, start: int, length: int, times: int
    ) -> tuple[dict[tuple[int, int], tuple[int, ...]], frozenset[tuple[int, int]]]:
        """The results that later instructions use, and those of them that are only added up."""
        end = start + length * times
        used: dict[tuple[int, int], list[int]] = {}
        users: dict[tuple[int, int], set[int]] = {}
        instructions = self._code.instructions
        doubled: set[tuple[int, int]] = set()
        for number in range(length * times):
            block, position = divmod(number, length)
            for output, slot in enumerate(instructions[start + number].outs):
                found = self._users.get((start + number, output), set())
                if any(
                    u < len(instructions) and instructions[u].args.count(slot) > 1 for u in found
                ):
                    doubled.add((position, output))
                if any(user >= end for user in found):
                    used.setdefault((position, output), []).append(block)
                users.setdefault((position, output), set()).update(found)
        summed = {
            place
            for place, blocks in used.items()
            if len(blocks) == times
            and place not in doubled
            and len(users[place]) == 1
            and self._adds(*users[place])
        }
        return {place: tuple(blocks) for place, blocks in used.items()}, frozenset(summed)

    def _adds(self, index: int) -> bool:
        instructions = self._code.instructions
        return index < len(instructions) and instructions[index].node.op_def.name == "AddN"


def _free(start: int, end: int, found: list[Repetition]) -> list[tuple[int, int]]:
    """What is left of a stretch without the repetitions that were found."""
    left = []
    for repetition in sorted(found, key=lambda repetition: repetition.start):
        if start < repetition.end and repetition.start < end:
            left.append((start, repetition.start))
            start = repetition.end
    return [(a, b) for a, b in (*left, (start, end)) if a < b]


def _most(makers: np.ndarray) -> np.ndarray:
    return makers.max(1, initial=_NOWHERE)


def _kinds(code: Code, apart: Collection[int], gated: Collection[int]) -> np.ndarray:
    """A number for each instruction, the same for those that do the same; unique for others."""
    known: dict[Any, int] = {}
    numbers = []
    written = {slot for i in code.instructions for slot in i.outs}
    for index, instruction in enumerate(code.instructions):
        is_apart = index in apart or not _can_repeat(instruction.node)
        key = index if is_apart else (index in gated, _key(code, instruction, written))
        numbers.append(known.setdefault(key, len(known)))
    return np.array(numbers, np.int64)


def _can_repeat(node: Node) -> bool:
    """True for a function of its arguments; a random operation's stream is one of them."""
    op_def = node.op_def
    is_passed = bool(op_def.updates or op_def.overwrites or op_def.random)
    is_function = not op_def.stateful or is_passed or op_def.name in _READS
    is_special = structure_of(node) is not None or op_def.name in RESOURCE_OPS
    return is_function and not (is_special or op_def.self_gated or op_def.host)


def _key(code: Code, instruction: Instruction, written: set[int]) -> Any:
    node = instruction.node
    attrs = [
        (name, id(value) if (same := frozen(value)) is None else same)
        for name, value in node.attrs.items()
        if not (name.startswith("_") or (node.op_def.random and name in _SEEDS))
    ]
    results = [(code.infos[v].dims, code.infos[v].dtype) for v in node.outputs]
    settings = [
        (position, frozen(np.asarray(value)))
        for position, slot in enumerate(instruction.args)
        if slot not in written
        and isinstance(value := code.template[slot], np.ndarray | np.generic)
        and value.dtype.kind in "iub"
        and value.size <= _SMALL
    ]
    counts = len(instruction.args), len(instruction.outs)
    return node.op_def.name, tuple(attrs), tuple(results), tuple(settings), counts
