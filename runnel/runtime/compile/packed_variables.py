"""Which variables a compiled segment takes and gives as the rows of one array.

Blocks of a repetition that update small variables, one each, take them from a pack of the state
(``runtime.state.pack``) and put them back there. For XLA, and in every call, they are one array.
Updates of other variables are in no block: taking row after row out of an array costs XLA more than
compiling the updates one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef
from runnel.graph.shapes import is_fully_defined, num_elements
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.interpret.code import Code

_MOST_BYTES = 1 << 14


def last_updates(code: Code, platform: str) -> dict[int, Operation]:
    """By index, the instructions that give variables their new values, of those that can be packed.

    On an accelerator there is none: a row that something else needs would have to be brought back.
    """
    if platform != "cpu":
        return {}
    loaded = {variable for variable, _, node in code.loads if node is not None}
    variable_of = {
        slot: variable
        for variable, slot in code.stores
        if variable in loaded
        and variable not in code.reshaped
        and variable not in code.structured
        and _is_small(variable)
    }
    found = {}
    for index, (_, _, out, node) in enumerate(code.instructions):
        if type(out) is int and out in variable_of and _updates(node.op_def):
            found[index] = variable_of[out]
    return found


def other_updates(code: Code, packable: dict[int, Operation]) -> set[int]:
    """The instructions that update a variable and are not among ``packable``."""
    return {
        index
        for index, instruction in enumerate(code.instructions)
        if index not in packable and _updates(instruction.node.op_def)
    }


def packs_in(
    code: Code, repetitions: Sequence[Repetition], platform: str
) -> list[tuple[Operation, ...]]:
    """The variables that the blocks of ``repetitions`` update, in the order of the blocks."""
    updates = last_updates(code, platform) if repetitions else {}
    packs = []
    for repetition in repetitions:
        for position in range(repetition.start, repetition.start + repetition.length):
            indices = range(position, repetition.end, repetition.length)
            variables = tuple([updates[i] for i in indices if i in updates])
            if len(variables) == repetition.times and len(set(map(_type_of, variables))) == 1:
                packs.append(variables)
    return packs


def _updates(op_def: OpDef) -> bool:
    return bool(op_def.updates or op_def.overwrites)


def _type_of(variable: Operation) -> tuple[object, object]:
    return variable.attrs["shape"]._dims, variable.attrs["dtype"]


def _is_small(variable: Operation) -> bool:
    dims = variable.attrs["shape"]._dims
    if not is_fully_defined(dims):
        return False
    return (num_elements(dims) or 0) * variable.attrs["dtype"].size <= _MOST_BYTES
