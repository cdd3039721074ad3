"""The executable specification of a program: what every pass must leave true."""

from __future__ import annotations

from runnel.graph.apply import output_types
from runnel.graph.loop_edges import MERGES, NEXT_ITERATIONS
from runnel.passes.program.program import Node, Program


class InvalidProgram(AssertionError):
    """A pass has left a program that breaks a rule."""


def check_program(program: Program, after: str) -> None:
    """Raises :class:`InvalidProgram` unless

    * every value is defined once, by a feed or a node, and before it is used (unless it is the end
      of an iteration, which the next one begins with),
    * every node has as many inputs, of the types, that its signature says,
    * control edges point to nodes that run earlier,
    * every fetch is defined.
    """
    defined = set(program.feeds.values())
    seen: set[Node] = set()
    ends = {v for n in program.nodes if n.op_def.name in NEXT_ITERATIONS for v in n.outputs}
    for node in program.nodes:
        for value in node.inputs:
            if value not in defined and not (node.op_def.name in MERGES and value in ends):
                raise InvalidProgram(
                    f"after {after}: {node} uses value {value} before it is defined"
                )
        for value in node.outputs:
            if value in defined:
                raise InvalidProgram(f"after {after}: {node} defines value {value} again")
            defined.add(value)
        for control in node.control:
            if control not in seen:
                raise InvalidProgram(f"after {after}: {node} must follow {control}")
        seen.add(node)
        _check_types(program, node, after)
    for value in program.fetches:
        if value is not None and value not in defined:
            raise InvalidProgram(f"after {after}: fetched value {value} is never defined")


def _check_types(program: Program, node: Node, after: str) -> None:
    expected = [
        dtype.base_dtype for argument in node.op_def.inputs for dtype in argument.types(node.attrs)
    ]
    actual = [program.infos[value].dtype.base_dtype for value in node.inputs]
    if expected != actual:
        raise InvalidProgram(f"after {after}: {node} takes {expected}, but is given {actual}")
    types = [t.base_dtype for t in output_types(node.op_def, node.attrs)]
    given = [program.infos[value].dtype.base_dtype for value in node.outputs]
    if types != given:
        raise InvalidProgram(f"after {after}: {node} gives {types}, but its values are {given}")
