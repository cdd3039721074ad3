"""Instructions for a segment: one call for each node, over numbered slots.

The interpreter runs them (NumPy, at once), and the compiler traces them (jax.numpy). The slots also
carry the values of variables: a read takes the slot of the newest value, an update defines a new
one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph_scopes import mapped_folder
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.graph.shapes import Dims, compatible_dims, format_dims, is_fully_defined
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.mapped_state import BY_ROWS, PARTS
from runnel.passes.program.kernel_call import interpreted
from runnel.passes.program.program import Node, Program, ValueInfo
from runnel.passes.program.state_access import StateAccess, requires_shape
from runnel.passes.structure.counters import counters_of
from runnel.passes.structure.structured import Loop, structure_of, touched_by
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.block_calls import block_call, part_call, require_memory
from runnel.runtime.interpret.structured_code import StructuredCall

if TYPE_CHECKING:
    from runnel.runtime.interpret.stretch import Stretches


class Instruction(NamedTuple):
    """``slots[out] = call(*slots[args])``; ``out`` is a slot, or a tuple if there is not just one.

    For the compiler ``call`` is a :class:`TracedCall`.
    """

    call: Any
    args: tuple[int, ...]
    out: Any
    node: Node

    @property
    def outs(self) -> tuple[int, ...]:
        """The slots that it gives values."""
        return (self.out,) if type(self.out) is int else self.out


@dataclass(slots=True)
class Code:
    """What to run for a segment, and where its values enter and leave the slots."""

    instructions: list[Instruction] = field(default_factory=list)
    template: list[Any] = field(default_factory=list)
    """Initial slots: constants in their places, None elsewhere."""
    inputs: list[int] = field(default_factory=list)
    """A slot for each of the segment's inputs."""
    outputs: list[int] = field(default_factory=list)
    loads: list[tuple[Operation, int, Node | None]] = field(default_factory=list)
    """(variable, slot, the node that needs it initialised, or None if none does)."""
    stores: list[tuple[Operation, int]] = field(default_factory=list)
    replaced: set[Operation] = field(default_factory=set)
    """Variables with an update that does not gate itself (see ``OpDef.self_gated``)."""
    reshaped: set[Operation] = field(default_factory=set)
    """Variables that may be given a value of another shape than the one they hold."""
    structured: set[Operation] = field(default_factory=set)
    """Variables that are updated inside a loop or a conditional."""
    streams: list[tuple[Operation, int, int]] = field(default_factory=list)
    """(random op, slot of its stream, slot of the counters that it advanced by)."""
    infos: list[ValueInfo] = field(default_factory=list)
    """What is known of the values of the nodes."""
    watch: int | None = None
    """The slot of what loops look at: the step's context, or compiled the number of the run."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The state that a code takes after its inputs and gives after its outputs, as values."""

    reads: list[tuple[Operation, Node | None]]
    """Variables, each with the node that needs it initialised, if one does."""
    writes: list[Operation]
    random: list[Operation]
    """Random ops: the code takes the streams, and says by how much each has moved."""


def pass_state(code: Code) -> Passed:
    """Makes ``code`` a function of values: it takes state, and gives what becomes of it."""
    passed = Passed(
        [(variable, node) for variable, _, node in code.loads],
        [variable for variable, _ in code.stores],
        [op for op, _, _ in code.streams],
    )
    code.inputs += [slot for _, slot, _ in code.loads]
    code.inputs += [stream for _, stream, _ in code.streams]
    code.outputs += [slot for _, slot in code.stores]
    code.outputs += [drawn for _, _, drawn in code.streams]
    code.loads, code.stores, code.streams = [], [], []
    return passed


