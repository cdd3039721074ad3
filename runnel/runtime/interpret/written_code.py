"""Writes a segment that has run often as Python: a line for each instruction.

A line costs a third of the time in which the interpreter's loop unpacks an instruction, and
operations on single numbers need no kernel (``runtime.interpret.scalar_code``). Writing costs as
much as some hundred runs save. So it waits for as many runs, and then writes a piece in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node, ValueInfo
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.code import Code, Instruction
from runnel.runtime.interpret.function_writer import FunctionWriter
from runnel.runtime.interpret.interpreter import interpret
from runnel.runtime.interpret.scalar_code import is_number
from runnel.runtime.interpret.spent_arrays import place_of
from runnel.runtime.state.step_context import StepContext

PIECE = 256
"""Instructions in a piece, between two of which the step is looked at; and a step may wait some
milliseconds for one to be written."""


class WrittenCode:
    """The instructions of ``code`` as functions over its slots.

    ``kept`` are the slots that are read when all have run. ``infos`` has what is known of the
    values of the nodes, where each instruction does exactly what its node says.
    """

    def __init__(self, code: Code, kept: Iterable[int], infos: list[ValueInfo] | None) -> None:
        self._template = code.template
        self._infos = None if verification.enabled else infos
        instructions = code.instructions
        self._pieces: list[_Piece] = []
        needed = set(kept)
        for start in reversed(range(0, len(instructions), PIECE)):
            piece = _Piece(instructions[start : start + PIECE])
            piece.gives = sorted(piece.defined & needed)
            needed = needed - piece.defined | piece.taken
            self._pieces.append(piece)
        self._pieces.reverse()
        self._unwritten = iter(self._pieces)

    def run(self, slots: list[Any], context: StepContext) -> None:
        """Runs all instructions over ``slots``, after one more piece of them has been written."""
        unwritten = next(self._unwritten, None)  # which is one thread's alone
        if unwritten is not None:
            unwritten.run = self._written(unwritten)
        for piece in self._pieces:
            if piece is not self._pieces[0]:
                context.require_time(piece.instructions[0].node)
            piece.run(slots)

    def _written(self, piece: _Piece) -> Callable[[list[Any]], Any]:
        out = FunctionWriter(piece.instructions[0].node, self._infos or [])
        names: dict[Any, str] = {}
        numbers = self._numbers(piece)
        for slot in sorted(piece.taken):
            constant = self._template[slot]
            if constant is None:
                names[slot] = f"s{slot}"
                # An operator on an array of no dimensions takes ten times as long.
                out.line(f"s{slot} = slots[{slot}]{'[()]' if slot in numbers else ''}")
            else:
                names[slot] = out.bind("c", constant[()] if slot in numbers else constant)
        fresh: set[int] = set()
        variables = _Variables()
        for instruction, last in zip(piece.instructions, piece.last_uses(), strict=True):
            self._write(out, instruction, names, last, fresh, variables)
        for slot in piece.gives:
            out.line(f"slots[{slot}] = {names[slot]}")
        return out.function(["slots"], [])

    def _numbers(self, piece: _Piece) -> set[int]:
        """The slots with a single number that ``piece`` takes."""
        found: set[int] = set()
        defined: set[int] = set()
        infos = self._infos
        if infos is None:
            return found
        for instruction in piece.instructions:
            args, node = instruction.args, instruction.node
            if len(args) == len(node.inputs):
                for slot, value in zip(args, node.inputs, strict=True):
                    if slot not in defined and is_number(infos[value]):
                        found.add(slot)
            defined.update(instruction.outs)
        return found

    def _write(
        self,
        out: FunctionWriter,
        instruction: Instruction,
        names: dict[Any, str],
        last: set[int],
        fresh: set[int],
        variables: _Variables,
    ) -> None:
        """A line for ``instruction``; it is the ``last`` to take the values of some slots.

        ``fresh`` are the slots with arrays that nothing but ufuncs has seen. ``variables`` are the
        local variables for what slots get.
        """
        call, args, result, node = instruction
        arguments = [names[slot] for slot in args]
        text = self._expression(out, node, arguments)
        is_fresh = isinstance(call, np.ufunc) and text is None
        kept: list[int] = []
        if text is None:
            if call not in names:  # a slot is an integer, a kernel never is
                names[call] = out.bind("k", call)
            if is_fresh and type(result) is int:
                kept = self._reused(instruction, last & fresh)
            taken = arguments + [place_of(call) + names[slot] for slot in kept]
            text = f"{names[call]}({', '.join(taken)})"
        if not is_fresh:
            fresh.difference_update(args)
        slots = instruction.outs
        if kept:  # the array goes on under the name that it has
            variables[result], variables[kept[0]] = variables[kept[0]], variables[result]
        for slot in slots:
            names[slot] = variables[slot]
            fresh.discard(slot)
        if is_fresh:
            fresh.update(slots)
        targets = ", ".join(names[slot] for slot in slots)
        comma = "" if type(result) is int else ", "
        out.line(f"{targets}{comma} = {text}" if slots and not kept else text, node, arguments)

    def _reused(self, instruction: Instruction, free: set[int]) -> list[int]:
        """The slot of an argument, if there is one, whose array may hold the result."""
        _, args, _, node = instruction
        if self._infos is None or len(args) != len(node.inputs):
            return []
        result = self._infos[node.outputs[0]]
        if not result.dims or not is_fully_defined(result.dims):
            return []
        for slot, value in zip(args, node.inputs, strict=True):
            info = self._infos[value]
            if slot in free and (info.dims, info.dtype) == (result.dims, result.dtype):
                return [slot]
        return []

    def _expression(self, out: FunctionWriter, node: Node, arguments: list[str]) -> str | None:
        if self._infos is None:
            return None
        if node.op_def.name == "Identity":
            return arguments[0]
        if len(node.outputs) != 1 or not is_number(self._infos[node.outputs[0]]):
            return None
        return out.expression(node, arguments)


class _Variables(dict[int, str]):
    """The local variable of each slot: another for each of them."""

    def __missing__(self, slot: int) -> str:
        return self.setdefault(slot, f"s{slot}")


class _Piece:
    """Some instructions: the slots that they take from before, define, and give to later ones."""

    __slots__ = ("instructions", "taken", "defined", "gives", "run")

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.taken: set[int] = set()
        self.defined: set[int] = set()
        for instruction in instructions:
            self.taken.update(set(instruction.args) - self.defined)
            self.defined.update(instruction.outs)
        self.gives: list[int] = []
        self.run: Callable[[list[Any]], Any] = self._interpret

    def _interpret(self, slots: list[Any]) -> None:
        interpret(self.instructions, slots)

    def last_uses(self) -> list[set[int]]:
        """For each instruction the slots whose values nothing takes after it."""
        found = []
        live = set(self.gives)
        for instruction in reversed(self.instructions):
            live.difference_update(instruction.outs)
            found.append(set(instruction.args) - live)
            live.update(instruction.args)
        return found[::-1]
