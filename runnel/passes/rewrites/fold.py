"""Constant folding: computes nodes that depend only on constants once, when the plan is made."""

from __future__ import annotations

import numpy as np

from runnel.graph.registry import INTERPRETED
from runnel.graph.shapes import num_elements
from runnel.passes.program.kernel_call import bind, fail_now
from runnel.passes.program.program import Node, Program, Replacements, ValueInfo, made

_MAX_ELEMENTS = 1 << 14


def fold_constants(program: Program) -> Program:
    """The program with nodes of constant inputs replaced by their values."""
    constants: dict[int, np.ndarray] = {}
    awaited: dict[int, tuple[Node, ...]] = {}
    """What has to run before whoever uses a constant: it was computed from one that waits."""
    nodes: list[Node] = []
    replaced = Replacements()
    for original in program.nodes:
        node = replaced.applied(original)
        if node.op_def.name == "Const":
            constants[node.outputs[0]] = node.attrs["value"]
            if node.control:
                awaited[node.outputs[0]] = node.control
            nodes.append(node)
            continue
        value = _fold(program, node, constants)
        if value is None:
            nodes.append(node)
            continue
        number = node.outputs[0]
        constants[number] = value
        program.infos[number] = ValueInfo(program.infos[number].dtype, value.shape)
        attrs = {"value": value, "dtype": program.infos[number].dtype}
        control = node.control
        if awaited:
            before = [c for value in node.inputs for c in awaited.get(value, ())]
            control = tuple(dict.fromkeys([*control, *before]))
        if control:
            awaited[number] = control
        folded = replaced.nodes[original] = made("Const", node.op, (), (number,), attrs, control)
        nodes.append(folded)
    return replaced.program(program, nodes)


def _fold(program: Program, node: Node, constants: dict[int, np.ndarray]) -> np.ndarray | None:
    op_def = node.op_def
    if op_def.stateful or op_def.host or len(node.outputs) != 1:
        return None
    if not node.inputs:
        return None
    if op_def.known_from_shapes:
        return _from_shape(program, node)
    if not all(value in constants for value in node.inputs):
        return None
    kernel = op_def.select_kernel("CPU", node.dtype, INTERPRETED)
    if kernel is None or "stream" in kernel.parameters:
        return None
    inputs = [constants[value] for value in node.inputs]
    if any(array.size > _MAX_ELEMENTS for array in inputs):
        return None
    dims = program.infos[node.outputs[0]].dims
    size = num_elements(dims)
    if size is None or size > _MAX_ELEMENTS:
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.array(bind(kernel, node, np, fail_now)(*inputs))
    except Exception:  # noqa: BLE001 (it fails in the same way, with its op, when it runs)
        return None
    result.flags.writeable = False
    return result


def _from_shape(program: Program, node: Node) -> np.ndarray | None:
    dims = program.infos[node.inputs[0]].dims
    dtype = program.infos[node.outputs[0]].dtype.np_dtype
    if dims is None:
        return None
    if node.op_def.name == "Rank":
        return np.array(len(dims), dtype)
    size = num_elements(dims)
    if size is None:
        return None
    if node.op_def.name == "Shape":
        return np.array(dims, dtype)
    return np.array(size, dtype) if node.op_def.name == "Size" else None
