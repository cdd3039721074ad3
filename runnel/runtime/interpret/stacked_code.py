"""Makes one instruction, over an array of rows, of those that do the same with many small arrays.

A step with hundreds of small variables spends its time on calls, not on arithmetic. Instructions
that do the same to arrays of one shape, and do not need one another, become one (a *group*). Its
result is a *stack*, with one row for each. Groups take one another's stacks as they are. Where the
rows are variables' values, they come from a pack of the state (``runtime.state.pack``) and go back
there.

Only exact arithmetic is stacked, so no bit of a result changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.shapes import Dims, is_fully_defined, num_elements
from runnel.passes.program.kernel_call import interpreted
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.runtime.interpret.code import Code, Instruction

_FEWEST = 8
"""Smaller groups are not worth the stacking of what they take."""
_MOST_BYTES = 1 << 12
"""Copying a larger row takes longer than a call."""

_READS = frozenset({"ReadVariableOp"})
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_UPDATES = frozenset({"AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp"})
_ARITHMETIC = _UPDATES | {
    *("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference"),
    *("Neg", "Abs", "Sign", "Square", "Sqrt", "Reciprocal"),
}
_TYPES = frozenset({np.float32, np.float64, np.int32, np.int64})


@dataclass(slots=True)
class StackedCode:
    """Code in which groups are one instruction, and the packs that it takes and gives."""

    code: Code
    """Without the loads and stores of what is packed."""
    loads: list[tuple[tuple[Operation, ...], int]] = field(default_factory=list)
    """Variables whose values are the rows of what a slot takes."""
    stores: list[tuple[tuple[Operation, ...], int]] = field(default_factory=list)


class _Step:
    """An instruction over values that are each defined once, and how far it is from the end."""

    __slots__ = ("call", "args", "outs", "single", "node", "key", "assigns", "height")

    def __init__(
        self, call: Any, args: tuple[int, ...], outs: tuple[int, ...], single: bool, node: Node
    ) -> None:
        self.call = call
        self.args = args
        self.outs = outs
        self.single = single
        self.node = node
        self.key: Any = None
        """Steps of one key can be a group; None for one that is never in a group."""
        self.assigns = False
        self.height = 0


def stacked(code: Code, program: Program, access: StateAccess, device: str) -> StackedCode | None:
    """``code`` with groups; None where they are not most of it."""
    if len(code.instructions) < 4 * _FEWEST or code.streams or code.watch is not None:
        return None
    if any(_has_effects(instruction.node) for instruction in code.instructions):
        return None  # what happens outside happens in its order
    return _Stacking(code, program, access, device).run()


def _has_effects(node: Node) -> bool:
    op_def = node.op_def
    is_function = op_def.updates or op_def.overwrites or op_def.name in _READS | {"NoOp"}
    return op_def.host or op_def.blocking or (op_def.stateful and not is_function)


class _Stacking:
    def __init__(self, code: Code, program: Program, access: StateAccess, device: str) -> None:
        self._code = code
        self._infos = program.infos
        self._access = access
        self._device = device
        self._values = 0
        self._constants: dict[int, Any] = {}
        self._loads: dict[int, tuple[Operation, Node | None]] = {}
        self._steps: list[_Step] = []
        self._emitted: list[_Step] = []
        self._stack_of: dict[tuple[int, ...], int] = {}
        """The stack of some values, in their order."""
        self._row_of: dict[int, tuple[int, int]] = {}
        """The stack in which a value is, and where."""
        self._rows: dict[int, tuple[int, ...]] = {}
        self._there: set[int] = set()
        """Values that are not only in a stack."""
        self._packs: dict[int, tuple[Operation, ...]] = {}

    def run(self) -> StackedCode | None:
        inputs, outputs, stores = self._define_once()
        self._find_heights()
        groups: dict[Any, list[_Step]] = {}
        for step in self._steps:
            if step.key is not None:
                groups.setdefault((step.height, step.key), []).append(step)
        groups = {key: steps for key, steps in groups.items() if len(steps) >= _FEWEST}
        others = sum(not step.assigns for step in self._steps)
        if 2 * sum(map(len, groups.values())) < others or not groups:
            return None
        self._there.update(inputs, self._constants, self._loads)
        done: set[Any] = set()
        # A higher step never needs a lower one.
        for step in sorted(self._steps, key=lambda step: -step.height):
            key = (step.height, step.key)
            if key not in groups:
                self._emit_single(step)
            elif key not in done:
                done.add(key)
                self._emit_group(groups[key])
        result = StackedCode(Code())
        kept = []
        by_stack: dict[int, dict[int, Operation]] = {}
        for variable, value in stores:
            stack, row = self._row_of.get(value, (-1, -1))
            if value in self._row_of and row not in by_stack.get(stack, {}):
                by_stack.setdefault(stack, {})[row] = variable
            else:
                kept.append((variable, value))
        for stack, variables in by_stack.items():
            if len(variables) == len(self._rows[stack]):
                packed = tuple([variables[row] for row in range(len(variables))])
                result.stores.append((packed, stack))
            else:
                kept += [(v, self._rows[stack][row]) for row, v in variables.items()]
        self._bring_out([*outputs, *(value for _, value in kept)])
        self._allocate(result, inputs, outputs, kept)
        return result

    # Reading the code -----------------------------------------------------------------------

    def _new(self) -> int:
        self._values += 1
        return self._values - 1

    def _define_once(self) -> tuple[list[int], list[int], list[tuple[Operation, int]]]:
        """Makes steps of the instructions; the values of inputs, outputs and stores."""
        code, now = self._code, {}
        for slot, content in enumerate(code.template):
            if content is not None or slot == 0:
                now[slot] = self._new()
                self._constants[now[slot]] = content
        inputs = []
        for slot in code.inputs:
            inputs.append(self._new())
            now[slot] = inputs[-1]
        for variable, slot, node in code.loads:
            now[slot] = self._new()
            self._loads[now[slot]] = (variable, node)
        for instruction in code.instructions:
            call, args, out, node = instruction
            taken = tuple([now[slot] for slot in args])
            if node.op_def.name in _READS and type(out) is int:
                now[out] = taken[0]
                continue
            made = tuple([self._new() for _ in instruction.outs])
            now.update(zip(instruction.outs, made, strict=True))
            step = _Step(call, taken, made, type(out) is int, node)
            step.key = self._key(step)
            step.assigns = self._assigns(node)
            self._steps.append(step)
        outputs = [now[slot] for slot in code.outputs]
        return inputs, outputs, [(variable, now[slot]) for variable, slot in code.stores]

    def _dims(self, value: int) -> Dims:
        """The shape of a value of the program; of a reference, that of the variable."""
        variable = self._access.variable_of.get(value)
        return self._infos[value].dims if variable is None else variable.attrs["shape"]._dims

    def _key(self, step: _Step) -> Any:
        """What steps must have in common to be one; None for one that stays alone."""
        node, name = step.node, step.node.op_def.name
        if not step.single or name not in _ARITHMETIC:
            return None
        dims = self._dims((*node.outputs, *node.inputs)[0])
        if not is_fully_defined(dims):
            return None
        types = tuple([self._infos[v].dtype.base_dtype for v in node.inputs])
        dtype = types[-1]
        if (
            dtype.as_numpy_dtype not in _TYPES
            or (num_elements(dims) or 0) * dtype.size > _MOST_BYTES
        ):
            return None
        if name == "RealDiv" and not dtype.is_floating:
            return None  # whose error names the operation that divides by zero
        operands: list[Any] = []
        for taken, value in zip(step.args, node.inputs, strict=True):
            if self._dims(value) == dims and taken not in self._constants:
                operands.append("row")
            elif self._dims(value) in ((), dims):
                operands.append(taken)  # one for all of them
            else:
                return None
        return (name, dims, types, *operands) if "row" in operands else None

    def _assigns(self, node: Node) -> bool:
        """True for an assignment that cannot fail: the variable just has the value."""
        if node.op_def.name not in _ASSIGNS:
            return False
        dims = self._dims(node.inputs[1])
        return is_fully_defined(dims) and dims == self._dims(node.inputs[0])

    def _find_heights(self) -> None:
        maker = {value: step for step in self._steps for value in step.outs}
        for step in reversed(self._steps):
            for value in step.args:
                if value in maker:
                    maker[value].height = max(maker[value].height, step.height + 1)

    # Writing it anew ------------------------------------------------------------------------

    def _emit(self, call: Any, args: tuple[int, ...], node: Node) -> int:
        value = self._new()
        self._emitted.append(_Step(call, args, (value,), True, node))
        return value

    def _emit_single(self, step: _Step) -> None:
        if step.assigns and step.args[-1] in self._row_of:
            self._row_of[step.outs[0]] = self._row_of[step.args[-1]]
            return
        self._bring_out(step.args)
        self._emitted.append(step)
        self._there.update(step.outs)

    def _bring_out(self, values: Iterable[int]) -> None:
        """Takes values out of the stacks in which alone they are."""
        for value in values:
            if value not in self._there:
                stack, row = self._row_of[value]
                node = self._emitted[-1].node
                take = itemgetter((row, ...))
                self._emitted.append(_Step(take, (stack,), (value,), True, node))
                self._there.add(value)

    def _emit_group(self, steps: list[_Step]) -> None:
        first = steps[0]
        _, _, _, *operands = first.key
        leading = operands.index("row")
        steps = sorted(steps, key=lambda s: self._row_of.get(s.args[leading], (0, s.args[leading])))
        rows = tuple([step.outs[0] for step in steps])
        args = []
        for position, operand in enumerate(operands):
            taken = tuple([step.args[position] for step in steps])
            if operand == "row":
                args.append(self._stack(taken, first.node))
            elif first.node.op_def.name in _UPDATES:
                args.append(self._repeated(operand, len(steps)))
            else:
                self._bring_out(taken[:1])
                args.append(taken[0])
        call = interpreted(first.node, self._device)
        self._note(self._emit(call, tuple(args), first.node), rows)

    def _repeated(self, constant: int, times: int) -> int:
        """A constant for each of some updates: they take no value of another shape than theirs."""
        value = self._new()
        content = np.asarray(self._constants[constant])
        self._constants[value] = np.broadcast_to(content, (times, *content.shape))
        return value

    def _note(self, stack: int, values: tuple[int, ...]) -> None:
        self._rows[stack] = values
        self._stack_of[values] = stack
        for row, value in enumerate(values):
            self._row_of[value] = (stack, row)

    def _stack(self, values: tuple[int, ...], node: Node) -> int:
        """The stack of ``values``, made where there is none."""
        stack = self._stack_of.get(values)
        if stack is not None:
            return stack
        places = [self._row_of[value] for value in values if value in self._row_of]
        if all(value in self._loads for value in values):
            stack = self._new()
            self._packs[stack] = tuple([self._loads[value][0] for value in values])
        elif len(places) == len(values) and len({source for source, _ in places}) == 1:
            index = np.array([row for _, row in places])
            stack = self._emit(_take(index), (places[0][0],), node)
        else:
            self._bring_out(values)
            stack = self._emit(_together, values, node)
        self._stack_of[values] = stack
        return stack

    # Slots ----------------------------------------------------------------------------------

    def _allocate(
        self,
        result: StackedCode,
        inputs: Sequence[int],
        outputs: Sequence[int],
        stores: Sequence[tuple[Operation, int]],
    ) -> None:
        """Gives values their slots; a slot is used again when its value is spent."""
        code = result.code
        template: list[Any] = [None]
        slot_of: dict[int, int] = {}

        def pinned(value: int, content: Any = None) -> int:
            if value not in slot_of:
                slot_of[value] = len(template)
                template.append(content)
            return slot_of[value]

        taken = {value for step in self._emitted for value in step.args}
        last = {*outputs, *(v for _, v in stores), *(v for _, v in result.stores)}
        for value, content in self._constants.items():
            if value in taken or value in last:
                pinned(value, content)
        code.inputs = [pinned(value) for value in inputs]
        for value, (variable, node) in self._loads.items():
            if value in taken or value in last:
                code.loads.append((variable, pinned(value), node))
        result.loads = [(variables, pinned(stack)) for stack, variables in self._packs.items()]
        final: dict[int, int] = {}
        for index, step in enumerate(self._emitted):
            for value in (*step.args, *step.outs):
                final[value] = index
        keep = last | set(slot_of)
        free: list[int] = []
        for index, step in enumerate(self._emitted):
            args = tuple([slot_of[value] for value in step.args])
            for value in step.outs:
                if free:
                    slot_of[value] = free.pop()
                else:
                    pinned(value)
            outs = tuple([slot_of[value] for value in step.outs])
            out: Any = outs[0] if step.single else outs
            code.instructions.append(Instruction(step.call, args, out, step.node))
            for value in dict.fromkeys((*step.args, *step.outs)):
                if final[value] == index and value not in keep:
                    free.append(slot_of[value])
        code.template = template
        code.outputs = [slot_of[value] for value in outputs]
        code.stores = [(variable, slot_of[value]) for variable, value in stores]
        result.stores = [(variables, slot_of[stack]) for variables, stack in result.stores]


def _together(*rows: Any) -> np.ndarray:
    return np.array(rows)


def _take(index: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda stack: stack[index]
