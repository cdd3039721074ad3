"""Makes reads of variables explicit: one for each version of a variable that a step sees.

A node that takes a variable reads its value at that point of the step. This pass replaces the
variable's reference, in every node but updates, by the value of a read, which it places before the
first node that needs that version. Afterwards the nodes between are pure functions of values, which
the other passes may merge and replace.

``<variable>/read``, through which a program uses TensorFlow's reference variables, stands for the
variable itself: using it reads the variable where it is used, as in ``v + 1``.
"""

from __future__ import annotations

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node, Program, made
from runnel.passes.program.state_access import variable_name


def explicit_reads(program: Program) -> Program:
    """The program with a read for each version of each variable."""
    if not any(node.op_def.variable for node in program.nodes):
        return program
    return _Reads(program).run()


def is_variable_read(node: Node) -> bool:
    """True for ``<variable>/read``, which is read where it is used."""
    if node.op_def.name != "Identity" or node.control or not node.op.inputs:
        return False
    source = node.op.inputs[0].op
    return source.op_def.variable and node.op.name == f"{source.name}/read"


def value_names(program: Program) -> dict[int, str]:
    """What people call each value: the operation that makes it, or the variable that is read."""
    names = {number: fed.op.name for fed, number in program.feeds.items()}
    handles = {node.outputs[0] for node in program.nodes if node.op_def.variable}
    for node in program.nodes:
        name = node.op.name
        if node.op_def.name == "Identity" and node.inputs[0] in handles:
            name = f"{names[node.inputs[0]]}/read"
        names.update(dict.fromkeys(node.outputs, name))
    return names


class _Reads:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._variable_of: dict[int, Operation] = {}
        self._by_name: dict[tuple[str, str, str], Operation] = {}
        self._handle_of: dict[Operation, int] = {}
        self._updated: dict[int, Operation] = {}
        """The variable behind the reference that an update returns."""
        self._version: dict[Operation, int] = {}
        self._reads: dict[tuple[Operation, int], int] = {}
        self._nodes: list[Node] = []
        self._moved: dict[Node, Node | None] = {}

    def run(self) -> Program:
        program = self._program
        for node in program.nodes:
            if node.op_def.variable:
                self._add_variable(node)
            elif self._stands_for_variable(node):
                self._variable_of[node.outputs[0]] = self._variable_of[node.inputs[0]]
                self._moved[node] = None
            else:
                self._visit(node)
        fetches = tuple(
            self._handle_of[self._variable_of[v]] if v in self._variable_of else v
            for v in program.fetches
        )
        return Program(self._nodes, program.feeds, fetches, program.infos)

    def _add_variable(self, node: Node) -> None:
        """Two operations that share a name denote one variable: the first stands for both."""
        op = node.op
        variable = self._by_name.setdefault((op.type, *variable_name(op)), op)
        self._variable_of[node.outputs[0]] = variable
        self._handle_of.setdefault(variable, node.outputs[0])
        self._nodes.append(node)

    def _stands_for_variable(self, node: Node) -> bool:
        return is_variable_read(node) and node.inputs[0] in self._variable_of

    def _visit(self, node: Node) -> None:
        positions = (*node.op_def.updates, *node.op_def.overwrites)
        new = node
        touches = not self._variable_of.keys().isdisjoint(node.inputs)
        if touches or (node.control and not self._moved.keys().isdisjoint(node.control)):
            inputs = tuple([self._input(node, i, v, positions) for i, v in enumerate(node.inputs)])
            control = tuple(
                moved for c in node.control if (moved := self._moved.get(c, c)) is not None
            )
            new = self._moved[node] = node.taking(inputs, control)
        self._nodes.append(new)
        if "touched" in node.attrs:  # a structured node
            for variable in node.attrs["touched"].writes:
                self._version[variable] = self._version.get(variable, 0) + 1
        for position in positions:
            variable = self._written(node, position)
            self._version[variable] = self._version.get(variable, 0) + 1
            for value in node.outputs:
                if self._program.infos[value].dtype.is_ref_dtype:
                    self._updated[value] = variable

    def _written(self, node: Node, position: int) -> Operation:
        value = node.inputs[position]
        variable = self._variable_of.get(value) or self._updated.get(value)
        if variable is None:
            raise InvalidArgumentError(
                None,
                node.op,
                f"Input {position} of {node.op.name!r} must be a variable that this step can "
                "find in the graph; a fed or computed reference cannot be updated.",
            )
        return variable

    def _input(self, node: Node, position: int, value: int, positions: tuple[int, ...]) -> int:
        variable = self._variable_of.get(value)
        if variable is None:
            return value
        handle = self._handle_of[variable]
        by_handle = self._program.infos[handle].dtype.name == "resource"
        if position in positions or by_handle or node.op_def.allows_uninitialized:
            return handle
        key = (variable, self._version.get(variable, 0))
        if key not in self._reads:
            info = self._program.infos[handle]
            dtype = info.dtype.base_dtype
            read = self._program.new_value(dtype, info.dims)
            self._nodes.append(made("Identity", node.op, (handle,), (read,), {"T": dtype}))
            self._reads[key] = read
        return self._reads[key]
