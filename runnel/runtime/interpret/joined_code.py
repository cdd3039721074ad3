"""Joins neighbouring instructions into one, which computes the same in another way.

Both ways stay: the joined one where it applies to the inputs, else the instructions one by one. The
latter also find the error when something fails, and name the operation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from runnel.runtime.interpret.code import Code, Instruction
from runnel.runtime.interpret.interpreter import interpret

logger = logging.getLogger("runnel")


class JoinedCall:
    """Instructions as one call; a subclass computes what they give in its own way."""

    def __init__(self, instructions: Sequence[Instruction], gives: Sequence[int]) -> None:
        """``gives`` are the slots whose values are taken later."""
        number: dict[int, int] = {}
        self.takes: list[int] = []
        self.instructions: list[Instruction] = []
        """Over slots of their own: first those that the call takes, in their order."""
        defined: set[int] = set()
        for instruction in instructions:
            self.takes += [s for s in instruction.args if s not in defined | {*self.takes}]
            defined.update(instruction.outs)
        # A slot may hold one value before the call and another one behind it.
        for slot in self.takes:
            number[slot] = len(number)
        count = len(self.takes)
        for instruction in instructions:
            args = tuple(number[slot] for slot in instruction.args)
            out = range(count, count + len(instruction.outs))
            count = out.stop
            number.update(zip(instruction.outs, out, strict=True))
            single = type(instruction.out) is int
            self.instructions.append(
                instruction._replace(args=args, out=out[0] if single else tuple(out))
            )
        self.gives = [number[slot] for slot in gives]
        self.slots = count
        self.instruction = Instruction(self, tuple(self.takes), tuple(gives), instructions[0].node)
        """This call in the place of them."""

    def __call__(self, *given: Any) -> list[Any]:
        try:
            found = self.compute(given)
        except Exception as error:  # noqa: BLE001 (one by one, it has the operation's name)
            logger.debug("Joined instructions failed, and are run one by one: %s", error)
            found = None
        if found is not None:
            return found
        slots = [*given, *[None] * (self.slots - len(given))]
        interpret(self.instructions, slots)
        return [slots[slot] for slot in self.gives]

    def compute(self, given: Sequence[Any]) -> list[Any] | None:
        """What the instructions give; None where this way does not apply to what is ``given``."""
        raise NotImplementedError


def taken_later(code: Code, slots: Iterable[int], place: int) -> list[int]:
    """Those of ``slots`` whose value is still taken by the instruction at ``place`` or later."""
    kept = {*code.outputs, *(slot for _, slot in code.stores), *(s for *_, s in code.streams)}
    undecided = dict.fromkeys(slots)
    found: set[int] = set()
    for instruction in code.instructions[place:]:
        found.update(slot for slot in instruction.args if slot in undecided)
        for slot in (*instruction.args, *instruction.outs):
            undecided.pop(slot, None)
        if not undecided:
            break
    found.update(slot for slot in undecided if slot in kept)
    return [slot for slot in dict.fromkeys(slots) if slot in found]
