"""Loops whose contexts are not known, found again in the graph: those of an imported GraphDef.

A frame is what ``Enter`` ops of one name lead into. A loop that ``tf.while_loop`` builds says
everything else by its primitives: a constant ``Enter`` is what comes from outside, another begins a
variable, whose ``Merge``, ``Switch`` and ``Exit`` follow it.
"""

from __future__ import annotations

from typing import Any

from runnel.control_flow import context as contexts
from runnel.control_flow.loop_variable import LoopVariable
from runnel.control_flow.while_context import WhileContext
from runnel.graph.graph import Graph
from runnel.graph.loop_edges import closes_loop
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import identity
from runnel.ops.control_flow import ENTERS, EXITS, SWITCHES, is_loop_merge


def recover_loops(graph: Graph, operations: list[Operation]) -> list[Operation]:
    """Gives those of ``operations`` that are in loops without a context one; returns them.

    They are as if they had been built here. ``operations`` are in the order of construction.
    """
    if any(op.op_def.name in ENTERS and _has_lost_its_loop(op) for op in operations):
        return _Recovery(graph).run(operations)
    return []


def _has_lost_its_loop(enter: Operation) -> bool:
    loop = contexts.while_context_of(enter)
    return loop is None or loop.name != enter.attrs["frame_name"]


class _Recovery:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._found: dict[tuple[Any, str], WhileContext] = {}
        self._inside: dict[Operation, Any] = {}
        """The context of the outputs of each operation."""

    def run(self, operations: list[Operation]) -> list[Operation]:
        placed: list[Operation] = []
        for op in operations:
            kind = op.op_def.name
            around = self._around(op)
            if kind in ENTERS and _has_lost_its_loop(op):
                loop = self._loop(around, op)
                op.control_flow_context = loop
                placed.append(op)
                self._inside[op] = loop
                self._add_enter(loop, op)
                continue
            inside = around.GetWhileContext() if around is not None else None
            if inside is not None and op.control_flow_context is not around:
                op.control_flow_context = around
                placed.append(op)
                inside._values.update(op.outputs)
                self._note(inside, op)
            self._inside[op] = contexts.output_context(op)
            if kind in EXITS and op.control_flow_context is not None:
                op.control_flow_context.ExitResult(op.outputs)
        for loop in self._found.values():
            self._complete(loop)
        return placed

    def _around(self, op: Operation) -> Any:
        """The context in which ``op`` runs: the innermost from which something comes."""
        found: Any = op.control_flow_context
        if op.op_def.name in ENTERS and not _has_lost_its_loop(op):
            return found
        depth = _depth(found)
        sources = [t.op for t in op.inputs if not closes_loop(t, op)]
        for source in (*sources, *op.control_inputs):
            context = self._inside.get(source)
            if context is None:
                context = contexts.output_context(source)
            if _depth(context) > depth:
                found, depth = context, _depth(context)
        return found

    def _loop(self, outer: Any, enter: Operation) -> WhileContext:
        name = enter.attrs["frame_name"]
        found = self._found.get((outer, name))
        if found is None:
            graph = self._graph
            with graph._scopes.override(control_flow_context=outer):
                found = WhileContext(
                    parallel_iterations=enter.attrs["parallel_iterations"], name=name
                )
            found._name = name  # the frame's, whatever names this graph has
            self._found[outer, name] = found
        return found

    @staticmethod
    def _add_enter(loop: WhileContext, op: Operation) -> None:
        entered = op.outputs[0]
        loop._values.add(entered)
        if op.attrs["is_constant"]:
            loop._external_values[op.inputs[0]] = entered
        else:
            loop._loop_enters.append(entered)

    @staticmethod
    def _note(loop: WhileContext, op: Operation) -> None:
        kind = op.op_def.name
        if kind == "LoopCond":
            loop._pivot = op.outputs[0]
        elif is_loop_merge(op):
            loop._variables.append(LoopVariable(op.inputs[0], op.outputs[0]))
        elif kind in EXITS or kind in SWITCHES:
            _complete_variable(loop, op)
        elif kind == "Identity" and loop._pivot_for_body is None:
            if any(v.start is op.inputs[0] for v in loop.variables):
                loop._pivot_for_body = op.outputs[0]

    def _complete(self, loop: WhileContext) -> None:
        starts = [v.start for v in loop.variables if v.start is not None]
        if loop.variables:
            loop._pivot_for_pred = loop.variables[0].merged
        if starts and loop._pivot_for_body is None:
            # Not the Switch itself: that runs also where the loop ends.
            with self._graph._scopes.override(control_flow_context=loop):
                loop._pivot_for_body = identity(starts[0])


def _complete_variable(loop: WhileContext, op: Operation) -> None:
    source: Tensor = op.inputs[0]
    leaves = op.op_def.name in EXITS
    for variable in loop.variables:
        if leaves:
            if variable.switch is source.op and source.value_index == 0:
                variable.exit = op.outputs[0]
                return
        elif variable.merged is source and op.inputs[1] is loop.pivot:
            variable.switch = op
            return
    if leaves:
        loop._stray_exits.append(op.outputs[0])


def _depth(context: Any) -> int:
    depth = 0
    while context is not None:
        depth += 1
        context = context.outer_context
    return depth
