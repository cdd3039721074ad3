"""A step as passes hand it to one another: a straight-line program.

A program is a list of nodes in the order in which they run: the order of construction, which agrees
with every data and control edge. Values are numbered. A feed or a node defines each once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runnel.graph.dtypes import DType
from runnel.graph.operation import Operation
from runnel.graph.registry import OpDef
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

    @property
    def dtype(self) -> DType | None:
        """The element type that selects a kernel: the value of the first type attribute."""
        return first_type(self.op_def, self.attrs)

    def __repr__(self) -> str:
        return f"<Node {self.op.name} {self.op_def.name} {self.inputs} -> {self.outputs}>"


def is_constant(node: Node) -> bool:
    """True for a constant that waits for nothing: whoever uses it may have a copy."""
    return node.op_def.name == "Const" and not node.control


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

    def new_value(self, info: ValueInfo) -> int:
        """The number of a new value."""
        self.infos.append(info)
        return len(self.infos) - 1

    def producers(self) -> dict[int, Node]:
        """The node that defines each value."""
        return {value: node for node in self.nodes for value in node.outputs}
