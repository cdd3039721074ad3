"""Which results of a segment keep their old values when a check fails, and its equal blocks."""

from __future__ import annotations

from runnel.graph.operation import Operation
from runnel.runtime.compile.packed_variables import last_updates, other_updates
from runnel.runtime.compile.repetition import Repetition, find_repetitions
from runnel.runtime.interpret.code import Code, Instruction

_FEWEST_SAVED = {"cpu": 150}
_MANY_SAVED = 3_000
"""Instructions that a loop saves the compiler, for it to be made of equal blocks. An accelerator
starts a loop's kernels more slowly than those of a straight line."""


def gates_of(code: Code) -> dict[int, Operation]:
    """The instructions whose results are gated, with the variable that each is for.

    For a variable that is updated as a whole it is the one that makes the value to assign rather
    than the assignment, so that whatever else uses that value uses the gated one and XLA computes
    it once: Adam's new moments are both stored and used.
    """
    maker_of: dict[int, int] = {}
    copied_from: dict[int, int] = {}
    for index, instruction in enumerate(code.instructions):
        maker_of.update(dict.fromkeys(instruction.outs, index))
        if instruction.node.op_def.overwrites and type(instruction.out) is int:
            maker = maker_of.get(instruction.args[-1])
            if maker is not None and _can_be_gated(code.instructions[maker]):
                copied_from[index] = maker
    gates: dict[int, Operation] = {}
    for variable, slot in code.stores:
        if variable in code.replaced and variable not in code.structured:
            update = maker_of[slot]
            maker = copied_from.get(update, update)
            gates[update if maker in gates else maker] = variable
    return gates


def _can_be_gated(instruction: Instruction) -> bool:
    """True for one result that nothing needs to know while the segment is traced."""
    return type(instruction.out) is int and not instruction.call.must_know


def repetitions_in(code: Code, platform: str) -> list[Repetition]:
    """The equal blocks of ``code`` that are compiled once."""
    gates, packable = gates_of(code), last_updates(code, platform)
    variables = set(packable.values())
    apart = other_updates(code, packable)
    apart.update(index for index, variable in gates.items() if variable not in variables)
    fewest = _FEWEST_SAVED.get(platform, _MANY_SAVED)
    return find_repetitions(code, apart, fewest, gates.keys())