class _Lowering:
    """Allocates slots, reusing those whose value is dead, and emits instructions."""

    def __init__(
        self,
        program: Program,
        segment: Segment,
        state: StateAccess,
        device: str,
        tier: str,
        stretches: Stretches | None,
    ) -> None:
        self.program = program
        self.stretches = stretches
        self.segment = segment
        self.state = state
        self.device = device
        self.tier = tier
        # Slot 0 stays None: an overwritten reference.
        self.code = Code(template=[None], infos=program.infos)
        self.slot_of: dict[int, int] = {}
        self.state_slot: dict[Operation, int] = {}
        self.load_index: dict[Operation, int] = {}
        self.written: dict[Operation, None] = {}
        self.free: list[int] = []
        self.pinned: set[int] = set()
        self.last_use = self._last_uses()
        self.mapped: dict[int, Operation] = {}
        """References to variables in mapped files, and the values of reads of them."""
        if tier == INTERPRETED:
            self.mapped = {v: op for v, op in state.variable_of.items() if mapped_folder(op)}

    def _last_uses(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for index, node in enumerate(self.segment.nodes):
            for value in node.inputs:
                last[value] = index
        forever = len(self.segment.nodes)
        for value in self.segment.outputs:
            last[value] = forever
        return last

    def _new_slot(self, initial: Any = None) -> int:
        if self.free and initial is None:
            return self.free.pop()
        self.code.template.append(initial)
        return len(self.code.template) - 1

    def run(self) -> Code:
        code = self.code
        for value in self.segment.inputs:
            slot = self._new_slot()
            self.slot_of[value] = slot
            code.inputs.append(slot)
        self.pinned.update(code.inputs)
        for index, node in enumerate(self.segment.nodes):
            if not node.op_def.variable:
                self._lower(node)
            for value in (*node.inputs, *node.outputs):
                if self.last_use.get(value, index) == index:
                    self._release(value)
        code.outputs = [self.slot_of[value] for value in self.segment.outputs]
        code.stores = [(variable, self.state_slot[variable]) for variable in self.written]
        return code

    def _release(self, value: int) -> None:
        """Gives the slot of a value that is not used again to a later one."""
        slot = self.slot_of.get(value)
        if slot is None or slot in self.pinned or value in self.state.variable_of:
            return
        if self.code.template[slot] is None:  # a constant stays in its place
            self.free.append(slot)
            del self.slot_of[value]

    def _lower(self, node: Node) -> None:
        op_def = node.op_def
        if op_def.name == "Const":
            self.slot_of[node.outputs[0]] = self._new_slot(node.attrs["value"])
            return
        if op_def.name == "Identity" and node.inputs[0] in self.state.handles:
            # Reading a variable is knowing where its value is.
            variable = self.state.variable_of[node.inputs[0]]
            self.slot_of[node.outputs[0]] = self._state(variable, node)
            self._note_mapped(node, variable)
            return
        if structure_of(node) is not None:
            self._lower_structured(node)
            return
        args = [self._argument(node, position, value) for position, value in enumerate(node.inputs)]
        call = self._call(node)
        out: list[int] = []
        for position in (*op_def.updates, *op_def.overwrites):
            variable = self.state.variable_of[node.inputs[position]]
            slot = self._pinned_slot()  # states live to the end of the segment
            if not op_def.self_gated:
                self.code.replaced.add(variable)
            if position in op_def.overwrites and not self._keeps_shape(node, variable):
                self.code.reshaped.add(variable)
            self.state_slot[variable] = slot
            self.written[variable] = None
            out.append(slot)
        for value in node.outputs:
            if value in self.state.variable_of:
                # The value that the update left, whatever happens to the variable later.
                self.slot_of[value] = self.state_slot[self.state.variable_of[value]]
            else:
                slot = self._new_slot()
                self.slot_of[value] = slot
                out.append(slot)
        if op_def.random is not None:
            stream, drawn = self._pinned_slot(), self._pinned_slot()
            args.append(stream)
            out.append(drawn)
            self.code.streams.append((node.op, stream, drawn))
        self._emit(call, args, out, node)

    def _emit(self, call: Any, args: list[int], outs: list[int], node: Node) -> None:
        out = outs[0] if len(outs) == 1 else tuple(outs)
        self.code.instructions.append(Instruction(call, tuple(args), out, node))

    def _lower_structured(self, node: Node) -> None:
        """A loop or conditional takes the state that it touches, and gives what it writes."""
        code, touched = self.code, touched_by(node)
        args = [self._argument(node, position, value) for position, value in enumerate(node.inputs)]
        args += [self._maybe_state(variable) for variable in touched.variables]
        out: list[int] = []
        for variable in touched.writes:
            slot = self._pinned_slot()
            self.state_slot[variable] = slot
            self.written[variable] = None
            code.replaced.add(variable)
            code.structured.add(variable)
            out.append(slot)
        code.reshaped.update(touched.reshaped)
        for value in node.outputs:
            slot = self.slot_of[value] = self._new_slot()
            out.append(slot)
        for op in touched.random:
            stream, drawn = self._pinned_slot(), self._pinned_slot()
            args.append(stream)
            out.append(drawn)
            code.streams.append((op, stream, drawn))
        call: Any
        if self.tier == COMPILED:
            outputs = verification.declared(node, self.program.infos)
            call = TracedCall(node, self.device, None, False, outputs)
            self._lower_inside(call, node)
        else:
            call = StructuredCall(node, self.program.infos, self.device, self.stretches)
        if code.watch is None:
            code.watch = self._pinned_slot()
        if self.tier != COMPILED:
            args.insert(0, code.watch)
        self._emit(call, args, out, node)

    def _lower_inside(self, call: TracedCall, node: Node) -> None:
        """The codes of the programs inside; a loop's condition also gives its counters' limits."""
        structure = structure_of(node)
        assert structure is not None
        limits: tuple[int, ...] = ()
        if isinstance(structure, Loop):
            call.counters = counters_of(structure)
            limits = tuple(counter.limit for counter in call.counters.bounds)
        for program in structure.programs:
            given = tuple(program.feeds.values())
            outputs = (*(value for value in program.fetches if value is not None), *limits)
            nodes, known = tuple(program.nodes), self.segment.known
            segment = Segment(nodes, True, given, outputs, known, frozenset())
            access = StateAccess(program)
            call.inside.append(lower(program, segment, access, self.device, COMPILED))
            limits = ()

    def _maybe_state(self, variable: Operation) -> int:
        """The slot of a variable that a structured node touches, which may have no value yet."""
        slot = self.state_slot.get(variable)
        if slot is None:
            slot = self.state_slot[variable] = self._pinned_slot()
            self.load_index[variable] = len(self.code.loads)
            self.code.loads.append((variable, slot, None))
        return slot

    def _pinned_slot(self) -> int:
        """A slot that is never reused."""
        self.code.template.append(None)
        slot = len(self.code.template) - 1
        self.pinned.add(slot)
        return slot

    def _argument(self, node: Node, position: int, value: int) -> int:
        if position in node.op_def.overwrites:
            return 0
        is_update = position in node.op_def.updates
        if value in self.state.handles or is_update:
            return self._state(self.state.variable_of[value], node)
        return self.slot_of[value]

    def _state(self, variable: Operation, node: Node) -> int:
        needs = None if node.op_def.allows_uninitialized else node
        slot = self.state_slot.get(variable)
        if slot is None:
            slot = self.state_slot[variable] = self._pinned_slot()
            self.load_index[variable] = len(self.code.loads)
            self.code.loads.append((variable, slot, needs))
        elif needs is not None and variable in self.load_index and variable not in self.written:
            index = self.load_index[variable]
            if self.code.loads[index][2] is None:
                self.code.loads[index] = (variable, slot, needs)
        return slot

    # Calls ----------------------------------------------------------------------------------

    def _call(self, node: Node) -> Any:
        if self.tier == COMPILED:
            must_know = not self.segment.known.isdisjoint(node.outputs)
            outputs = verification.declared(node, self.program.infos)
            return TracedCall(node, self.device, self._assigned_dims(node), must_know, outputs)
        call = interpreted(node, self.device)
        blocks = self.segment.blocks.get(node)
        if blocks and any(blocks):
            return block_call(node, call, blocks)
        dims = self._assigned_dims(node)
        if dims is not None:
            call = check_assigned(call, dims)
        if variable := self._taken_whole(node):
            copy = part_call if node.op_def.name in PARTS else require_memory
            call = copy(call, variable)
        return verification.verified(call, node, self.program.infos)

    def _note_mapped(self, node: Node, variable: Operation) -> None:
        if mapped_folder(variable):
            self.mapped.update(dict.fromkeys(node.outputs, variable))

    def _taken_whole(self, node: Node) -> Operation | None:
        """A variable in a mapped file of which ``node`` may need all in memory."""
        if not self.mapped:
            return None
        found = next((self.mapped[v] for v in node.inputs if v in self.mapped), None)
        if found is not None and node.op_def.name == "ReadVariableOp":
            self._note_mapped(node, found)
        by_rows = node.op_def.name in BY_ROWS or node.op_def.row_kernel or node.op_def.overwrites
        return None if by_rows else found

    def _assigned_dims(self, node: Node) -> Dims:
        """The shape that an assignment must respect, if any."""
        if not node.op_def.overwrites or not requires_shape(node):
            return None
        variable = self.state.variable_of[node.inputs[node.op_def.overwrites[0]]]
        return variable.attrs["shape"]._dims

    def _keeps_shape(self, node: Node, variable: Operation) -> bool:
        """True when what ``node`` assigns is known to have the variable's declared shape."""
        declared = variable.attrs["shape"]._dims
        if not is_fully_defined(declared):
            return False
        if self._assigned_dims(node) is not None:
            return True
        infos = self.program.infos
        return any(
            infos[value].dims == declared
            for position, value in enumerate(node.inputs)
            if position not in node.op_def.overwrites
        )


def lower(
    program: Program,
    segment: Segment,
    state: StateAccess,
    device: str,
    tier: str,
    stretches: Stretches | None = None,
) -> Code:
    """The instructions of ``segment`` for a tier.

    ``stretches`` makes what can be compiled inside an interpreted loop or conditional so.
    """
    return _Lowering(program, segment, state, device, tier, stretches).run()


def check_assigned(call: Callable[..., Any], dims: Dims) -> Callable[..., Any]:
    """``call`` with an error where what it assigns does not have the shape ``dims``."""

    def checked(*args: Any) -> Any:
        value = call(*args)
        require_assignable(np.shape(value), dims)
        return value

    return checked


def require_assignable(shape: tuple[int, ...], dims: Dims) -> None:
    """An error unless a value of ``shape`` may be assigned to a variable of shape ``dims``."""
    if not compatible_dims(shape, dims):
        raise InvalidArgumentError(
            None,
            None,
            f"A value of shape {format_dims(shape)} cannot be assigned to a variable of shape "
            f"{format_dims(dims)}; validate_shape=False allows it",
        )


class TracedCall:
    """What the compiler needs to trace a node; see ``runnel.runtime.compile.compiler``."""

    __slots__ = ("node", "device", "assigned_dims", "must_know", "outputs", "inside", "counters")

    def __init__(
        self,
        node: Node,
        device: str,
        assigned_dims: Dims,
        must_know: bool,
        outputs: list[ValueInfo],
    ) -> None:
        self.outputs = outputs
        self.node = node
        self.device = device
        self.assigned_dims = assigned_dims
        self.must_know = must_know
        """True when another node needs the value of this one while it is traced."""
        self.inside: list[Code] = []
        """The codes of the programs inside a structured node."""
        self.counters: Any = None
        """The counters of a loop."""
