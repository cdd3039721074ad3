"""Cuts a program into units, which a schedule starts.

A unit is one blocking operation, a region, or a segment (``passes.clusters.cluster``) of nodes that
wait for exactly the same of these, directly or through others. So a blocking operation holds back
only the nodes that need it, and the nodes after it still compile as a whole. Units cannot form a
circle, since the set of units that a node waits for only grows along edges.

A node that only waiting nodes need waits with them, unless it is seen outside the step. So it
becomes part of a larger segment: the variables that a training step reads belong to the segment
that uses and updates them. Variables and constants belong to every segment that uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.clusters.cluster import Segment, cluster
from runnel.passes.program.program import Node, Program, copied, is_constant
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import structure_of

Group = int
"""The blocking operations that a node waits for, as bits of a number."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A segment, or a node that may block; ``needs`` are the units (by place) to run before."""

    content: Node | Segment
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    needs: tuple[int, ...]
    device: LogicalDevice | None
    """Where it runs, if there are several devices."""


def cut(
    program: Program,
    state: StateAccess,
    device: str,
    device_of: Mapping[Node, LogicalDevice] | None = None,
) -> list[Unit]:
    """The units of ``program``, in the order in which they run when nothing blocks.

    ``device`` and ``device_of`` are those of :func:`runnel.passes.clusters.cluster.cluster`.
    """
    if not any(node.op_def.blocking for node in program.nodes):
        segments = cluster(program, state, device, device_of)
        if len(segments) <= 1:
            return [_unit(segment, (), segment.device) for segment in segments]
    return _Cutting(program, state, device, device_of).run()


def _unit(content: Node | Segment, needs: tuple[int, ...], device: LogicalDevice | None) -> Unit:
    return Unit(content, content.inputs, content.outputs, needs, device)


