"""Clustering: cutting a program into segments that compile whole, and host segments between.

Each node gets the earliest *phase* that its inputs, control edges and state allow; even phases
compile, odd ones run on the host. A phase is convex by construction: nothing leaves it and
comes back. A whole training step is usually one compiled segment. A constant belongs to every
segment that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runnel.graph import dtypes
from runnel.graph.operation import Operation
from runnel.passes.program import Node, Program
from runnel.passes.state_access import StateAccess

_HOST_TYPES = frozenset({dtypes.string, dtypes.variant, dtypes.resource})
# Strings among the data of these only explain a failure, which the interpreter does.
_EXPLAINING = frozenset({"Assert"})
_MAX_SPECIALIZED_RANK = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a program that runs as one unit.

    ``inputs`` come from feeds and earlier segments, ``outputs`` go to later ones and to the
    fetches. ``known`` are the values that a compiled version must know while it is built, such
    as the shape that a reshape takes; ``specialized`` are those of them that are inputs: the
    version is built for their *value*.
    """

    nodes: tuple[Node, ...]
    compilable: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    known: frozenset[int]
    specialized: frozenset[int]


def cluster(program: Program, state: StateAccess, device: str) -> list[Segment]:
    """The segments of ``program`` in the order in which they run."""
    known = _KnownValues(program)
    phase_of_value: dict[int, int] = dict.fromkeys(program.feeds.values(), 0)
    phase_of_node: dict[Node, int] = {}
    last_write: dict[Operation, int] = {}
    last_read: dict[Operation, int] = {}
    last_effect = 0
    phases: dict[int, list[Node]] = {}
    for node in program.nodes:
        host = not known.visit(node, state, device)
        if known.is_constant(node):
            phase_of_node[node] = 0
            continue
        earliest = 0
        for value in node.inputs:
            phase = phase_of_value.get(value, 0)
            if phase > earliest:
                earliest = phase
        for control in node.control:
            earliest = max(earliest, phase_of_node[control])
        reads: list[Operation] = []
        writes: list[Operation] = []
        if node.op_def.stateful or not state.handles.isdisjoint(node.inputs):
            reads, writes = state.reads(node), state.writes(node)
            for variable in (*reads, *writes):
                earliest = max(earliest, last_write.get(variable, 0))
            for variable in writes:
                earliest = max(earliest, last_read.get(variable, 0))
        # What the outside world sees (prints, Python functions) happens in the program's order.
        effect = host and node.op_def.stateful and not (reads or writes)
        if effect:
            earliest = max(earliest, last_effect)
        phase = earliest if earliest % 2 == host else earliest + 1
        if effect:
            last_effect = phase
        for variable in reads:
            last_read[variable] = max(phase, last_read.get(variable, 0))
        for variable in writes:
            last_write[variable] = phase
        phase_of_node[node] = phase
        for value in node.outputs:
            phase_of_value[value] = phase
        phases.setdefault(phase, []).append(node)
    _place_constants(program, phases, known.constants)
    return _segments(program, phases, state, known)


def _place_constants(
    program: Program, phases: dict[int, list[Node]], constants: dict[int, Node]
) -> None:
    """Adds to each phase the constants that it uses; to the host's first those fetched."""
    used = {
        phase: dict.fromkeys(v for node in nodes for v in node.inputs if v in constants)
        for phase, nodes in phases.items()
    }
    fetched = [value for value in program.fetches if value in constants]
    if fetched:
        used.setdefault(1, {}).update(dict.fromkeys(fetched))
    for phase, values in used.items():
        phases[phase] = [*(constants[value] for value in values), *phases.get(phase, ())]


