"""Clustering: cuts a program into segments that compile whole, and host segments between.

Each node gets the earliest *phase* that its inputs, control edges and state allow; even phases
compile, odd ones run on the host. Several devices take turns, with two phases each. A phase is
convex by construction: nothing leaves it and comes back. A whole training step is usually one
compiled segment, or one for each device and direction. A constant belongs to every segment that
uses it.

A failed step should change nothing. So an update moves behind the last phase in which something can
fail, unless a node before that needs it (``passes.clusters.deferred_writes``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.clusters.deferred_writes import deferred_writes
from runnel.passes.clusters.known_values import KnownValues
from runnel.passes.clusters.mapped_state import Blocks, kept_on_host
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.step_resources import StepResources

Group = tuple[int, ...]
Part = tuple[int, Group]
"""A phase, and a group of those nodes in it that compile."""
Parts = dict[Part, list[Node]]


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
    device: LogicalDevice | None = None
    """Where it runs, in a step that was partitioned."""
    blocks: Blocks = field(default_factory=dict, compare=False)
    """What makes values for variables in mapped files some rows at a time."""


def cluster(
    program: Program,
    state: StateAccess,
    device: str,
    device_of: Mapping[Node, LogicalDevice] | None = None,
    fixed: Collection[int] | None = None,
    group_of: Mapping[Node, Group] | None = None,
) -> list[Segment]:
    """The segments of ``program`` in the order in which they run.

    ``device`` is the kind of the only device; ``device_of`` says where each node is, if there are
    several (``passes.placement.partition``). ``fixed`` are, for a program inside a loop, the values
    from outside for which a segment may be built (``KnownValues``). Only nodes of one group
    (``group_of``) are compiled together; no group needs a later one.
    """
    resources = StepResources(program)
    kept, blocks = kept_on_host(program, state, device_of)
    on_host = resources.roots(program.fetches)  # which another program goes on to use
    while True:
        known = KnownValues(program, resources, on_host, fixed)
        phases, devices = _phases(program, state, device, device_of, known, {}, kept)
        not_before = deferred_writes(program, state, phases, 2 * len(devices) or 2)
        if not_before:
            known = KnownValues(program, resources, on_host, fixed)
            phases, _ = _phases(program, state, device, device_of, known, not_before, kept)
        parts = _parts(phases, group_of)
        scattered = _scattered(resources, parts) - on_host
        if not scattered:
            break
        on_host |= scattered  # and what touches them with them
    _place_reads(program, parts, state, len(devices) or 1)
    _place_constants(program, parts, known.constants)
    return _segments(program, parts, state, known, devices, blocks)


def _parts(phases: dict[int, list[Node]], group_of: Mapping[Node, Group] | None) -> Parts:
    """The nodes of each phase, those that compile by group."""
    parts: Parts = {}
    for phase, nodes in phases.items():
        for node in nodes:
            group = group_of[node] if group_of is not None and phase % 2 == 0 else ()
            parts.setdefault((phase, group), []).append(node)
    return parts


def _scattered(resources: StepResources, parts: Parts) -> set[int]:
    """Stacks and arrays that not one compiled segment alone touches."""
    part_of = {node: part for part, nodes in parts.items() for node in nodes}
    found = set()
    for handle, nodes in resources.touching.items():
        touched = {part_of[node] for node in nodes if node in part_of}
        if len(touched) > 1 or any(phase % 2 for phase, _ in touched):
            found.add(handle)
    return found


def _phases(
    program: Program,
    state: StateAccess,
    device: str,
    device_of: Mapping[Node, LogicalDevice] | None,
    known: KnownValues,
    not_before: Mapping[Node, int],
    kept: Collection[Node],
) -> tuple[dict[int, list[Node]], list[LogicalDevice]]:
    """The nodes of each phase, constants apart; and the devices that take turns.

    ``not_before`` has the first phase in which some nodes may be; ``kept`` are left to the host.
    """
    devices = list(dict.fromkeys(device_of.values())) if device_of else []
    turn_of = {place: 2 * turn for turn, place in enumerate(devices)}
    turns = 2 * len(devices) or 2
    turn = 0
    phase_of_value: dict[int, int] = dict.fromkeys(program.feeds.values(), 0)
    phase_of_node: dict[Node, int] = {}
    last_write: dict[Operation, int] = {}
    last_read: dict[Operation, int] = {}
    last_effect = 0
    phases: dict[int, list[Node]] = {}
    for node in program.nodes:
        if device_of:
            device, turn = device_of[node].device_type, turn_of[device_of[node]]
        if node in kept:
            host = True
            known.leave(node)
        else:
            host = state.stays_on_host(node) or not known.visit(node, state, device)
        if known.is_constant(node):
            phase_of_node[node] = 0
            continue
        earliest = not_before.get(node, 0)
        for value in node.inputs:
            phase = phase_of_value.get(value, 0)
            if phase > earliest:
                earliest = phase
        for control in node.control:
            earliest = max(earliest, phase_of_node[control])
        reads: list[Operation] = []
        writes: list[Operation] = []
        if state.touches(node):
            reads, writes = state.reads(node), state.writes(node)
            for variable in (*reads, *writes):
                earliest = max(earliest, last_write.get(variable, 0))
            for variable in writes:
                earliest = max(earliest, last_read.get(variable, 0))
        # What the outside world sees (prints, Python functions) happens in the program's order.
        effect = host and node.op_def.stateful
        if "touched" not in node.attrs:  # a loop or conditional may do both
            effect = effect and not (reads or writes)
        if effect:
            earliest = max(earliest, last_effect)
        phase = earliest + (turn + host - earliest) % turns
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
    return phases, devices


def _place_reads(program: Program, parts: Parts, state: StateAccess, devices: int) -> None:
    """Has each part of a read's device read the variable itself, where it finds the same version.

    A value that goes from part to part is held meanwhile, so a later part could not update rows of
    the variable in place. And what a part reads of a variable that it updates is what it finds
    when it has the right to write.
    """
    place = {node: i for i, node in enumerate(program.nodes)}
    part_of = {node: part for part, nodes in parts.items() for node in nodes}
    writes: dict[Operation, list[Node]] = {}
    for node in program.nodes:
        if node in part_of and state.touches(node):
            for variable in state.writes(node):
                writes.setdefault(variable, []).append(node)
    reads = {
        node.outputs[0]: node
        for node in part_of
        if node.op_def.name == "Identity" and node.inputs[0] in state.handles and not node.control
    }
    users: dict[int, set[Part]] = {}
    needed = set(program.fetches)
    for part, nodes in parts.items():
        for node in nodes:
            needed.update(value for other in node.control for value in other.outputs)
            for value in node.inputs:
                if value in reads:
                    users.setdefault(value, set()).add(part)
    copies: dict[Part, list[Node]] = {}
    needless: set[Node] = set()
    for value, read in reads.items():
        own = part_of[read]
        others = users.get(value, set()) - {own}
        if others:
            later = {
                part_of[node]
                for variable in state.reads(read)
                for node in writes.get(variable, ())
                if place[node] > place[read]
            }
            last = min((phase for phase, _ in later), default=None)
            for part in others:
                # Another part of the phase of a write may need what that gives, and come after it.
                is_before = last is None or part[0] < last or (part[0] == last and part in later)
                if is_before and part[0] // 2 % devices == own[0] // 2 % devices:
                    copies.setdefault(part, []).append(read)
                    users[value].discard(part)
        if not users.get(value) and value not in needed:
            needless.add(read)
    for part, nodes in list(parts.items()):
        kept = [node for node in nodes if node not in needless] if needless else nodes
        kept = [*reversed(copies.get(part, ())), *kept]
        if kept:
            parts[part] = kept
        else:
            del parts[part]


def _place_constants(program: Program, parts: Parts, constants: dict[int, Node]) -> None:
    """Adds to each part the constants that it uses; to the host's first those fetched."""
    used = {
        part: dict.fromkeys(v for node in nodes for v in node.inputs if v in constants)
        for part, nodes in parts.items()
    }
    fetched = [value for value in program.fetches if value in constants]
    if fetched:
        used.setdefault((1, ()), {}).update(dict.fromkeys(fetched))
    for part, values in used.items():
        parts[part] = [*(constants[value] for value in values), *parts.get(part, ())]


def _segments(
    program: Program,
    parts: Parts,
    state: StateAccess,
    known: KnownValues,
    devices: list[LogicalDevice],
    blocks: Blocks,
) -> list[Segment]:
    users: dict[int, set[Part | None]] = {}
    for part, nodes in parts.items():
        own = {value for node in nodes for value in node.outputs}
        for node in nodes:
            for value in node.inputs:
                if value not in own:
                    users.setdefault(value, set()).add(part)
    for value in program.fetches:
        users.setdefault(value, set()).add(None)
    segments = []
    fetched = set(program.fetches)
    for part in sorted(parts):
        phase, nodes = part[0], parts[part]
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
            if users.get(value)
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
                devices[phase // 2 % len(devices)] if devices else None,
                {node: blocks[node] for node in nodes if node in blocks} if blocks else {},
            )
        )
    return segments
