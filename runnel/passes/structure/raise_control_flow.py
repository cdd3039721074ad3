"""Raising: well-formed loops and conditionals, built of primitives, become structured nodes.

The frames of a step are gone through from the outside in; a loop's frame becomes one node of the
frame around it (see :mod:`~runnel.passes.structure.structured`). A step in which something is not
well-formed is left as it is, for the event-driven executor.
"""

from __future__ import annotations

import logging

from runnel.graph.loop_edges import NEXT_ITERATIONS
from runnel.graph.registry import get_op_def
from runnel.ops.control_flow import CONTROL_FLOW, ENTERS, EXITS, MERGES, SWITCHES
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import variable_name
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.branch_regions import Regions, joined
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.raise_conditionals import raise_conditionals
from runnel.passes.structure.raise_items import Item, NotWellFormed, Raising, Status
from runnel.passes.structure.structured import Loop

logger = logging.getLogger("runnel")


def raise_control_flow(program: Program, swaps: bool = True) -> Program | None:
    """``program`` with structured nodes for primitives; None when it is not well-formed.

    ``swaps`` is false where ``swap_memory`` means nothing: the device has the host's memory.
    """
    if any(node.op_def.allows_uninitialized for node in program.nodes if node.op_def.host):
        # A branch on whether a variable is initialised reads it only where it is.
        logger.debug("a step stays dynamic: it asks whether a variable is initialised")
        return None
    raising = Raising(program, swaps)
    try:
        _note_variables(raising)
        frames = Frames(program)
        _check_edges(program, frames)
        outermost = _FrameRaiser(raising, frames, frames.outermost)
        items = outermost.conditionals(outermost.items, 0)
        fetches = tuple(raising.seen_through(value) for value in program.fetches)
    except NotWellFormed as reason:
        logger.debug("a step stays dynamic: %s", reason)
        return None
    nodes: dict[Item, Node] = {}
    for item in items:
        control = tuple(dict.fromkeys(nodes[c.present()] for c in item.control))
        node = item.node
        nodes[item] = Node(node.op, node.op_def, item.inputs, node.outputs, control, node.attrs)
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
    fed = set(program.feeds.values())
    for node in program.nodes:
        if frames.runs_in[node] is not frames.outermost and not fed.isdisjoint(node.inputs):
            raise NotWellFormed(f"an input of {node.op.name!r} is fed inside a loop")
    producers = program.producers()
    for value in program.fetches:
        producer = producers.get(value)
        if producer is not None and frames.leads_to[producer] is not frames.outermost:
            raise NotWellFormed(f"{producer.op.name!r} is fetched inside a loop")


