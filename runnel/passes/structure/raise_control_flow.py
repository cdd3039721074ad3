"""Raising: turns loops and conditionals, built of primitives, into nodes of the program.

It raises each outermost loop or conditional on its own. A well-formed one becomes a structured node
(``passes.structure.structured``): from the outside in, a loop's frame becomes one node of the frame
around it. A loop or conditional that blocks inside, computes on several devices, or is ill-formed
goes into a region with its primitives (``passes.structure.raise_dynamic``), and touches nothing
else of the step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.loop_edges import NEXT_ITERATIONS
from runnel.ops.control_flow import CONTROL_FLOW, ENTERS, EXITS, MERGES, SWITCHES
from runnel.ops.send_recv import MAY_BE_DEAD
from runnel.passes.program.program import Node, Program, made
from runnel.passes.program.state_access import variable_name
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.branch_groups import BranchGroups
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Conditions, Liveness
from runnel.passes.structure.raise_conditionals import Merges, raise_conditionals
from runnel.passes.structure.raise_dynamic import DynamicParts
from runnel.passes.structure.raise_items import Item, NotWellFormed, Raising, Status
from runnel.passes.structure.structured import Conditional, Loop, nested_nodes, structure_of

logger = logging.getLogger("runnel")

Spans = Callable[[Sequence[Node]], bool]


@dataclass(slots=True)
class _LeftDynamic:
    """What is not raised: groups of branches, loops by frame; or nothing is."""

    groups: BranchGroups
    everything: bool = False
    branches: set[Node] = field(default_factory=set)
    frames: set[Frame] = field(default_factory=set)

    def holds(self, node: Node) -> bool:
        """True for a node of a group that is left."""
        return self.groups.of(node) in self.branches


def raise_control_flow(
    program: Program,
    swaps: bool = True,
    raises: bool = True,
    spans: Spans | None = None,
) -> Program:
    """``program`` with a node for each outermost loop or conditional.

    ``swaps`` is false where ``swap_memory`` means nothing: the device has the host's memory. Unless
    it ``raises``, all run dynamically. ``spans`` tells, in a step over several devices, whether
    nodes compute on more than one.
    """
    if not any(n.op_def.name in CONTROL_FLOW or MAY_BE_DEAD in n.attrs for n in program.nodes):
        return program
    frames = Frames(program)
    _check_edges(program, frames)
    liveness = Liveness(program, frames)
    left = _LeftDynamic(BranchGroups(program, frames, liveness), everything=not raises)
    while True:
        found = _raised(program, swaps, frames, liveness, left, spans)
        if found is not None:
            return found


def _raised(
    program: Program,
    swaps: bool,
    frames: Frames,
    liveness: Liveness,
    left: _LeftDynamic,
    spans: Spans | None,
) -> Program | None:
    """The raised program; None when something more is to be left dynamic, which is noted."""
    raising = Raising(program, swaps)
    _note_variables(raising)
    try:
        outermost = _FrameRaiser(raising, frames, liveness, frames.outermost, left, spans)
        items, after = outermost.dynamic.contracted(outermost.items)
        items = raise_conditionals(raising, outermost.merges, items, 0, after=after)
    except NotWellFormed as reason:
        logger.debug("a conditional runs dynamically: %s", reason)
        if left.everything:
            raise
        found = left.groups.deciding(reason.predicate) if reason.predicate is not None else set()
        left.everything = found <= left.branches
        left.branches |= found
        return None
    nodes: dict[Item, Node] = {}
    for item in items:
        control = tuple(dict.fromkeys(nodes[c.present()] for c in item.control))
        node = item.node
        structure = structure_of(node)
        if spans is not None and isinstance(structure, Conditional) and spans([node]):
            left.branches |= left.groups.holding(nested_nodes([node]))
            return None
        nodes[item] = node.taking(item.inputs, control)
    fetches = tuple(raising.seen_through(value) for value in program.fetches)
    return Program(list(nodes.values()), program.feeds, fetches, program.infos)


def _note_variables(raising: Raising) -> None:
    """Finds the handles of variables; operations that share a name denote one variable."""
    first: dict[tuple[str, str, str], Node] = {}
    for node in raising.program.nodes:
        if not node.op_def.variable:
            continue
        known = first.setdefault((node.op.type, *variable_name(node.op)), node)
        if known is not node:
            raising.alias[node.outputs[0]] = known.outputs[0]
        raising.variables[known.outputs[0]] = known
    raising.of_variable.update(raising.variables)
    for node in raising.program.nodes:
        if is_variable_read(node) and node.inputs[0] in raising.of_variable | raising.alias.keys():
            raising.stands_for[node.outputs[0]] = raising.seen_through(node.inputs[0])


def _check_edges(program: Program, frames: Frames) -> None:
    """An error where something inside a loop is fed or fetched."""
    fed = set(program.feeds.values())
    for node in program.nodes:
        if frames.runs_in[node] is not frames.outermost and not fed.isdisjoint(node.inputs):
            index = next(i for i, value in enumerate(node.inputs) if value in fed)
            raise InvalidArgumentError(
                None,
                node.op,
                f"Input {index} of {node.op.name!r} is fed, but {node.op.name!r} is inside a loop; "
                "feed a tensor outside the loop",
            )
    producers = program.producers()
    for value in program.fetches:
        producer = producers.get(value)
        if producer is not None and frames.leads_to[producer] is not frames.outermost:
            raise InvalidArgumentError(
                None,
                producer.op,
                f"{producer.op.name!r} is inside the loop {frames.leads_to[producer].name!r} and "
                "has a value in each of its iterations; make it a loop variable and fetch what the "
                "loop returns",
            )


class _FrameRaiser:
    """One frame: its items with their status, and what makes it a loop.

    Of the outermost frame some items may be ``left`` to run dynamically.
    """

    def __init__(
        self,
        raising: Raising,
        frames: Frames,
        liveness: Liveness,
        frame: Frame,
        left: _LeftDynamic,
        spans: Spans | None,
    ) -> None:
        self._raising = raising
        self._frames = frames
        self._liveness = liveness
        self._frame = frame
        self._left = left
        self._spans = spans
        self._producers = raising.producers
        self.merges: Merges = {}
        self.items: list[Item] = []
        self.dynamic = DynamicParts(raising, liveness)
        """What runs dynamically, in the outermost frame."""
        self._item_of: dict[Node, Item] = {}
        self._starts: dict[int, int] = {}
        """The first value of a loop variable, by the value that its Enter gives."""
        self._merges: list[Node] = []
        self._exits: list[Node] = []
        self._next: dict[int, Node] = {}
        self._condition: Node | None = None
        self._enter_ranks: dict[Node, int] = {}
        self._find_left()
        for rank, entry in enumerate(frame.items):
            if isinstance(entry, Frame):
                self._visit_loop(entry, rank)
            elif self._is_dynamic(entry):
                self._add_dynamic(entry, rank)
            else:
                self._visit(entry, rank)

    # What runs dynamically ------------------------------------------------------------------

    def _find_left(self) -> None:
        """Notes the conditionals that block inside, or in which something is fetched."""
        if self._frame.parent is not None:
            return
        liveness, left = self._liveness, self._left
        for value in self._raising.program.fetches:
            if liveness.of_value(value):
                left.branches.add(left.groups.of(self._producers[value]))
        for entry in self._frame.items:
            if isinstance(entry, Node) and (conditions := liveness.of[entry]):
                never = len({predicate for predicate, _ in conditions}) < len(conditions)
                if entry.op_def.blocking or never:  # in two branches that exclude each other
                    left.branches.add(left.groups.of(entry))
        for node in liveness.merges:
            if self._frames.runs_in[node] is self._frame and self._merges_references(node):
                left.branches.add(left.groups.of(node))

    def _merges_references(self, node: Node) -> bool:
        return self._raising.program.infos[node.outputs[0]].dtype.is_ref_dtype or any(
            self._raising.taken(value) in self._raising.of_variable for value in node.inputs
        )

    def _is_dynamic(self, node: Node) -> bool:
        """True for a node that is not raised: it may be dead where nothing raised says so."""
        if self._frame.parent is not None:
            return False
        left, liveness, kind = self._left, self._liveness, node.op_def.name
        if kind in ENTERS or kind == "ControlTrigger":
            return False  # the one goes with its loop, the other runs whatever happens
        conditions = liveness.of_value(node.outputs[0]) if kind in SWITCHES else liveness.of[node]
        if any(side < 0 for _, side in conditions):
            return True
        if left.holds(node) or (left.everything and (conditions or kind in CONTROL_FLOW)):
            return True
        if kind in MERGES and node not in liveness.merges:
            return True
        infos = self._raising.program.infos
        return any(infos[v].dtype.is_ref_dtype and self.dynamic.makes(v) for v in node.inputs)

    def _is_dynamic_loop(self, child: Frame) -> bool:
        left, liveness = self._left, self._liveness
        if left.everything or child in left.frames or child not in liveness.predicate:
            return True
        if any(left.holds(e) or any(s < 0 for _, s in liveness.of[e]) for e in child.enters):
            return True
        if any(frame.is_inside(child) for frame in liveness.may_wait):
            return True
        if self._spans is None:
            return False
        return self._spans(child.nodes())

    def _add_dynamic(self, node: Node, rank: int) -> None:
        if node.op_def.name in SWITCHES and self.dynamic.is_copied(node):
            return  # every region that takes its value has its own
        item = self.dynamic.add(node, rank)
        item.control = self._awaited(node)
        self._item_of[node] = item

    def _visit_loop(self, child: Frame, rank: int) -> None:
        if self._frame.parent is not None:
            self._add_loop(child, rank)
            return
        if not self._is_dynamic_loop(child):
            before = len(self.items)
            try:
                self._add_loop(child, rank)
                return
            except NotWellFormed as reason:
                logger.debug("a loop runs dynamically: %s", reason)
                del self.items[before:]
                self._left.frames.add(child)
        item = self.dynamic.add_loop(child, rank)
        item.control = [found for enter in child.enters for found in self._awaited(enter)]
        for node in self.dynamic.exits(child):
            self._item_of[node] = item

    # Nodes ----------------------------------------------------------------------------------

    def _status(self, node: Node) -> Status:
        """The branches in which ``node`` runs."""
        conditions = self._liveness.of[node]
        if any(side < 0 for _, side in conditions):
            raise NotWellFormed(f"whether {node.op.name!r} runs is known when it does")
        if len({predicate for predicate, _ in conditions}) < len(conditions):
            raise NotWellFormed(
                f"{node.op.name!r} takes values of branches that exclude each other"
            )
        return self._branches(conditions)

    def _branches(self, conditions: Conditions) -> Status:
        """The branches that ``conditions`` stand for, those of this loop's own predicate first."""
        own = self._liveness.predicate.get(self._frame)
        return tuple(self._liveness.nested(conditions, own))

    def _visit(self, node: Node, rank: int) -> None:
        kind = node.op_def.name
        if kind in SWITCHES:
            for value in node.outputs:
                self._raising.alias[value] = node.inputs[0]
                self._read_in_branch(node, value, rank)
        elif kind in ENTERS:
            self._enter_ranks[node] = rank
        elif kind in EXITS:
            self._exits.append(node)
        elif kind in NEXT_ITERATIONS:
            self._next[node.outputs[0]] = node
        elif kind == "LoopCond":
            if self._condition is not None:
                raise NotWellFormed(f"the frame {self._frame.name!r} has several conditions")
            self._condition = node
            self._raising.alias[node.outputs[0]] = node.inputs[0]
        elif node in self._frames.variables:
            self._merges.append(node)  # its control edges are those of the loop's beginning
        elif kind != "ControlTrigger" or self._frame.parent is None:
            self._add_item(node, rank)

    def _read_in_branch(self, node: Node, value: int, rank: int) -> None:
        """Where a Switch passes on the value of a variable, ``value``: a read in that branch."""
        if value in self._raising.used:
            read = self._read(node, rank, self._branches(self._liveness.of_value(value)))
            if read is not None:
                self._raising.alias[value] = read

    def _read(self, node: Node, rank: int, status: Status) -> int | None:
        """The value, read here, of the variable whose value ``node`` passes on, if it does."""
        read = self._raising.read_for(node, node.inputs[0])
        if read is None:
            return None
        item = Item(read, rank - 0.5)
        item.control = self._awaited(node)
        item.status = status
        self.items.append(item)
        return read.outputs[0]

    def _enter(self, node: Node, rank: int) -> None:
        value = self._read(node, rank, self._status(node))
        if value is None:
            value = self._raising.seen_through(node.inputs[0])
        if node.attrs["is_constant"]:
            self._raising.alias[node.outputs[0]] = value
        else:
            if value in self._raising.of_variable:
                raise NotWellFormed(f"{node.op.name!r} makes a reference a loop variable")
            self._starts[node.outputs[0]] = value

    def _add_item(self, node: Node, rank: int) -> Item:
        if node.op_def.name == "ControlTrigger":
            # Runs also when what it waits for does not; here order says all that it says.
            item = Item(made("NoOp", node.op, (), (), {}), rank)
        else:
            item = Item(node, rank)
            item.inputs = tuple([self._raising.taken(value) for value in node.inputs])
        item.control = self._awaited(node)
        item.status = self._status(node)
        self._item_of[node] = item
        self.items.append(item)
        kind = node.op_def.name
        if kind == "StackPushV2" and node.attrs["swap_memory"] and self._raising.swaps:
            self._raising.swapped.add(item.inputs[0])
        if kind in MERGES:
            self._add_merge(item)
        elif kind in CONTROL_FLOW and kind != "ControlTrigger":
            raise NotWellFormed(f"{node.op.name!r} is not part of a loop or a conditional")
        elif node.op_def.blocking and self._frame.parent is not None:
            raise NotWellFormed(f"{node.op.name!r} may have to wait for another step")
        return item

    def _add_merge(self, item: Item) -> None:
        """Notes the end of a conditional."""
        node = item.node
        if node not in self._liveness.merges:
            raise NotWellFormed(f"{node.op.name!r} merges values of unrelated branches")
        predicate, *values = self._liveness.merges[node]
        if self._merges_references(node):
            raise NotWellFormed(f"{node.op.name!r} merges references")
        when_false, when_true = map(self._raising.seen_through, values)
        first = node.inputs.index(values[0])
        self.merges[item] = predicate, (when_false, when_true), (first, 1 - first)
        item.decided_by = predicate

    def _awaited(self, node: Node) -> list[Item]:
        """The items that ``node`` waits for; not what only begins the branch that it is in."""
        found = []
        for control in node.control:
            item = self._item_of.get(control)
            if item is None:
                continue
            dynamic = bool(control.outputs) and self.dynamic.makes(control.outputs[0])
            if control.op_def.name == "Identity" and not control.control and not dynamic:
                source = self._producers.get(control.inputs[0])
                if source is not None and source.op_def.name in SWITCHES:
                    continue
            found.append(item)
        return found

    # Loops ----------------------------------------------------------------------------------

    def _add_loop(self, child: Frame, rank: int) -> None:
        for enter in child.enters:
            self._enter(enter, self._enter_ranks[enter])
        inner = _FrameRaiser(
            self._raising, self._frames, self._liveness, child, self._left, self._spans
        )
        conditions = frozenset().union(*(self._liveness.of[enter] for enter in child.enters))
        awaited = [item for enter in child.enters for item in self._awaited(enter)]
        item = inner.as_loop(self._starts, rank)
        item.control = list(dict.fromkeys(awaited))
        item.status = self._branches(conditions)
        self.items.append(item)
        for node in inner._exits:
            self._item_of[node] = item

    def as_loop(self, starts: dict[int, int], rank: int) -> Item:
        """The item of this frame's loop, given the first values of its variables."""
        raising, condition = self._raising, self._condition
        name = self._frame.name
        if condition is None or self._frame not in self._liveness.predicate:
            raise NotWellFormed(f"the frame {name!r} is not a loop with one condition")
        decides = self._liveness.predicate[self._frame]
        predicate = raising.seen_through(decides)
        taken, left = ((decides, 1),), ((decides, 0),)
        variables, firsts, nexts = self._loop_variables(starts)
        positions = {value: k for k, value in enumerate(variables)}
        exits = []
        for node in self._exits:
            value = raising.seen_through(node.inputs[0])
            if value not in positions:
                raise NotWellFormed(f"{node.op.name!r} is not the exit of a loop variable")
            exits.append(positions[value])
        header = [i for i in self.items if i.status[:1] != taken]
        if any(item.status[:1] == left for item in header):
            raise NotWellFormed(f"something runs when the loop {name!r} ends")
        body_items = [i for i in self.items if i.status[:1] == taken]
        body = raise_conditionals(raising, self.merges, body_items, 1)
        header = raise_conditionals(raising, self.merges, header, 0)
        made = {value for item in header for value in item.outputs}
        uses = raising.captured(body, nexts)
        extras = [value for value in uses if value in made]
        results = [predicate, *extras]
        invariants = tuple(
            value
            for value in dict.fromkeys([*raising.captured(header, results), *uses])
            if value not in positions and value not in made
        )
        structure = Loop(
            tuple(variables),
            invariants,
            raising.finish(header, [*variables, *invariants], results),
            raising.finish(body, [*variables, *invariants, *extras], nexts),
            tuple(exits),
            any(not raising.swapped.isdisjoint(item.inputs) for item in self.items),
        )
        inputs = (*firsts, *invariants)
        outputs = tuple(node.outputs[0] for node in self._exits)
        return raising.absorb(self.items, condition.op, structure, inputs, outputs, rank)

    def _loop_variables(self, starts: dict[int, int]) -> tuple[list[int], list[int], list[int]]:
        raising = self._raising
        variables, firsts, nexts = [], [], []
        for node in self._merges:
            if len(node.inputs) != 2 or node.outputs[1] in raising.used:
                raise NotWellFormed(f"{node.op.name!r} does not begin a loop variable")
            entered = [v for v in node.inputs if v in starts]
            back = [self._next[v] for v in node.inputs if v in self._next]
            if len(entered) != 1 or len(back) != 1:
                raise NotWellFormed(f"{node.op.name!r} does not begin a loop variable")
            following = raising.seen_through(back[0].inputs[0])
            if following in raising.of_variable:
                raise NotWellFormed(f"{back[0].op.name!r} passes a reference on")
            variables.append(node.outputs[0])
            firsts.append(starts[entered[0]])
            nexts.append(following)
        begins = {enter.outputs[0] for enter in self._frame.enters} & starts.keys()
        unused = begins.difference(*(node.inputs for node in self._merges))
        if unused & raising.used:
            raise NotWellFormed(f"a value enters the frame {self._frame.name!r} once")
        return variables, firsts, nexts
