"""Puts loops and conditionals that are not raised into regions, which hold the primitives.

They need not be one region: the gradient of a branch runs after the code that took the branch's
result. So their nodes go into *levels*, such that nothing leaves a level and comes back, and
connected nodes of a level are one region. A region hands the values that only one branch has to the
next region, dead if the branch was not taken.

A value from outside that may itself be dead there (a raised conditional hands it over) enters
behind a ``Switch`` for each of its conditions, since compiled code has no dead values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from runnel.ops.control_flow import EXITS, MERGES, SWITCHES
from runnel.passes.program.program import Node, Program, ValueInfo, made
from runnel.passes.structure.frames import Frame
from runnel.passes.structure.liveness import Conditions, Liveness
from runnel.passes.structure.raise_items import Item, Raising, effect_order, in_order
from runnel.passes.structure.structured import Dynamic, structured_node


class DynamicParts:
    """The nodes and loops of the outermost frame that run dynamically."""

    def __init__(self, raising: Raising, liveness: Liveness) -> None:
        self._raising = raising
        self._liveness = liveness
        self._nodes_of: dict[Item, list[Node]] = {}
        self._made: set[int] = set()

    def makes(self, value: int) -> bool:
        """True for a value that is made dynamically."""
        return value in self._made

    def is_copied(self, switch: Node) -> bool:
        """True for a Switch whose predicate is the same for everyone, and that only they take."""
        if not set(switch.outputs).isdisjoint(self._raising.program.fetches):
            return False
        infos = self._raising.program.infos
        taken, given = self._raising.taken(switch.inputs[0]), switch.outputs[0]
        if infos[taken].dtype.is_ref_dtype and not infos[given].dtype.is_ref_dtype:
            return False  # it reads a variable, once
        return all(side >= 0 for _, side in self._liveness.of_value(switch.outputs[0]))

    def exits(self, loop: Frame) -> list[Node]:
        """The nodes that hand something out of ``loop``."""
        return [n for n in loop.items if isinstance(n, Node) and n.op_def.name in EXITS]

    def add(self, node: Node, rank: float) -> Item:
        """An item for ``node``; what it waits for is the caller's."""
        item = Item(node, rank)
        item.inputs = self._needed([node], node.inputs)
        self._nodes_of[item] = [node]
        self._made.update(node.outputs)
        return item

    def add_loop(self, loop: Frame, rank: float) -> Item:
        """An item for a whole loop, with what enters it."""
        inside = loop.nodes()
        inputs = self._needed(loop.enters, [enter.inputs[0] for enter in loop.enters])
        outputs = tuple(node.outputs[0] for node in self.exits(loop))
        program = Program([*loop.enters, *inside], {}, outputs, self._raising.program.infos)
        whole = structured_node(
            loop.enters[0].op, Dynamic(inputs, program), inputs, outputs, self._raising.program
        )
        item = Item(whole, rank)
        self._nodes_of[item] = program.nodes
        self._made.update(outputs)
        return item

    def _needed(self, nodes: Sequence[Node], inputs: Iterable[int]) -> tuple[int, ...]:
        """The values of items that ``nodes`` wait for: their inputs, and what decides."""
        inputs = list(inputs)
        found = [v for value in inputs for v in self._outer(value)]
        conditions = [self._liveness.of[node] for node in nodes]
        conditions += map(self._liveness.of_value, inputs)  # a Merge has others than its inputs
        for predicate, side in frozenset().union(*conditions):
            if side >= 0:
                found.append(self._raising.taken(predicate))
        return tuple(dict.fromkeys(found))

    def _outer(self, value: int) -> list[int]:
        """The values of items that must be there for ``value`` to be."""
        producer = self._raising.producers.get(value)
        if value not in self._made and producer is not None and producer.op_def.name in SWITCHES:
            return [v for given in producer.inputs for v in self._outer(given)]
        return [self._raising.taken(value)]

    # Regions --------------------------------------------------------------------------------

    def contracted(self, items: list[Item]) -> tuple[list[Item], dict[Item, list[Item]]]:
        """``items``, and one for each region; and the order of their effects."""
        everything = [*items, *self._nodes_of]
        after = effect_order(self._raising, everything)
        found = list(items)
        if self._nodes_of:
            for members in self._parts(in_order(everything, after), after):
                region = self._region(members)
                found.append(region)
                earlier = [c for member in members for c in after.get(member, ())]
                own = set(members)
                after[region] = [c for c in dict.fromkeys(earlier) if c not in own]
        return found, after

    def _parts(self, items: list[Item], after: dict[Item, list[Item]]) -> list[list[Item]]:
        """What becomes one region each, in order."""
        producer = {value: item for item in items for value in item.outputs}
        level: dict[Item, int] = {}
        root: dict[Item, Item] = {}

        def leader(item: Item) -> Item:
            while root[item] is not item:
                item = root[item]
            return item

        for item in items:
            inside = item in self._nodes_of
            sources = [producer[value] for value in item.needs() if value in producer]
            joined = [*sources, *item.control]
            sources += [c for c in (*item.control, *after.get(item, ())) if c in level]
            level[item] = max(
                (level[s] + (not inside and s in self._nodes_of) for s in sources), default=0
            )
            if inside:
                root[item] = item
                for source in joined:
                    if source in root and level[source] == level[item]:
                        root[leader(source)] = item
        # Two in which effects alternate are one: neither could run before the other.
        while (circle := self._circle(root, leader, level, after)) is not None:
            for item in circle[1:]:
                root[item] = circle[0]
        parts: dict[tuple[int, Item], list[Item]] = {}
        for item in root:
            parts.setdefault((level[item], leader(item)), []).append(item)
        return [parts[key] for key in sorted(parts, key=lambda key: key[0])]

    @staticmethod
    def _circle(
        members: Iterable[Item],
        leader: Callable[[Item], Item],
        level: dict[Item, int],
        after: dict[Item, list[Item]],
    ) -> list[Item] | None:
        """Leaders of parts of one level whose effects come after one another's, in a circle."""
        inside = set(members)
        earlier: dict[Item, dict[Item, None]] = {leader(item): {} for item in inside}
        for item in inside:
            for other in after.get(item, ()):
                if other in inside and level[other] == level[item]:
                    if leader(other) is not leader(item):
                        earlier[leader(item)][leader(other)] = None
        done: set[Item] = set()
        for start in earlier:
            path: list[Item] = []
            stack: list[tuple[Item, bool]] = [(start, False)]
            while stack:
                item, left = stack.pop()
                if left:
                    done.add(path.pop())
                elif item in path:
                    return path[path.index(item) :]
                elif item not in done:
                    path.append(item)
                    stack.append((item, True))
                    stack += [(other, False) for other in earlier[item]]
        return None

    def _region(self, members: list[Item]) -> Item:
        inside = {node for member in members for node in self._nodes_of[member]}
        builder = _RegionBuilder(self._raising, self._liveness, inside, self._made)
        program = builder.program()
        inputs, outputs = tuple(program.feeds.values()), program.fetches
        ends = [m.node for m in members if m.node.op_def.name in MERGES]
        op = (ends or [members[0].node])[0].op
        rank = max(member.rank for member in members)
        region = Dynamic(inputs, program, frozenset(builder.uncertain))
        return self._raising.absorb(members, op, region, inputs, outputs, rank)


