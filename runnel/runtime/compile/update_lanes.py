"""Finds the lanes of a segment: what an optimizer's formula does to one variable.

A lane begins at the slots, variables that nothing else needs, and goes on through instructions that
compute element by element. From outside it takes a gradient, a variable that others use too, and
numbers. Two lanes of one signature do the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.shapes import Dims, is_fully_defined, num_elements
from runnel.passes.program.program import Node
from runnel.passes.rewrites.common_subexpressions import frozen
from runnel.runtime.interpret.code import Code

_MOST_BYTES = 1 << 24
"""Of one variable: gradients are copied."""

_READS = frozenset({"ReadVariableOp"})
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_ELEMENTWISE = _ASSIGNS | {
    *("AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp"),
    *("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference"),
    *("Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal"),
}

MADE, PACK, EACH, ONE, STATE = "made", "pack", "each", "one", "state"
"""What an instruction of a lane takes: something made in the lane; a variable of its own; an array
from outside, another in each lane; one number; a variable that others use."""

_CONSTANT, _INPUT, _LOAD, RESULT = "constant", "input", "load", "result"


class Definition(NamedTuple):
    """Where a value comes from: a slot's constant, an input, a load, or an instruction's result."""

    kind: str
    number: int
    position: int = 0


@dataclass(slots=True)
class Lane:
    """Instructions in their order; what they take from outside, by first use."""

    indices: list[int]
    outside: list[Definition]
    signature: Any = None


class Lanes:
    """The lanes of ``code``; ``gates`` are those of its instructions."""

    def __init__(self, code: Code, gates: Mapping[int, Operation]) -> None:
        self._code = code
        self._gates = gates
        self._operands: list[list[Definition]] = []
        self.slot_of: dict[Definition, int] = {}
        self.dims: dict[Definition, Dims] = {}
        self._users: dict[Definition, list[int]] = defaultdict(list)
        self.variable_of: dict[Definition, Operation] = {}
        self._stored: dict[Operation, Definition] = {}
        self._used_outside: set[Definition] = set()
        self._define()

    def find(self) -> list[list[Lane]]:
        """The lanes, those of one signature together."""
        candidates = self._candidates()
        updates: set[int] = set()
        while candidates:
            updates = self._updates_of(candidates)
            left = {c for c in candidates if updates.issuperset(self._users[c])}
            if left == candidates:
                break
            candidates = left
        lanes: dict[Any, list[Lane]] = defaultdict(list)
        for indices in self._connected(updates, candidates):
            lane = self._lane(indices, candidates)
            if lane is not None:
                lanes[lane.signature].append(lane)
        return list(lanes.values())

    # Reading the code -----------------------------------------------------------------------

    def _define(self) -> None:
        """Finds where everything that instructions take comes from."""
        code, now = self._code, {}
        for slot, content in enumerate(code.template):
            now[slot] = self._new(Definition(_CONSTANT, slot), slot, np.shape(content))
        for number, slot in enumerate(code.inputs):
            now[slot] = self._new(Definition(_INPUT, number), slot, None)
        for number, (variable, slot, _) in enumerate(code.loads):
            dims = variable.attrs["shape"]._dims
            now[slot] = self._new(Definition(_LOAD, number), slot, dims)
            self.variable_of[now[slot]] = variable
        for index, instruction in enumerate(code.instructions):
            out, node = instruction.out, instruction.node
            taken = [now[slot] for slot in instruction.args]
            self._operands.append(taken)
            for definition, value in zip(taken, node.inputs, strict=False):
                if definition.kind == _INPUT:
                    self.dims[definition] = code.infos[value].dims
            if node.op_def.name in _READS and type(out) is int:
                now[out] = taken[0]
                continue
            for definition in dict.fromkeys(taken):
                self._users[definition].append(index)
            for position, slot in enumerate(instruction.outs):
                made = Definition(RESULT, index, position)
                now[slot] = self._new(made, slot, self._result_dims(node))
        self._used_outside.update(now[slot] for slot in code.outputs)
        self._stored = {variable: now[slot] for variable, slot in code.stores}

    def _new(self, definition: Definition, slot: int, dims: Dims) -> Definition:
        self.slot_of[definition] = slot
        self.dims[definition] = dims
        return definition

    def _result_dims(self, node: Node) -> Dims:
        """The shape of the only result of ``node``; an update has that of its last operand."""
        if node.op_def.updates or node.op_def.overwrites:
            return self.dims[self._operands[-1][-1]]
        return self._code.infos[node.outputs[0]].dims if len(node.outputs) == 1 else None

    def _candidates(self) -> set[Definition]:
        """Loads of variables that only their own updates may need."""
        code = self._code
        return {
            definition
            for definition, variable in self.variable_of.items()
            if variable in self._stored
            and code.loads[definition.number][2] is not None
            and variable not in code.reshaped
            and variable not in code.structured
            and definition not in self._used_outside
            and self._is_suitable(variable)
        }

    def _is_suitable(self, variable: Operation) -> bool:
        dims, dtype = variable.attrs["shape"]._dims, variable.attrs["dtype"]
        if not is_fully_defined(dims) or not dims or not dtype.is_floating:
            return False
        return 0 < (num_elements(dims) or 0) * dtype.size <= _MOST_BYTES

    def _is_elementwise(self, index: int) -> bool:
        """True for an instruction over arrays of one shape, and single numbers."""
        instruction = self._code.instructions[index]
        node = instruction.node
        if node.op_def.name not in _ELEMENTWISE or type(instruction.out) is not int:
            return False
        dims = self.dims[Definition(RESULT, index)]
        if not is_fully_defined(dims) or not dims or instruction.call.must_know:
            return False
        return all(self.dims[taken] in ((), dims) for taken in self.arguments(index))

    def arguments(self, index: int) -> list[Definition]:
        """What an instruction takes; a reference that it overwrites is nothing."""
        overwritten = self._code.instructions[index].node.op_def.overwrites
        return [taken for i, taken in enumerate(self._operands[index]) if i not in overwritten]

    def _arrays(self, index: int) -> list[Definition]:
        return [taken for taken in self.arguments(index) if self.dims[taken]]

    # Lanes ----------------------------------------------------------------------------------

    def _updates_of(self, candidates: set[Definition]) -> set[int]:
        """The instructions that compute with ``candidates``, or with what these make of them."""
        reached, updates = set(candidates), set()
        for index in range(len(self._operands)):
            if not reached.isdisjoint(self._operands[index]) and self._is_elementwise(index):
                updates.add(index)
                reached.add(Definition(RESULT, index))
        return updates

    def _connected(self, updates: set[int], candidates: set[Definition]) -> list[list[int]]:
        """``updates`` in groups that share no value but what comes from outside."""
        leader = {index: index for index in updates}

        def lead(index: int) -> int:
            while leader[index] != index:
                leader[index] = index = leader[leader[index]]
            return index

        for definition in (*candidates, *(Definition(RESULT, index) for index in updates)):
            members = [index for index in self._users[definition] if index in updates]
            if definition.kind == RESULT:
                members.append(definition.number)
            for index in members:
                leader[lead(index)] = lead(members[0])
        groups: dict[int, list[int]] = defaultdict(list)
        for index in sorted(updates):
            groups[lead(index)].append(index)
        return list(groups.values())

    def _lane(self, indices: list[int], candidates: set[Definition]) -> Lane | None:
        """The lane of those instructions, with what only they need of what they take."""
        members = set(indices)
        while True:
            outside = self._outside(members)
            chains = [self._chain(made, members, outside) for made in outside]
            taken = Counter(array for _, arrays in chains for array in arrays)
            taken.update(outside)
            # Without more to take: what several make of one array, or of what is taken anyway.
            more = {
                index
                for indices, arrays in chains
                if all(taken[array] > 1 for array in arrays)
                for index in indices
            }
            if not more:
                break
            members |= more
        lane = Lane(sorted(members), [])
        dims = {self.dims[Definition(RESULT, index)] for index in lane.indices}
        if len(dims) > 1:
            return None
        numbers: dict[Definition, int] = {}
        parts = [self._signature(index, lane, numbers, candidates) for index in lane.indices]
        lane.signature = tuple(parts)
        return lane

    def _chain(
        self, made: Definition, members: set[int], outside: set[Definition]
    ) -> tuple[list[int], set[Definition]]:
        """Instructions that make something only for ``members``, and what the first one takes."""
        indices: list[int] = []
        arrays = {made}
        while len(arrays) == 1:
            (last,) = arrays
            users = {*members, *indices}
            if (
                last.kind != RESULT
                or last in self._used_outside
                or (indices and last in outside)
                or not users.issuperset(self._users[last])
                or not self._is_elementwise(last.number)
            ):
                break
            indices.append(last.number)
            arrays = set(self._arrays(last.number))
        return indices, arrays

    def _outside(self, members: set[int]) -> set[Definition]:
        """The arrays that ``members`` take and do not make."""
        return {
            taken
            for index in members
            for taken in self._arrays(index)
            if not (taken.kind == RESULT and taken.number in members)
        }

    def _signature(
        self,
        index: int,
        lane: Lane,
        numbers: dict[Definition, int],
        candidates: set[Definition],
    ) -> Any:
        """What an instruction has in common with its equals in other lanes."""
        operands: list[Any] = []
        for taken in self.arguments(index):
            if not self.dims[taken]:
                operands.append((ONE, self._same_number(taken)))
            elif taken.kind == RESULT and taken.number in lane.indices:
                operands.append((MADE, lane.indices.index(taken.number)))
            else:
                if taken not in numbers:
                    numbers[taken] = len(lane.outside)
                    lane.outside.append(taken)
                kind = EACH
                if taken in self.variable_of:
                    kind = PACK if taken in candidates else STATE
                operands.append((kind, numbers[taken]))
        node = self._code.instructions[index].node
        attrs = tuple([(k, frozen(v)) for k, v in node.attrs.items() if not k.startswith("_")])
        gate = self._gates.get(index)
        result = Definition(RESULT, index)
        stored = [variable for variable, made in self._stored.items() if made == result]
        places = [self._number_of(variable, numbers) for variable in (gate, *stored)]
        dtype = self.dtype(node)
        return node.op_def.name, attrs, dtype, tuple(operands), tuple(places), len(stored)

    def _same_number(self, definition: Definition) -> Any:
        """What two definitions of one number have in common."""
        if definition.kind != _CONSTANT:
            return definition
        value = np.asarray(self._code.template[definition.number])
        return str(value.dtype), value.tobytes()

    def dtype(self, node: Node) -> Any:
        """The element type that ``node`` computes with."""
        return self._code.infos[node.inputs[-1]].dtype.base_dtype

    def _number_of(
        self, variable: Operation | None, numbers: Mapping[Definition, int]
    ) -> int | None:
        """Which of the arrays from outside is the old value of ``variable``."""
        if variable is None:
            return None
        return next((n for d, n in numbers.items() if self.variable_of.get(d) is variable), -1)
