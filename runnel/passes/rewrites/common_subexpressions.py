"""Merges nodes that compute the same thing from the same values."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.dtypes import DType, resource
from runnel.graph.shapes import TensorShape
from runnel.passes.program.program import Node, Program, Replacements

_MAX_CONSTANT_BYTES = 1 << 12
_PLAIN = frozenset({bool, int, str, bytes, DType, type(None)})


def merge_common_subexpressions(program: Program) -> Program:
    """The program with each pure computation made once."""
    first: dict[Any, Node] = {}
    replaced = Replacements()
    nodes: list[Node] = []
    for original in program.nodes:
        node = replaced.applied(original)
        key = _key(program, node)
        known = first.setdefault(key, node) if key is not None else node
        if known is node:
            nodes.append(node)
        else:
            replaced.values.update(zip(node.outputs, known.outputs, strict=True))
            replaced.nodes[original] = known  # those who await the duplicate await the first
    return replaced.program(program, nodes)


def _key(program: Program, node: Node) -> Any:
    if node.op_def.stateful or node.control or "structure" in node.attrs:
        return None
    for value in node.inputs:
        dtype = program.infos[value].dtype
        if dtype.is_ref_dtype or dtype is resource:
            return None  # reading a variable: the moment matters
    attrs = []
    for name, value in node.attrs.items():
        if name.startswith("_"):
            continue
        same = frozen(value)
        if same is None:
            return None
        attrs.append((name, same))
    # Who asks for the same computation on two devices wants it on both.
    device = node.op.device if node.inputs else ""
    return (node.op_def, node.inputs, tuple(attrs), device)


def frozen(value: Any) -> Any:
    """Something hashable, equal for values that are the same; None for what is too large."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value  # 1 and True are equal but not the same
    if isinstance(value, np.ndarray):
        if value.nbytes > _MAX_CONSTANT_BYTES or value.dtype == object:
            return None
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list):
        items = tuple(frozen(item) for item in value)
        return None if None in items else items
    if isinstance(value, TensorShape):
        return ("shape", value._dims)
    # Nor are 0.0 and -0.0.
    return (type(value).__name__, repr(value))