class _FrameRaiser:
    """One frame: its items with their status, and what makes it a loop."""

    def __init__(self, raising: Raising, frames: Frames, frame: Frame) -> None:
        self._raising = raising
        self._frames = frames
        self._frame = frame
        self._producers = raising.producers
        self.regions = Regions(raising)
        self.items: list[Item] = []
        self._item_of: dict[Node, Item] = {}
        self._enters: dict[int, Node] = {}
        """The Enters of loop variables, by the value that they give."""
        self._starts: dict[int, int] = {}
        """The first value of a loop variable, by the value that its Enter gives."""
        self._merges: list[Node] = []
        self._exits: list[Node] = []
        self._next: dict[int, Node] = {}
        self._condition: Node | None = None
        for rank, entry in enumerate(frame.items):
            if isinstance(entry, Frame):
                self._add_loop(entry, rank)
            else:
                self._visit(entry, rank)
        if frame.parent is None:
            for value in raising.program.fetches:
                if self.regions.value_status(value):
                    raise NotWellFormed("a value in a branch is fetched")

    def conditionals(self, items: list[Item], depth: int) -> list[Item]:
        return raise_conditionals(self._raising, self.regions, items, depth)

    # Nodes ----------------------------------------------------------------------------------

    def _visit(self, node: Node, rank: int) -> None:
        kind = node.op_def.name
        regions = self.regions
        if kind in SWITCHES:
            regions.add_switch(node)
            for value in node.outputs:
                self._read_in_branch(node, value, rank)
            return
        if kind in ENTERS:
            self._enter(node, rank)
            return
        if kind in EXITS:
            self._exits.append(node)
        elif kind in NEXT_ITERATIONS:
            self._next[node.outputs[0]] = node
        elif kind == "LoopCond":
            if self._condition is not None:
                raise NotWellFormed(f"the frame {self._frame.name!r} has several conditions")
            self._condition = node
            self._raising.alias[node.outputs[0]] = node.inputs[0]
        elif kind in MERGES and self._is_loop_merge(node):
            self._merges.append(node)
            return  # its control edges are those of the loop's beginning
        elif kind == "ControlTrigger" and self._frame.parent is not None:
            return
        else:
            self._add_item(node, rank)
            return
        regions.note(node, regions.status_of(node))

    def _is_loop_merge(self, node: Node) -> bool:
        sources = [self._producers.get(value) for value in node.inputs]
        return any(s is not None and s.op_def.name in NEXT_ITERATIONS for s in sources)

    def _read_in_branch(self, node: Node, value: int, rank: int) -> None:
        """Where a Switch passes on the value of a variable, ``value``: a read in that branch."""
        if value in self._raising.used:
            read = self._read(node, rank, self.regions.value_status(value))
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
        value = self._read(node, rank, self.regions.status_of(node))
        if value is None:
            value = self._raising.seen_through(node.inputs[0])
        self.regions.note(node, ())
        if node.attrs["is_constant"]:
            self._raising.alias[node.outputs[0]] = value
        else:
            if value in self._raising.of_variable:
                raise NotWellFormed(f"{node.op.name!r} makes a reference a loop variable")
            self._starts[node.outputs[0]] = value

    def _add_item(self, node: Node, rank: int) -> Item:
        if node.op_def.name == "ControlTrigger":
            # Runs also when what it waits for does not; here order says all that it says.
            node = Node(node.op, get_op_def("NoOp"), (), (), (), {})
        item = Item(node, rank)
        item.control = self._awaited(node)
        item.inputs = tuple([self._raising.taken(value) for value in node.inputs])
        self._item_of[node] = item
        self.items.append(item)
        kind = node.op_def.name
        if kind == "StackPushV2" and node.attrs["swap_memory"] and self._raising.swaps:
            self._raising.swapped.add(item.inputs[0])
        if kind in MERGES:
            self.regions.add_merge(item)
            return item
        if kind in CONTROL_FLOW:
            raise NotWellFormed(f"{node.op.name!r} is not part of a loop or a conditional")
        item.status = self.regions.status_of(node)
        self.regions.note(node, item.status)
        if node.op_def.blocking and (item.status or self._frame.parent is not None):
            raise NotWellFormed(f"{node.op.name!r} may have to wait for another step")
        return item

    def _awaited(self, node: Node) -> list[Item]:
        """The items that ``node`` waits for; not what only begins the branch that it is in."""
        found = []
        for control in node.control:
            item = self._item_of.get(control)
            if item is None:
                continue
            if control.op_def.name == "Identity" and not control.control:
                source = self._producers.get(control.inputs[0])
                if source is not None and source.op_def.name in SWITCHES:
                    continue
            found.append(item)
        return found

    # Loops ----------------------------------------------------------------------------------

    def _add_loop(self, child: Frame, rank: int) -> None:
        inner = _FrameRaiser(self._raising, self._frames, child)
        status: Status = ()
        awaited: list[Item] = []
        for enter in child.enters:
            status = joined(status, self.regions.status_of(enter), enter)
            awaited += self._awaited(enter)
        item = inner.as_loop(self._starts, rank)
        item.control = list(dict.fromkeys(awaited))
        item.status = status
        self.items.append(item)
        for node in inner._exits:
            self._item_of[node] = item
            self.regions.note(node, status)

    def as_loop(self, starts: dict[int, int], rank: int) -> Item:
        """The item of this frame's loop, given the first values of its variables."""
        raising, condition = self._raising, self._condition
        name = self._frame.name
        if condition is None:
            raise NotWellFormed(f"the frame {name!r} has no condition")
        predicate = raising.predicate(condition.outputs[0])
        taken, left = ((predicate, 1),), ((predicate, 0),)
        variables, firsts, nexts = self._loop_variables(starts, taken)
        positions = {value: k for k, value in enumerate(variables)}
        exits = []
        for node in self._exits:
            value = raising.seen_through(node.inputs[0])
            if self.regions.value_status(node.inputs[0]) != left or value not in positions:
                raise NotWellFormed(f"{node.op.name!r} is not the exit of a loop variable")
            exits.append(positions[value])
        header = [i for i in self.items if i.status[:1] != taken]
        if any(item.status[:1] == left for item in header):
            raise NotWellFormed(f"something runs when the loop {name!r} ends")
        body = self.conditionals([i for i in self.items if i.status[:1] == taken], 1)
        header = self.conditionals(header, 0)
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

    def _loop_variables(
        self, starts: dict[int, int], taken: Status
    ) -> tuple[list[int], list[int], list[int]]:
        raising = self._raising
        variables, firsts, nexts = [], [], []
        for node in self._merges:
            if len(node.inputs) != 2 or node.outputs[1] in raising.used:
                raise NotWellFormed(f"{node.op.name!r} does not begin a loop variable")
            entered = [v for v in node.inputs if v in starts]
            back = [self._next[v] for v in node.inputs if v in self._next]
            if len(entered) != 1 or len(back) != 1:
                raise NotWellFormed(f"{node.op.name!r} does not begin a loop variable")
            if self.regions.status_of(back[0]) != taken:
                raise NotWellFormed(f"{back[0].op.name!r} may run when the loop has ended")
            following = raising.seen_through(back[0].inputs[0])
            if following in raising.of_variable:
                raise NotWellFormed(f"{back[0].op.name!r} passes a reference on")
            variables.append(node.outputs[0])
            firsts.append(starts[entered[0]])
            nexts.append(following)
        unused = set(self._starts_of(starts)) - {v for node in self._merges for v in node.inputs}
        if unused & raising.used:
            raise NotWellFormed(f"a value enters the frame {self._frame.name!r} once")
        return variables, firsts, nexts

    def _starts_of(self, starts: dict[int, int]) -> list[int]:
        return [enter.outputs[0] for enter in self._frame.enters if enter.outputs[0] in starts]
