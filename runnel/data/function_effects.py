"""The effects of a dataset's function: each call has all of them, in the order of the program.

A function may print, assign or check without giving what comes of it. In a plain graph nothing
would ask for such an operation; TensorFlow runs every stateful operation of a dataset's function,
and those that touch the same variable one after the other. Here control edges say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runnel.graph import effects
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, control_dependencies
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import identity


def has_effect(op: Operation) -> bool:
    """Whether running ``op`` does more than to give its outputs."""
    return effects.has_effect(op.op_def)


def with_effects(outputs: Sequence[Tensor], body: Sequence[Operation]) -> list[Tensor]:
    """``outputs`` of a function of the operations ``body``, made after all its effects.

    What initialises a variable or a table that the function has made is the program's to run.
    """
    made = list(outputs)
    if not any(map(has_effect, body)):
        return made
    initializers = _initializers(body[0].graph)
    body = [op for op in body if op not in initializers]
    _order(body)
    if not any(map(has_effect, body)):
        return made
    inside = set(body)
    reached = ancestors([tensor.op for tensor in made], inside)
    left = [op for op in _to_run(body, inside) if op not in reached]
    if left:
        with control_dependencies(left):
            made[0] = identity(made[0])
    return made


def _initializers(graph: Graph) -> set[Operation]:
    variables = [
        variable
        for name in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        for variable in graph.get_collection(name)
    ]
    return {
        *(variable.initializer for variable in variables),
        *graph.get_collection(GraphKeys.TABLE_INITIALIZERS),
    }


def ancestors(ops: Iterable[Operation], body: set[Operation]) -> set[Operation]:
    """The operations of ``body`` that ``ops`` need, themselves included."""
    seen: set[Operation] = set()
    left = [op for op in ops if op in body]
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        before = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        left += [other for other in before if other in body]
    return seen


def _to_run(body: Sequence[Operation], inside: set[Operation]) -> list[Operation]:
    """What must run for all effects: of those in a branch or loop, what leaves that."""
    followers: dict[Operation, list[Operation]] = {}
    for op in body:
        for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            followers.setdefault(before, []).append(op)
    found: dict[Operation, None] = {}
    seen: set[Operation] = set()
    left = [op for op in reversed(body) if has_effect(op)]
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.control_flow_context is None:
            found[op] = None
        else:
            left += followers.get(op, [])
    return list(found)


def _order(body: Sequence[Operation]) -> None:
    """Has operations that touch one variable, or the world outside, run in their order.

    Those in branches and loops are left alone: control edges do not lead into these.
    """
    writers: dict[Operation, Operation] = {}
    readers: dict[Operation, list[Operation]] = {}
    outside: Operation | None = None
    for op in body:
        if op.control_flow_context is not None:
            continue
        before: dict[Operation, None] = {}
        touched = {tensor.op for tensor in op.inputs if tensor.op.op_def.variable}
        for variable in touched:
            if variable in writers:
                before[writers[variable]] = None
            if has_effect(op):
                before.update(dict.fromkeys(readers.pop(variable, ())))
                writers[variable] = op
            else:
                readers.setdefault(variable, []).append(op)
        if not touched and has_effect(op) and op.type != "Assert":
            if outside is not None:
                before[outside] = None
            outside = op
        missing = [other for other in before if other not in op.control_inputs]
        if missing:
            op._add_control_inputs(missing)
