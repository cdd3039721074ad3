"""Runs chains of arithmetic over many rows for some rows at a time.

The update of a table gathers rows of it and of its slots, and computes new ones of each: a dozen
operations, each over megabytes. One after another, each waits for memory, and much of that is
memory that the system clears first. For some hundred rows at a time everything stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runnel.graph.shapes import is_fully_defined, num_elements
from runnel.memory import keep_some_freed_memory
from runnel.passes.program.program import ValueInfo
from runnel.runtime.interpret.code import Code, Instruction
from runnel.runtime.interpret.joined_code import JoinedCall, taken_later

_FEWEST = 3
"""Instructions that are worth joining."""
_SMALL_BYTES = 1 << 19
"""Results up to this size are computed as a whole."""
_BLOCK_BYTES = 1 << 17
_ITEM_BYTES = 4
"""About: of whatever type the elements are."""
_GATHERS = frozenset({"Gather", "GatherV2", "ResourceGather"})
_ELEMENTWISE = frozenset(
    {
        *("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "Pow"),
        *("SquaredDifference", "Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal"),
        *("Exp", "Log", "Cast", "ZerosLike", "OnesLike", "SelectV2"),
        *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
        *("LogicalAnd", "LogicalOr", "LogicalNot"),
    }
)


def join_row_blocks(code: Code) -> Code:
    """``code`` with chains over rows of tables joined."""
    found: list[Instruction] = []
    instructions = code.instructions
    place = 0
    while place < len(instructions):
        end = place
        while end < len(instructions) and _is_by_rows(instructions[end], code.infos):
            end += 1
        if end - place >= _FEWEST and any(map(_is_gather, instructions[place:end])):
            chain = instructions[place:end]
            gives = taken_later(code, [s for i in chain for s in i.outs], end)
            found.append(_RowBlocks(chain, gives).instruction)
        else:
            found += instructions[place : max(end, place + 1)]
        place = max(end, place + 1)
    return code if len(found) == len(instructions) else replace(code, instructions=found)


def _is_gather(instruction: Instruction) -> bool:
    return instruction.node.op_def.name in _GATHERS


def _is_by_rows(instruction: Instruction, infos: list[ValueInfo]) -> bool:
    """Whether row i of the result is made of row i of what the instruction takes, or of all."""
    node = instruction.node
    if isinstance(instruction.call, JoinedCall) or len(node.outputs) != 1:
        return False
    dims = infos[node.outputs[0]].dims
    if dims is None or len(dims) < 2:
        return False
    size = num_elements(dims) if is_fully_defined(dims) else None
    if size is not None and size * _ITEM_BYTES <= _SMALL_BYTES:
        return False
    if _is_gather(instruction):
        indices = infos[node.inputs[1]].dims
        by_vector = indices is not None and len(indices) == 1
        return by_vector and node.attrs.get("batch_dims", 0) == 0
    return node.op_def.name in _ELEMENTWISE


class _RowBlocks(JoinedCall):
    """A chain whose instructions all give as many rows."""

    def compute(self, given: Sequence[Any]) -> list[Any] | None:
        planned = self._plan(given)
        if planned is None:
            return None
        keep_some_freed_memory()
        shape, cuts = planned
        steps = [(*step[:3], cut) for step, cut in zip(self.instructions, cuts, strict=True)]
        count = shape[0]
        size = max(1, _BLOCK_BYTES * count // (_ITEM_BYTES * math.prod(shape)))
        slots: list[Any] = [*given, *[None] * (self.slots - len(given))]
        wholes: list[np.ndarray] = []
        for start in range(0, count, size):
            rows = slice(start, start + size)
            for call, args, out, cut in steps:
                slots[out] = call(
                    *[slots[a][rows] if c else slots[a] for a, c in zip(args, cut, strict=True)]
                )
            if not start:
                wholes = [np.empty(shape, slots[slot].dtype) for slot in self.gives]
            for slot, whole in zip(self.gives, wholes, strict=True):
                whole[rows] = slots[slot]
        return wholes

    def _plan(self, given: Sequence[Any]) -> tuple[tuple[int, ...], list[list[bool]]] | None:
        """The shape of all results, and for each instruction the arguments that are cut."""
        common: tuple[int, ...] | None = None
        shapes: dict[int, tuple[int, ...]] = {}
        cuts: list[list[bool]] = []
        for _, args, out, node in self.instructions:
            taken = [shapes[a] if a in shapes else np.shape(given[a]) for a in args]
            if node.op_def.name in _GATHERS:
                along_rows = len(args) < 3 or given[args[2]] == 0
                if args[0] in shapes or not along_rows or len(taken[1]) != 1:
                    return None
                shape = taken[1] + taken[0][1:]
                cut = [position == 1 for position in range(len(args))]
            else:
                shape = np.broadcast_shapes(*taken)
                cut = [
                    a not in shapes and len(t) == len(shape) and t[0] == shape[0]
                    for a, t in zip(args, taken, strict=True)
                ]
            if common is None:
                common = shape
                if math.prod(shape) * _ITEM_BYTES <= _SMALL_BYTES:
                    return None
            if shape != common:
                return None
            shapes[out] = shape
            cuts.append(cut)
        assert common is not None
        return common, cuts