def _telling(control: Node) -> Iterator[int]:
    """The values that say whether ``control`` is alive: one has none itself, as of a group."""
    if control.outputs:
        yield control.outputs[0]
    else:
        for other in control.control:
            yield from _telling(other)


class _RegionBuilder:
    """Copies the nodes of a region into a program of their own."""

    def __init__(
        self, raising: Raising, liveness: Liveness, inside: set[Node], dynamic: set[int]
    ) -> None:
        """``dynamic`` are the values that regions make."""
        self._raising = raising
        self._liveness = liveness
        self._inside = inside
        self._dynamic = dynamic
        self._made = {value for node in inside for value in node.outputs}
        self._infos = list(raising.program.infos)  # references in a region stay references
        self._nodes: list[Node] = []
        self._copies: dict[Node, Node] = {}
        self._taken: dict[int, int] = {}
        """What each value from outside is inside."""
        self._guards: dict[tuple[int, Conditions], int] = {}
        self._feeds: dict[int, int] = {}
        self._variables: set[int] = set()
        self.uncertain: set[int] = set()
        """Values from outside that may be dead."""

    def program(self) -> Program:
        raising = self._raising
        wanted = set(raising.program.fetches)
        for node in raising.program.nodes:
            if node in self._inside:
                self._copy(node)
            else:
                wanted.update(node.inputs)
                # Who waits for something in another region is dead when that is.
                wanted.update(value for c in node.control for value in _telling(c))
        behind = list(filter(self._is_copied, wanted))
        while behind:
            inputs = raising.producers[behind.pop()].inputs
            behind += [value for value in inputs if self._is_copied(value)]
            wanted.update(inputs)
        # A predicate is wanted where what it decides is; its copies are seen through there.
        wanted.update(self._liveness.predicates)
        given = [v for n in self._copies for v in n.outputs if v in wanted and v in self._made]
        given = [v for v in given if not self._is_copied(v)]
        return Program(self._nodes, self._feeds, tuple(given), self._infos)

    def _copy(self, node: Node) -> None:
        inputs = tuple([v if v in self._made else self._take(v) for v in node.inputs])
        control = dict.fromkeys(c for awaited in node.control for c in self._awaited(awaited, node))
        self._append(node, inputs, tuple(control))

    def _append(self, node: Node, inputs: tuple[int, ...], control: tuple[Node, ...]) -> None:
        copy = self._copies[node] = node.taking(inputs, control)
        self._nodes.append(copy)

    def _take(self, value: int) -> int:
        """The number, inside, of a value from outside."""
        if value not in self._taken:
            self._taken[value] = self._brought_in(value)
        return self._taken[value]

    def _is_copied(self, value: int) -> bool:
        """True for what each region has its own Switch for; another hands its value over."""
        producer = self._raising.producers.get(value)
        if producer is None or producer.op_def.name not in SWITCHES:
            return False
        dtype = self._infos[value].dtype
        return value not in self._dynamic or dtype.is_ref_dtype or dtype.name == "resource"

    def _brought_in(self, value: int) -> int:
        raising = self._raising
        producer = raising.producers.get(value)
        if producer is not None and self._is_copied(value):
            inputs = tuple([v if v in self._made else self._take(v) for v in producer.inputs])
            if producer not in self._copies:
                self._append(producer, inputs, ())
            return value
        handle = raising.seen_through(value)
        if handle in raising.variables:
            if handle not in self._variables:
                self._variables.add(handle)
                self._append(raising.variables[handle], (), ())
            return handle
        if producer is not None and value in raising.stands_for:
            self._append(producer, (self._take(producer.inputs[0]),), ())
            return value
        self._feeds[value] = value
        conditions = self._liveness.of_value(value)
        if not conditions or value in self._dynamic:
            if conditions:  # what a region gives is dead where it is not alive
                self.uncertain.add(value)
            return value
        return self._guarded(value, conditions, producer)

    def _guarded(self, value: int, conditions: Conditions, near: Node | None) -> int:
        """``value`` behind a Switch for each of ``conditions``."""
        known = self._guards.get((value, conditions))
        if known is not None:
            return known
        assert near is not None
        guarded = value
        for predicate, side in self._liveness.nested(conditions):
            decides = predicate if predicate in self._made else self._take(predicate)
            info = self._infos[guarded]
            outputs = (self._new(info), self._new(info))
            attrs = {"T": info.dtype.base_dtype}
            self._nodes.append(made("Switch", near.op, (guarded, decides), outputs, attrs))
            guarded = outputs[side]
        self._guards[value, conditions] = guarded
        return guarded

    def _new(self, info: ValueInfo) -> int:
        # Numbered across the step: other programs must not use the number for something else.
        number = self._raising.program.new_value(info.dtype, info.dims, info.optional)
        self._infos.extend(self._raising.program.infos[len(self._infos) :])
        return number

    def _awaited(self, control: Node, node: Node) -> list[Node]:
        """What ``node`` waits for inside, in place of ``control``."""
        if control in self._inside:
            return [self._copies[control]]
        conditions = self._liveness.after(control)
        if not conditions:
            return []  # the region waits for it
        if all(side >= 0 for _, side in conditions):
            predicate = self._liveness.nested(conditions)[-1][0]
            decides = predicate if predicate in self._made else self._take(predicate)
            alive = self._guarded(decides, conditions, node)
        elif control.outputs:
            alive = self._take(control.outputs[0])
        else:
            return [found for other in control.control for found in self._awaited(other, node)]
        info = self._infos[alive]
        attrs = {"T": info.dtype.base_dtype}
        waits = made("Identity", node.op, (alive,), (self._new(info),), attrs)
        self._nodes.append(waits)
        return [waits]
