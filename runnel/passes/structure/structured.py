"""Structured control flow: a whole loop or conditional as one node that holds programs.

A well-formed one is a :class:`Loop` or a :class:`Conditional`. Any other, and one that may block,
is :class:`Dynamic`: it holds the primitives themselves.

``passes.structure.raise_control_flow`` makes these nodes from the primitives. Values are numbered
across the step and the programs inside it. A program gets values from outside as feeds, and returns
values as fetches. Variables are not handed over: a program that touches one names it, and whoever
runs the node threads the variable's value through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef
from runnel.passes.program.program import Node, Program, is_constant
from runnel.passes.program.reached_state import ReachedState
from runnel.passes.program.state_access import StateAccess, keeps_shape


@dataclass(frozen=True, slots=True)
class Loop:
    """``while condition: body``.

    The node takes the first value of each variable, then the invariants. ``condition`` is fed
    variables and invariants; it gives the predicate and then what ``body`` uses of it, which is
    fed variables, invariants and that. ``body`` gives the variables of the next iteration. The
    node gives the last value of the variables at ``exits``. With ``swap_memory``, what is kept of
    all iterations should be little, or not in the memory of the device.
    """

    variables: tuple[int, ...]
    invariants: tuple[int, ...]
    condition: Program
    body: Program
    exits: tuple[int, ...]
    swap_memory: bool = False

    @property
    def programs(self) -> tuple[Program, Program]:
        return self.condition, self.body

    def with_programs(self, condition: Program, body: Program) -> Loop:
        """This loop after a pass has been over its programs."""
        return replace(self, condition=condition, body=body)


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if predicate: when_true else: when_false``.

    The node takes the predicate, then the parameters, which both programs are fed. A fetch that is
    None has no value in that branch: only the same branch of a later conditional uses it.
    """

    parameters: tuple[int, ...]
    when_true: Program
    when_false: Program

    @property
    def programs(self) -> tuple[Program, Program]:
        return self.when_true, self.when_false

    def with_programs(self, when_true: Program, when_false: Program) -> Conditional:
        """This conditional after a pass has been over its programs."""
        return replace(self, when_true=when_true, when_false=when_false)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A part of a step that runs by pending counts: primitives, and what they control.

    The node takes ``inputs``, which ``program`` is fed, and gives what that fetches. A value that a
    branch did not make is dead: None, in both directions. ``uncertain`` inputs may be.
    """

    inputs: tuple[int, ...]
    program: Program
    uncertain: frozenset[int] = frozenset()

    @property
    def programs(self) -> tuple[Program]:
        return (self.program,)

    def with_programs(self, program: Program) -> Dynamic:
        """This region after a pass has been over its program."""
        return replace(self, program=program)


Structure = Loop | Conditional | Dynamic


@dataclass(frozen=True, slots=True)
class Touched:
    """The state that a structured node may touch, in the programs inside it and below."""

    reads: tuple[Operation, ...]
    writes: tuple[Operation, ...]
    random: tuple[Operation, ...]
    reshaped: tuple[Operation, ...]
    """Variables that may be given a value of another shape."""

    @property
    def variables(self) -> tuple[Operation, ...]:
        return tuple(dict.fromkeys((*self.reads, *self.writes)))


_STRUCTURE = "structure"
_TOUCHED = "touched"


@cache
def _op_def(name: str, stateful: bool, heavy: bool, blocking: bool) -> OpDef:
    op_def = OpDef(
        name,
        "inputs: Tin",
        "outputs: Tout",
        ["Tin: list(type) >= 0", "Tout: list(type) >= 0"],
        heavy=heavy,
        blocking=blocking,
    )
    op_def.stateful = stateful  # what runs dynamically need not have an effect
    return op_def


def structured_node(
    op: Operation,
    structure: Structure,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    program: Program,
) -> Node:
    """The node for ``structure``; ``op`` is what errors name. Control edges are the caller's.

    What only one branch gives is optional from now on.
    """
    if isinstance(structure, Conditional):
        sides = zip(structure.when_true.fetches, structure.when_false.fetches, strict=True)
        for value, given in zip(outputs, sides, strict=True):
            if None in given:
                program.infos[value] = replace(program.infos[value], optional=True)
    touched = _touched(structure)
    inside = [node for part in structure.programs for node in part.nodes]
    stateful = bool(touched.variables or touched.random)
    stateful = stateful or any(n.op_def.stateful and n.op_def.name != "NoOp" for n in inside)
    heavy = any(node.op_def.heavy for node in inside)
    attrs: dict[str, Any] = {
        "Tin": [program.infos[value].dtype.base_dtype for value in inputs],
        "Tout": [program.infos[value].dtype.base_dtype for value in outputs],
        _STRUCTURE: structure,
        _TOUCHED: touched,
    }
    kind = type(structure).__name__
    op_def = _op_def(kind, stateful, heavy, isinstance(structure, Dynamic))
    return Node(op, op_def, inputs, outputs, (), attrs)


def structure_of(node: Node) -> Structure | None:
    """The loop or conditional that ``node`` is, or None."""
    return node.attrs.get(_STRUCTURE)


def touched_by(node: Node) -> Touched:
    """The state that the structured ``node`` may touch."""
    return node.attrs[_TOUCHED]


def map_programs(
    program: Program, function: Callable[[Program], Program], dynamic: bool = True
) -> None:
    """Puts ``function(inner)`` in place of each program directly inside ``program``.

    Those of regions that run dynamically only if ``dynamic``.
    """
    for node in program.nodes:
        structure = structure_of(node)
        if structure is not None and (dynamic or not isinstance(structure, Dynamic)):
            node.attrs[_STRUCTURE] = structure.with_programs(*map(function, structure.programs))


def add_invariants(
    program: Program, node: Node, values: Sequence[int], body: Sequence[Node]
) -> None:
    """Has the loop ``node`` take more values from outside, which its new ``body`` uses."""
    loop = node.attrs[_STRUCTURE]
    count = len(loop.variables) + len(loop.invariants)
    feeds = list(loop.body.feeds.values())
    of_body = [*feeds[:count], *values, *feeds[count:]]
    of_condition = [*loop.condition.feeds.values(), *values]
    node.inputs = (*node.inputs, *values)
    node.attrs = {
        **node.attrs,
        "Tin": [program.infos[value].dtype.base_dtype for value in node.inputs],
        _STRUCTURE: replace(
            loop,
            invariants=(*loop.invariants, *values),
            condition=replace(loop.condition, feeds=dict(enumerate(of_condition))),
            body=replace(loop.body, nodes=list(body), feeds=dict(enumerate(of_body))),
        ),
    }


def drop_invariants(program: Program, node: Node) -> None:
    """Has the loop ``node`` take only what its programs use of its invariants."""
    loop = node.attrs[_STRUCTURE]
    used = {v for part in loop.programs for inner in part.nodes for v in inner.inputs}
    used.update(v for part in loop.programs for v in part.fetches)
    count = len(loop.variables)
    inside, of_condition = (list(p.feeds.values()) for p in (loop.body, loop.condition))
    gone = {
        place
        for place in range(count, count + len(loop.invariants))
        if used.isdisjoint((loop.invariants[place - count], inside[place], of_condition[place]))
    }
    if not gone:
        return

    def kept(values: Iterable[int]) -> tuple[int, ...]:
        return tuple([value for place, value in enumerate(values) if place not in gone])

    node.inputs = kept(node.inputs)
    node.attrs = {
        **node.attrs,
        "Tin": [program.infos[value].dtype.base_dtype for value in node.inputs],
        _STRUCTURE: replace(
            loop,
            invariants=kept((*loop.variables, *loop.invariants))[count:],
            condition=replace(loop.condition, feeds=dict(enumerate(kept(of_condition)))),
            body=replace(loop.body, feeds=dict(enumerate(kept(inside)))),
        ),
    }


def nested_nodes(nodes: Any) -> Iterator[Node]:
    """``nodes`` and those inside them, at any depth."""
    for node in nodes:
        yield node
        structure = structure_of(node)
        if structure is not None:
            for program in structure.programs:
                yield from nested_nodes(program.nodes)


def operation_names(nodes: Any) -> list[str]:
    """The user's operations in ``nodes``, inside of loops and branches too, but no constants."""
    inner = (node for node in nested_nodes(nodes) if structure_of(node) is None)
    return list(dict.fromkeys(node.op.name for node in inner if not is_constant(node)))


def _touched(structure: Structure) -> Touched:
    reads: dict[Operation, None] = {}
    writes: dict[Operation, None] = {}
    random: dict[Operation, None] = {}
    reshaped: dict[Operation, None] = {}
    for program in structure.programs:
        access = ReachedState(program) if isinstance(structure, Dynamic) else StateAccess(program)
        for node in program.nodes:
            if structure_of(node) is not None:
                inner = touched_by(node)
                reads.update(dict.fromkeys(inner.reads))
                writes.update(dict.fromkeys(inner.writes))
                random.update(dict.fromkeys(inner.random))
                reshaped.update(dict.fromkeys(inner.reshaped))
                continue
            if node.op_def.variable:
                continue
            reads.update(dict.fromkeys(access.reads(node)))
            writes.update(dict.fromkeys(access.writes(node)))
            if node.op_def.random is not None:
                random[node.op] = None
            if node.op_def.overwrites:
                written = access.writes(node)
                reshaped.update((v, None) for v in written if not keeps_shape(node, v))
    return Touched(tuple(reads), tuple(writes), tuple(random), tuple(reshaped))
