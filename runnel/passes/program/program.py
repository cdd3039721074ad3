"""A step as passes hand it to one another: a straight-line program.

A program is a list of nodes in the order in which they run: the order of construction, which agrees
with every data and control edge. Values are numbered. A feed or a node defines each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef, get_op_def
from runnel.graph.shapes import Dims


class Node:
    """One operation of a step.

    ``inputs`` and ``outputs`` are value numbers; ``control`` are the nodes that must run
    before; ``op`` is the operation of the user's graph that this came from, for errors.
    """

    __slots__ = ("op", "op_def", "inputs", "outputs", "control", "attrs")

    def __init__(
        self,
        op: Operation,
        op_def: OpDef,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        control: tuple[Node, ...],
        attrs: dict[str, Any],
    ) -> None:
        self.op = op
        self.op_def = op_def
        self.inputs = inputs
        self.outputs = outputs
        self.control = control
        self.attrs = attrs

    def taking(self, inputs: tuple[int, ...], control: tuple[Node, ...]) -> Node:
        """The same node, with other inputs and control edges."""
        return Node(self.op, self.op_def, inputs, self.outputs, control, self.attrs)

    @property
    def dtype(self) -> DType | None:
        """The element type that selects a kernel: the value of the first type attribute."""
        return first_type(self.op_def, self.attrs)

    def __repr__(self) -> str:
        return f"<Node {self.op.name} {self.op_def.name} {self.inputs} -> {self.outputs}>"


def is_constant(node: Node) -> bool:
    """True for a constant that waits for nothing: whoever uses it may have a copy."""
    return node.op_def.name == "Const" and not node.control


def made(
    kind: str,
    op: Operation,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    attrs: dict[str, Any],
    control: tuple[Node, ...] = (),
) -> Node:
    """A node of type ``kind`` that a pass makes for ``op``; defaults complete ``attrs``."""
    op_def = get_op_def(kind)
    return Node(op, op_def, inputs, outputs, control, {**op_def.defaults, **attrs})


def copied(nodes: Iterable[Node]) -> dict[Node, Node]:
    """Copies of ``nodes``, each waiting for copies only, by the nodes that they are of."""
    copies: dict[Node, Node] = {}
    for node in nodes:
        control = tuple([copies[c] for c in node.control if c in copies])
        copies[node] = node.taking(node.inputs, control)
    return copies


def first_type(op_def: OpDef, attrs: dict[str, Any]) -> DType | None:
    """The value of the first type attribute: what selects a kernel."""
    value = attrs.get(op_def.kernel_type or "")
    return value if isinstance(value, DType) else None


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """What is known of a value before the step runs."""

    dtype: DType
    dims: Dims
    optional: bool = False
    """Whether a branch that is not taken leaves it without a value."""


@dataclass(slots=True)
class Program:
    """A step before it is clustered.

    ``feeds`` maps fed tensors to value numbers; ``fetches`` are the value numbers to return.
    ``infos`` has an entry for each value.

    The programs inside a loop or a conditional (``passes.structure.structured``) are programs too:
    their feeds are by position, and a fetch may be None.
    """

    nodes: list[Node]
    feeds: dict[Any, int]
    fetches: tuple[Any, ...]
    infos: list[ValueInfo] = field(default_factory=list)

    def new_value(self, dtype: DType, dims: Dims, optional: bool = False) -> int:
        """The number of a new value."""
        self.infos.append(ValueInfo(dtype, dims, optional))
        return len(self.infos) - 1

    def constant(self, op: Operation, array: np.ndarray) -> Node:
        """A node with a new value, ``array``, which nobody may change any more."""
        array.flags.writeable = False
        dtype = as_dtype(array.dtype)
        value = self.new_value(dtype, array.shape)
        return made("Const", op, (), (value,), {"value": array, "dtype": dtype})

    def producers(self) -> dict[int, Node]:
        """The node that defines each value."""
        return {value: node for node in self.nodes for value in node.outputs}

    def takers(self) -> dict[int, list[Node]]:
        """The nodes that take each value: one that takes it twice is there twice."""
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                found.setdefault(value, []).append(node)
        return found


class Replacements:
    """What a pass, on its way through a program, puts in place of values and nodes."""

    __slots__ = ("values", "nodes")

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.nodes: dict[Node, Node] = {}

    def applied(self, node: Node) -> Node:
        """``node`` with what it takes and waits for replaced; itself where nothing of that is."""
        values, nodes = self.values, self.nodes
        if not values or values.keys().isdisjoint(node.inputs):
            if not node.control or nodes.keys().isdisjoint(node.control):
                return node
        inputs = tuple([values.get(v, v) for v in node.inputs])
        control = tuple([nodes.get(c, c) for c in node.control])
        new = nodes[node] = node.taking(inputs, control)
        return new

    def program(self, program: Program, nodes: list[Node]) -> Program:
        """``program`` with ``nodes`` for its own, and what it fetches replaced."""
        fetches = tuple([self.values.get(v, v) for v in program.fetches])
        return Program(nodes, program.feeds, fetches, program.infos)
