"""Rewriting by local rules: each looks at a node and may replace the value that it computes.

In a program with the primitives of control flow, a value also has an iteration and a branch, and a
node that takes ``<variable>/read`` reads the variable when it runs. There the replacement of a node
waits for everything that the rule has looked at, so it is alive when the node was and no earlier.
Rules leave nodes that read a variable alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.apply import output_types
from runnel.graph.dtypes import resource
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import Dims, is_fully_defined
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES
from runnel.passes.program.program import Node, Program, Replacements
from runnel.passes.program.variable_reads import is_variable_read

Rule = Callable[["Rewriter", Node], "int | tuple[int, ...] | None"]

_PRIMITIVES = ENTERS | EXITS | MERGES | NEXT_ITERATIONS | SWITCHES


class RuleSet:
    """Rules by the type of the node that they replace."""

    def __init__(self) -> None:
        self._rules: dict[str, list[Rule]] = {}

    def rule(self, *op_types: str) -> Callable[[Rule], Rule]:
        """Registers ``rule(rewriter, node)``, which returns the replacing value or None.

        Where the node has several outputs, it returns a value for each.
        """

        def register(rule: Rule) -> Rule:
            for op_type in op_types:
                self._rules.setdefault(op_type, []).append(rule)
            return rule

        return register

    def apply(self, program: Program) -> Program:
        """The program with every rule applied where it matches, in one pass."""
        if not any(node.op_def.name in self._rules for node in program.nodes):
            return program
        return Rewriter(program, self._rules).run()


class Rewriter:
    """A program being rewritten: what rules may ask, and how they emit new nodes."""

    def __init__(self, program: Program, rules: dict[str, list[Rule]]) -> None:
        self._rules = rules
        self._program = program
        self.infos = program.infos
        self._producer: dict[int, Node] = {}
        self._replaced = Replacements()
        self._nodes: list[Node] = []
        self._current: Node | None = None
        # Where reads have not been made explicit, these stand for variables.
        self._variables = {v for n in program.nodes if is_variable_read(n) for v in n.outputs}
        self._dynamic = bool(self._variables) or any(
            node.op_def.name in _PRIMITIVES for node in program.nodes
        )
        self._looked_at: dict[Node, None] = {}
        """In a dynamic program: what a replacement of the current node has to wait for."""

    def run(self) -> Program:
        program = self._program
        awaited = {control for node in program.nodes for control in node.control}
        for original in program.nodes:
            node = self._replaced.applied(original)
            self._current = node
            replacement = None
            made_before = len(self.infos)
            rules = self._rules.get(node.op_def.name)
            if rules and not self._touches_state(node):
                for rule in rules:
                    self._looked_at.clear()
                    replacement = rule(self, node)
                    if replacement is not None:
                        break
            if replacement is not None:
                values = replacement if isinstance(replacement, tuple) else (replacement,)
                if self._dynamic:
                    values = tuple([self._waiting(value, made_before) for value in values])
                if values != node.outputs:
                    self._replaced.values.update(zip(node.outputs, values, strict=True))
                    if self._dynamic and original not in awaited:
                        continue  # nobody removes dead code there
            # A replaced node stays for those who await it; dead code removal decides.
            self._append(node)
        return self._replaced.program(program, self._nodes)

    def _waiting(self, value: int, made_before: int) -> int:
        """``value``, which waits for what the rule has looked at."""
        return (
            value if value >= made_before else self.emit("Identity", value, dims=self.dims(value))
        )

    def _touches_state(self, node: Node) -> bool:
        if self._variables and not self._variables.isdisjoint(node.inputs):
            return True
        infos = self.infos
        for value in node.inputs:
            dtype = infos[value].dtype
            if dtype.is_ref_dtype or dtype is resource:
                return True
        return False

    def _look_at(self, *nodes: Node) -> None:
        if self._dynamic:
            self._looked_at.update(dict.fromkeys(nodes))

    def _append(self, node: Node) -> None:
        self._nodes.append(node)
        for value in node.outputs:
            self._producer[value] = node

    # For rules ------------------------------------------------------------------------------

    def producer(self, value: int, *op_types: str) -> Node | None:
        """The node that computes ``value`` if it is of one of the types (and touches no state)."""
        node = self._producer.get(value)
        if node is None or node.op_def.name not in op_types or self._touches_state(node):
            return None
        self._look_at(node)
        return node

    def dims(self, value: int) -> Dims:
        return self.infos[value].dims

    def same_shape(self, a: int, b: int) -> bool:
        """True when both values are known to have the same shape."""
        dims = self.infos[a].dims
        return is_fully_defined(dims) and dims == self.infos[b].dims

    def constant(self, value: int) -> np.ndarray | None:
        """The array of a constant, or None."""
        node = self._producer.get(value)
        if node is not None and node.op_def.name == "Const":
            self._look_at(*node.control)
            return node.attrs["value"]
        return None

    def is_scalar_constant(self, value: int, number: float) -> bool:
        """True for a constant scalar that equals ``number``."""
        array = self.constant(value)
        return array is not None and array.ndim == 0 and array.dtype != object and array == number

    def emit(self, op_type: str, *inputs: int, dims: Dims = None, **attrs: Any) -> int:
        """Adds a node with one output, in place of the node being rewritten."""
        assert self._current is not None
        op_def = get_op_def(op_type)
        complete = {**op_def.defaults, **attrs}
        for argument, value in zip(op_def.inputs, inputs, strict=True):
            if argument.type_attr is not None:
                complete[argument.type_attr] = self.infos[value].dtype.base_dtype
        (dtype,) = output_types(op_def, complete)
        value = self._program.new_value(dtype, dims)
        current = self._current
        control = tuple(dict.fromkeys([*current.control, *self._looked_at]))
        self._append(Node(current.op, op_def, inputs, (value,), control, complete))
        return value
