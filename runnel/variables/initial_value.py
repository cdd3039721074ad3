"""Initial values that depend on other variables.

``w = tf.Variable(v * 2)`` must give the same ``w`` whether ``v`` has been initialised before or is
initialised in the same step or not yet at all. So the initial value is rebuilt to use, in place of
``v``, its :meth:`~runnel.variables.variable.Variable.initialized_value`.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor

# What these give does not depend on whether a variable is initialised, or is read on purpose.
_TESTS = frozenset({"IsVariableInitialized", "VarIsInitializedOp"})
_STOPS = _TESTS | {"ReadVariableOp"}


def safe_initial_value(variable_name: str, value: Tensor) -> Tensor:
    """``value``, computed from the initialised values of the variables that it depends on."""
    ancestors = _ancestors(value.op)
    if not any([op.op_def.variable for op in ancestors]):
        return value
    ancestors.sort(key=lambda op: op.id)
    graph = value.graph
    variables = _variables_of(graph)
    replaced: dict[Tensor, Tensor] = {}
    for op in ancestors:
        if op.op_def.variable:
            variable = variables.get(op)
            if variable is not None:
                replaced[op.outputs[0]] = variable.initialized_value()
        elif any(tensor in replaced for tensor in op.inputs):
            copy = _copy(graph, op, [replaced.get(t, t) for t in op.inputs], variable_name)
            replaced.update(zip(op.outputs, copy.outputs, strict=True))
    return replaced.get(value, value)


def _ancestors(op: Operation) -> list[Operation]:
    """The operations that ``op`` is computed from, up to those that are safe as they are."""
    found: dict[Operation, None] = {}
    stack = [op]
    while stack:
        current = stack.pop()
        op_def = current.op_def
        stop = op_def.name in _STOPS or op_def.updates or op_def.overwrites
        if stop or current in found or _is_initialized_value(current):
            continue
        found[current] = None
        stack += [tensor.op for tensor in current.inputs]
    return list(found)


def _is_initialized_value(op: Operation) -> bool:
    """True for the result of :meth:`Variable.initialized_value`: a conditional on that question."""
    if op.op_def.name != "Merge":
        return False
    switches = [tensor.op for tensor in op.inputs if tensor.op.type in ("Switch", "RefSwitch")]
    for switch in switches:
        pred = switch.inputs[1].op
        while pred.type == "Identity":
            pred = pred.inputs[0].op
        if pred.type in _TESTS:
            return True
    return False


def _variables_of(graph: Graph) -> dict[Operation, Any]:
    found: dict[Operation, Any] = {}
    for collection in (GraphKeys.LOCAL_VARIABLES, GraphKeys.GLOBAL_VARIABLES):
        for variable in graph.get_collection(collection):
            if hasattr(variable, "initialized_value"):
                found[variable.op] = variable
    return found


def _copy(graph: Graph, op: Operation, inputs: list[Tensor], variable_name: str) -> Operation:
    name = f"{op.name}_{variable_name}/"  # a slash at the end: the full name
    types = [tensor.dtype for tensor in op.outputs]
    return graph.add_op(op.op_def, inputs, dict(op.attrs), types, name)