def _segments(
    program: Program, phases: dict[int, list[Node]], state: StateAccess, known: _KnownValues
) -> list[Segment]:
    last_phase_using: dict[int, int] = {}
    for phase, nodes in phases.items():
        for node in nodes:
            for value in node.inputs:
                last_phase_using[value] = max(phase, last_phase_using.get(value, -1))
    beyond = len(phases) * 2 + 2
    for value in program.fetches:
        last_phase_using[value] = beyond
    segments = []
    fetched = set(program.fetches)
    for phase in sorted(phases):
        nodes = phases[phase]
        defined = {value for node in nodes for value in node.outputs}
        inputs = dict.fromkeys(
            value
            for node in nodes
            for value in node.inputs
            if value not in defined and value not in state.handles
        )
        outputs = [
            value
            for node in nodes
            for value in node.outputs
            if last_phase_using.get(value, -1) > phase
            and value not in state.handles
            and (value not in known.constants or (phase == 1 and value in fetched))
        ]
        compilable = phase % 2 == 0
        needed = known.needed(nodes) if compilable else frozenset()
        segments.append(
            Segment(
                tuple(nodes),
                compilable,
                tuple(inputs),
                tuple(outputs),
                needed,
                needed.intersection(inputs),
            )
        )
    return segments


class _KnownValues:
    """Values that a compiled segment can know when it is built.

    Constants and what derives from shapes are known, since a compiled segment is built for
    concrete shapes. Small integers from outside can be: the segment is then built for that
    value.
    """

    def __init__(self, program: Program) -> None:
        self._infos = program.infos
        self.constants: dict[int, Node] = {}
        self._known: set[int] = {
            value for value in program.feeds.values() if self._can_specialize(value)
        }

    def _can_specialize(self, value: int) -> bool:
        info = self._infos[value]
        small = info.dims is not None and len(info.dims) <= _MAX_SPECIALIZED_RANK
        return small and (info.dtype.is_integer or info.dtype.is_bool)

    def is_constant(self, node: Node) -> bool:
        """True for a constant that has been visited."""
        return bool(node.outputs) and node.outputs[0] in self.constants

    def visit(self, node: Node, state: StateAccess, device: str) -> bool:
        """Notes what ``node`` makes known; returns whether it can be compiled."""
        op_def = node.op_def
        if op_def.variable:
            return True
        if op_def.name == "Const" and not node.control:
            self.constants[node.outputs[0]] = node
            self._known.add(node.outputs[0])
            return True
        compilable = (
            op_def.can_compile(device, node.dtype)
            and not op_def.allows_uninitialized
            and not self._has_host_types(node, state)
        )
        if compilable:
            for position in self._flat_static_positions(node):
                if node.inputs[position] not in self._known:
                    compilable = False
        if not compilable:
            self._known.update(v for v in node.outputs if self._can_specialize(v))
        elif op_def.known_from_shapes or (
            not op_def.stateful and self._known.issuperset(node.inputs)
        ):
            self._known.update(node.outputs)
        return compilable

    @staticmethod
    def _flat_static_positions(node: Node) -> list[int]:
        static = node.op_def.static_inputs and node.op_def.static_inputs_of(node.op)
        if not static:
            return []
        positions: list[int] = []
        flat = 0
        for index, item in enumerate(node.op_def.group(node.inputs, node.attrs)):
            width = len(item) if isinstance(item, list) else 1
            if index in static:
                positions += range(flat, flat + width)
            flat += width
        return positions

    def _has_host_types(self, node: Node, state: StateAccess) -> bool:
        infos = self._infos
        allowed = self.constants if node.op_def.name in _EXPLAINING else ()
        return any(
            infos[value].dtype.base_dtype in _HOST_TYPES
            and value not in state.variable_of
            and value not in allowed
            for value in (*node.inputs, *node.outputs)
        )

    def needed(self, nodes: list[Node]) -> frozenset[int]:
        """The values that must be known to build a compiled segment of ``nodes``."""
        needed = {
            node.inputs[position]
            for node in nodes
            for position in self._flat_static_positions(node)
        }
        if needed:
            for node in reversed(nodes):
                if not needed.isdisjoint(node.outputs) and not node.op_def.known_from_shapes:
                    needed.update(node.inputs)
        return frozenset(needed)
