"""The nodes of one frame as raising sees them, with values and control edges seen through.

``Switch``, ``Enter`` and the like pass values on; here a value that they pass on has the number of
the value that they took (``Raising.alias``). An :class:`Item` is a node on its way into a program.
When items become one structured node, those that waited for them wait for that node.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node, Program, ValueInfo, made
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.structure.frames import each_after_its_needs
from runnel.passes.structure.structured import Structure, structured_node

Status = tuple[tuple[int, int], ...]
"""The branches in which something runs, the outermost first: (predicate, 0 or 1)."""


class NotWellFormed(Exception):
    """Control flow that no loop or conditional stands for: it runs as it is."""

    predicate: int | None = None
    """What decides whether the part of the step runs that this is about."""


class Item:
    """A node of a frame: its inputs are seen through, its control edges lead to items."""

    __slots__ = ("node", "inputs", "control", "status", "rank", "absorbed_by", "decided_by")

    def __init__(self, node: Node, rank: float) -> None:
        self.node = node
        self.inputs: tuple[int, ...] = node.inputs
        self.control: list[Item] = []
        self.status: Status = ()
        self.rank = rank
        """Its place in the order in which the items of a frame begin."""
        self.absorbed_by: Item | None = None
        self.decided_by: int | None = None
        """The predicate of a Merge."""

    def needs(self, depth: int = 0) -> tuple[int, ...]:
        """The values that it waits for: its inputs, and what decides whether it runs.

        ``depth`` branches around it have been entered already.
        """
        decides = [predicate for predicate, _ in self.status[depth:]]
        if self.decided_by is not None:
            decides.append(self.decided_by)
        return (*self.inputs, *decides)

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.node.outputs

    def present(self) -> Item:
        """This item, or the structured one that it has become part of."""
        item = self
        while item.absorbed_by is not None:
            item = item.absorbed_by
        return item

    @property
    def has_effect(self) -> bool:
        """True when the moment at which it runs matters."""
        op_def = self.node.op_def
        if op_def.variable or op_def.random is not None or op_def.name == "NoOp":
            return False
        return op_def.stateful

    def __repr__(self) -> str:
        return f"<Item {self.node} {self.status}>"


class Raising:
    """A program whose control flow is being raised: what is known of its values."""

    def __init__(self, program: Program, swaps: bool) -> None:
        self.program = program
        self.swaps = swaps
        self.alias: dict[int, int] = {}
        self.variables: dict[int, Node] = {}
        """The node that makes each variable, by the number of its handle."""
        self.of_variable: set[int] = set()
        """Values that denote a variable."""
        self.stands_for: dict[int, int] = {}
        """The handle that ``<variable>/read`` stands for, by the value of the latter."""
        self.swapped: set[int] = set()
        """The stacks on which loops with ``swap_memory`` push."""
        self.producers = program.producers()
        self.used = {value for node in program.nodes for value in node.inputs}
        self.used.update(program.fetches)

    def seen_through(self, value: int) -> int:
        """The value that ``value`` is passed on from."""
        while value in self.alias:
            value = self.alias[value]
        return value

    def taken(self, value: int) -> int:
        """What a node that takes ``value`` takes: a variable in place of ``<variable>/read``."""
        value = self.seen_through(value)
        return self.stands_for.get(value, value)

    def reads_variable(self, item: Item) -> bool:
        """True when ``item`` takes the value that a variable has at that moment."""
        return any(
            value in self.variables and self.program.infos[value].dtype.is_ref_dtype
            for value in item.inputs
        )

    def read_for(self, node: Node, value: int) -> Node | None:
        """A read of the variable ``value``, where ``node`` passes on its value, not itself."""
        value = self.taken(value)
        given, passed = self.program.infos[value].dtype, self.program.infos[node.outputs[0]].dtype
        if not given.is_ref_dtype or passed.is_ref_dtype:
            return None
        dtype = given.base_dtype
        read = self.program.new_value(dtype, self.program.infos[value].dims)
        return made("Identity", node.op, (value,), (read,), {"T": dtype})

    # Programs -------------------------------------------------------------------------------

    def finish(
        self, items: list[Item], parameters: Iterable[int], results: Iterable[int | None]
    ) -> Program:
        """The program of ``items``, fed ``parameters``; with the variables that it names."""
        nodes: dict[Item, Node] = {}
        handles: dict[int, Node] = {}
        for item in items:
            for value in item.inputs:
                if value in self.variables:
                    handles[value] = self.variables[value]
            control = tuple(
                dict.fromkeys(nodes[c] for c in map(Item.present, item.control) if c in nodes)
            )
            nodes[item] = item.node.taking(item.inputs, control)
        feeds = dict(enumerate(parameters))
        ordered = [*handles.values(), *nodes.values()]
        program = Program(ordered, feeds, tuple(results), self.program.infos)
        try:
            return explicit_reads(program)
        except InvalidArgumentError as error:  # an update of what may be one variable or another
            raise NotWellFormed(error.message) from error

    def captured(self, items: list[Item], results: Iterable[int | None]) -> list[int]:
        """The values that ``items`` and ``results`` take from elsewhere, variables aside."""
        defined = {value for item in items for value in item.outputs}
        used = [value for item in items for value in item.inputs]
        used += [value for value in results if value is not None]
        return [
            value
            for value in dict.fromkeys(used)
            if value not in defined and value not in self.variables
        ]

    def absorb(
        self,
        members: Iterable[Item],
        op: Operation,
        structure: Structure,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        rank: float,
    ) -> Item:
        """One item in place of ``members``, which waits for what they wait for."""
        infos = self.program.infos
        for value in outputs:
            if infos[value].dtype.is_ref_dtype:  # what an update left, no longer a reference
                infos[value] = ValueInfo(infos[value].dtype.base_dtype, infos[value].dims)
        item = Item(structured_node(op, structure, inputs, outputs, self.program), rank)
        members = list(members)
        own = set(members)
        awaited = [c for member in members for c in member.control if c not in own]
        item.control = [c for c in dict.fromkeys(map(Item.present, awaited)) if c not in own]
        for member in members:
            member.absorbed_by = item
        return item


def effect_order(raising: Raising, items: Iterable[Item]) -> dict[Item, list[Item]]:
    """For each item that touches state, those whose effects it comes after, or before.

    What reads a variable comes after the effect before it and before the next one; among
    themselves, reads have no order.
    """
    after: dict[Item, list[Item]] = {}
    last: list[Item] = []
    reads: list[Item] = []
    for item in sorted(items, key=lambda item: item.rank):
        if item.has_effect:
            after[item] = [*last, *reads]
            last, reads = [item], []
        elif raising.reads_variable(item):
            after[item] = last
            reads.append(item)
    return after


def in_order(items: Iterable[Item], after: dict[Item, list[Item]]) -> list[Item]:
    """``items`` by rank, but each after those whose values, end or effects it awaits."""
    wanted = sorted(items, key=lambda item: item.rank)
    producer = {value: item for item in wanted for value in item.outputs}
    members = set(wanted)

    def needs(item: Item) -> list[Item]:
        awaited = map(Item.present, (*item.control, *after.get(item, ())))
        found = [producer[v] for v in item.needs() if v in producer]
        return [n for n in (*found, *(c for c in awaited if c in members)) if n is not item]

    def refuse(item: Item) -> None:
        raise NotWellFormed(f"{item.node.op.name!r} waits for itself")

    return each_after_its_needs(wanted, needs, refuse)
