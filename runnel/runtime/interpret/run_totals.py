"""Totals of rows with the same index, for a sparse gradient (``train.row_totals``), in one pass.

As operations this takes several passes: put rows into the order of their indices, add them up by
run, give each run's total to its rows. But most runs are of one row, which is its own total. So
this moves rows once, and adds up only runs of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runnel.ops.bounds import are_in_range
from runnel.ops.combined_rows import combined_natively
from runnel.runtime.interpret.code import Code, Instruction
from runnel.runtime.interpret.joined_code import JoinedCall, taken_later


def join_run_totals(code: Code) -> Code:
    """``code`` with one instruction for each such totals."""
    found: list[Instruction] = []
    place = 0
    instructions = code.instructions
    while place < len(instructions):
        joined = _totals_at(code, place)
        found.append(instructions[place] if joined is None else joined.instruction)
        place += 1 if joined is None else 3
    if len(found) == len(instructions):
        return code
    return replace(code, instructions=_behind_gathers(replace(code, instructions=found)))


def _totals_at(code: Code, place: int) -> _RunTotals | None:
    """The totals (Gather, UnsortedSegmentSum, Gather) that begin at ``place``."""
    three = code.instructions[place : place + 3]
    if [i.node.op_def.name for i in three] != ["GatherV2", "UnsortedSegmentSum", "GatherV2"]:
        return None
    order, total, spread = three
    if total.args[0] != order.out or spread.args[0] != total.out or total.args[1] != spread.args[1]:
        return None
    if total.out == total.args[1] or order.out in (total.args[1], total.args[2]):
        return None
    if taken_later(code, {order.out, total.out} - {spread.out}, place + 3):
        return None
    return _RunTotals(three, [spread.out])


def _behind_gathers(code: Code) -> list[Instruction]:
    """The instructions, where totals of rows that were only gathered for them gather themselves."""
    found: list[Instruction | None] = [*code.instructions]
    made_at: dict[int, int] = {}
    for place, instruction in enumerate(code.instructions):
        call = instruction.call
        before = made_at.get(instruction.args[0]) if type(call) is _RunTotals else None
        if before is not None:
            gather = code.instructions[before]
            between = code.instructions[before + 1 : place]
            slot = gather.out
            unused = not any(slot in other.args for other in between)
            unchanged = not any(s in gather.args for other in between for s in other.outs)
            ends = slot in instruction.outs or not taken_later(code, [slot], place + 1)
            if unused and unchanged and ends and slot not in instruction.args[1:]:
                given = [gather, *call.original]
                found[before] = None
                found[place] = _RunTotals(given, list(instruction.out)).instruction
        for slot in instruction.outs:
            made_at.pop(slot, None)
        if instruction.node.op_def.name == "GatherV2" and type(call) is not _RunTotals:
            made_at[instruction.out] = place
    return [instruction for instruction in found if instruction is not None]


class _RunTotals(JoinedCall):
    """Three instructions, or four with a gather of the rows before them."""

    def __init__(self, instructions: Sequence[Instruction], gives: Sequence[int]) -> None:
        super().__init__(instructions, gives)
        self.original = instructions

    def compute(self, given: Sequence[Any]) -> list[Any] | None:
        if any(node.attrs["batch_dims"] for _, _, _, node in self.instructions if _is_gather(node)):
            return None
        *gathers, (_, (_, segments, count), _, _), (_, (_, _, last_axis), _, _) = self.instructions
        rows = given[gathers[0].args[0]]
        segment = given[segments]
        if segment.ndim != 1 or not segment.size or given[last_axis] != 0 or rows.ndim < 2:
            return None
        if not are_in_range(segment, int(given[count])) or (segment[1:] < segment[:-1]).any():
            return None
        chosen = None
        size = rows.shape[0]
        for _, (_, indices, axis), _, _ in gathers:
            index = given[indices]
            if index.ndim != 1 or given[axis] != 0 or not are_in_range(index, size):
                return None
            chosen = index if chosen is None else chosen.take(index)
            size = index.size
        if size != segment.size:
            return None
        ordered = rows.take(chosen, 0)
        begins = np.ones(segment.size, bool)
        np.not_equal(segment[1:], segment[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        lengths = np.diff(starts, append=segment.size)
        several = lengths > 1
        if several.any():
            lengths = lengths[several]
            places = np.repeat(starts[several] - np.cumsum(lengths) + lengths, lengths)
            places += np.arange(places.size)
            totals = np.zeros((lengths.size, *rows.shape[1:]), rows.dtype)
            runs = np.repeat(np.arange(lengths.size), lengths)
            # In the order in which UnsortedSegmentSum adds rows up.
            if not combined_natively(np.add, totals, runs, ordered, sources=places):
                parts = np.cumsum(lengths) - lengths
                totals = np.add.reduceat(ordered.take(places, 0), parts, axis=0, dtype=rows.dtype)
            ordered[places] = totals.take(runs, 0)
        ordered += ordered.dtype.type(0)  # a sum begins with 0: -0 becomes 0
        return [ordered]


def _is_gather(node: Any) -> bool:
    return node.op_def.name == "GatherV2"