class _Cutting:
    def __init__(
        self,
        program: Program,
        state: StateAccess,
        device: str,
        device_of: Mapping[Node, LogicalDevice] | None = None,
    ) -> None:
        self._device_of = device_of
        self._program = program
        self._state = state
        self._device = device
        self._producers = program.producers()
        self._fetched = set(program.fetches)
        self._place = {node: i for i, node in enumerate(program.nodes)}
        self._before: dict[Node, list[Node]] = {}
        """What must have run before each node."""
        self._next_writes: dict[Node, list[Node]] = {}
        """For a node that reads variables: the next node that replaces one of them."""
        self._group: dict[Node, Group] = {}
        self._copies: dict[Group, dict[Node, None]] = {}
        """Reads of variables that further groups make for themselves."""
        self._consumers: dict[int, list[Node]] = {}

    def run(self) -> list[Unit]:
        self._find_order()
        self._find_groups()
        self._let_wait()
        groups: dict[Group, list[Node]] = {}
        for node, group in self._group.items():
            if not node.op_def.blocking:
                groups.setdefault(group, []).append(node)
        for node in self._group:
            for value in node.inputs:
                self._consumers.setdefault(value, []).append(node)
        made: list[tuple[Group, list[Node], Segment]] = []
        for group, nodes in groups.items():
            copies = self._copies.get(group, {})
            members = sorted([*nodes, *copies], key=self._place.__getitem__)
            for held, segment in self._segments(members, set(nodes), group):
                made.append((group, held, segment))
        return self._connected(made)

    # Order ----------------------------------------------------------------------------------

    def _find_order(self) -> None:
        """Edges between nodes: data, control, and the order of effects on a variable."""
        state, producers = self._state, self._producers
        last_write: dict[Operation, Node] = {}
        readers: dict[Operation, list[Node]] = {}
        for node in self._program.nodes:
            before = [producers[v] for v in node.inputs if v in producers]
            before += node.control
            if node.op_def.stateful or not state.handles.isdisjoint(node.inputs):
                reads, writes = state.reads(node), state.writes(node)
                for variable in (*reads, *writes):
                    if variable in last_write:
                        before.append(last_write[variable])
                for variable in writes:
                    for reader in readers.pop(variable, ()):
                        if reader is not node:
                            before.append(reader)
                            self._next_writes.setdefault(reader, []).append(node)
                    last_write[variable] = node
                for variable in reads:
                    readers.setdefault(variable, []).append(node)
            self._before[node] = [
                other for other in before if not is_constant(other) and not other.op_def.variable
            ]

    def _find_groups(self) -> None:
        bit = 1
        waits: dict[Node, Group] = {}  # for those that come after a node
        for node in self._program.nodes:
            if is_constant(node) or node.op_def.variable:
                continue
            group = 0
            for other in self._before[node]:
                group |= waits[other]
            self._group[node] = waits[node] = group
            if node.op_def.blocking:
                waits[node] |= bit
                bit <<= 1

    # Waiting with others --------------------------------------------------------------------

    def _let_wait(self) -> None:
        users: dict[Node, list[Node]] = {}
        for node in self._group:
            for other in self._before[node]:
                users.setdefault(other, []).append(node)
        for node in reversed(self._group):
            wanted_by = users.get(node)
            if wanted_by is None or not self._may_wait(node):
                continue
            after = self._next_writes.get(node, ())
            wanted_by = [user for user in wanted_by if user not in after or self._uses(user, node)]
            own = self._group[node]
            groups = {own if u.op_def.blocking else self._group[u] for u in wanted_by} - {own}
            allowed = [g for g in groups if all(self._group[w] & g == g for w in after)]
            if not allowed:
                continue
            stays = [
                u for u in wanted_by if u.op_def.blocking or self._group[u] not in allowed
            ] or not self._fetched.isdisjoint(node.outputs)
            if not stays and len(allowed) == 1:
                self._group[node] = allowed[0]
            elif self._is_read(node) and not any(node in u.control for u in wanted_by):
                for group in allowed if stays else allowed[1:]:
                    self._copies.setdefault(group, {})[node] = None
                if not stays:
                    self._group[node] = allowed[0]

    def _may_wait(self, node: Node) -> bool:
        op_def = node.op_def
        if op_def.blocking or op_def.heavy or self._state.writes(node):
            return False
        if not self._fetched.isdisjoint(node.outputs):
            return self._is_read(node)
        return not op_def.stateful or op_def.random is not None or bool(self._state.reads(node))

    def _is_read(self, node: Node) -> bool:
        """True for a read that ``passes.variable_reads`` has put in."""
        return (
            node.op_def.name == "Identity"
            and node.inputs[0] in self._state.handles
            and not node.control
        )

    def _uses(self, user: Node, node: Node) -> bool:
        return node in user.control or not set(user.inputs).isdisjoint(node.outputs)

    # Units ----------------------------------------------------------------------------------

    def _segments(
        self, members: list[Node], own: set[Node], group: Group
    ) -> list[tuple[list[Node], Segment]]:
        """The segments of one group, each with the nodes of the program that it holds."""
        program, producers = self._program, self._producers
        inside = set(members)
        given: dict[int, None] = {}
        shared: dict[Node, None] = {}
        for node in members:
            for value in node.inputs:
                producer = producers.get(value)
                if producer is None:
                    given[value] = None
                elif is_constant(producer) or producer.op_def.variable:
                    shared[producer] = None
                elif producer not in inside:
                    given[value] = None
        copies = copied(members)
        original = {copy: node for node, copy in copies.items()}
        outside = [
            value
            for node in members
            if node in own
            for value in node.outputs
            if self._is_wanted_outside(value, node, group)
        ]
        part = Program(
            [*shared, *copies.values()],
            {("given", value): value for value in given},
            tuple(outside),
            program.infos,
        )
        device_of = self._device_of
        if device_of is not None:
            device_of = {node: device_of[original.get(node, node)] for node in part.nodes}
        return [
            ([original[node] for node in segment.nodes if node in original], segment)
            for segment in cluster(part, self._state, self._device, device_of)
        ]

    def _held_before(self, node: Node, units_of: Mapping[Node, list[int]]) -> Iterator[Node]:
        """What must have run before ``node``; for a constant that no unit holds, what it awaits."""
        seen: set[Node] = set()
        left = list(self._before[node])
        while left:
            other = left.pop()
            if other in units_of:
                yield other
            elif other not in seen:
                seen.add(other)
                left += self._before[other]

    def _is_wanted_outside(self, value: int, node: Node, group: Group) -> bool:
        if value in self._fetched:
            return True
        for user in self._consumers.get(value, ()):
            if user.op_def.blocking:
                return True
            other = self._group[user]
            if other != group and node not in self._copies.get(other, ()):
                return True
        return False

    def _connected(self, made: list[tuple[Group, list[Node], Segment]]) -> list[Unit]:
        """All units with what they need, sorted."""
        held: list[tuple[Group | None, list[Node]]] = []
        contents: list[Node | Segment] = []
        units_of: dict[Node, list[int]] = {}  # those of the node's own group first, then copies
        own_count: dict[Node, int] = {}
        last_effect: dict[Group, int] = {}
        of_group: dict[Group, list[int]] = {}
        needs: list[set[int]] = []
        for group, members, segment in made:
            unit = len(held)
            held.append((group, members))
            contents.append(segment)
            needs.append(set())
            if any(map(self._writes, members)):
                needs[unit].update(of_group.get(group, ()))  # which may fail
            of_group.setdefault(group, []).append(unit)
            if not segment.compilable and any(node.op_def.stateful for node in members):
                # What the outside world sees happens in the order of the program.
                if group in last_effect:
                    needs[unit].add(last_effect[group])
                last_effect[group] = unit
            for node in members:
                units = units_of.setdefault(node, [])
                if self._group[node] == group:  # a read may be in several: the first is needed
                    units.insert(own_count.setdefault(node, 0), unit)
                    own_count[node] += 1
                else:
                    units.append(unit)
        for node in self._group:
            if node.op_def.blocking:
                units_of[node] = [len(held)]
                held.append((None, [node]))
                contents.append(node)
                needs.append(set())
        for unit, (own, members) in enumerate(held):
            for node in members:
                for other in self._held_before(node, units_of):
                    units = units_of[other]
                    # A write waits for every read before it, also those that groups have copied.
                    if node not in self._next_writes.get(other, ()):
                        if unit in units:
                            continue  # a constant is in every segment that uses it
                        inside = [u for u in units if own is not None and held[u][0] == own]
                        units = (inside or units)[:1]
                    needs[unit].update(u for u in units if u != unit)
        places = [self._place_of(members) for _, members in held]
        order = _sorted(needs, places)
        new_place = {unit: i for i, unit in enumerate(order)}
        return [
            _unit(
                contents[unit],
                tuple(sorted(new_place[n] for n in needs[unit])),
                self._device_of_unit(contents[unit]),
            )
            for unit in order
        ]

    def _place_of(self, members: list[Node]) -> int:
        """Where a unit comes that needs nothing; one that updates variables after all others."""
        first = min((self._place[node] for node in members), default=0)
        return first + len(self._place) if any(map(self._writes, members)) else first

    def _writes(self, node: Node) -> bool:
        return node.op_def.stateful and bool(self._state.writes(node))

    def _device_of_unit(self, content: Node | Segment) -> LogicalDevice | None:
        if isinstance(content, Segment):
            return content.device
        if self._device_of is None or structure_of(content) is not None:
            return None  # a region takes values from wherever they are
        return self._device_of[content]


def _sorted(needs: list[set[int]], places: Iterable[int]) -> list[int]:
    """An order of units that respects ``needs``, by place where that leaves freedom."""
    place = list(places)
    missing = [len(n) for n in needs]
    users: list[list[int]] = [[] for _ in needs]
    for unit, wanted in enumerate(needs):
        for other in wanted:
            users[other].append(unit)
    ready = [(place[unit], unit) for unit, count in enumerate(missing) if count == 0]
    heapify(ready)
    order = []
    while ready:
        _, unit = heappop(ready)
        order.append(unit)
        for user in users[unit]:
            missing[user] -= 1
            if missing[user] == 0:
                heappush(ready, (place[user], user))
    assert len(order) == len(needs), "units form a circle"
    return order
