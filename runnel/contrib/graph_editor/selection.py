"""Operations and tensors chosen by their names, or by what they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runnel.contrib.graph_editor.elements import (
    make_list_of_op,
    make_list_of_t,
    unique,
)
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor

_FOR_TENSORS = "(?#ts)"
"""A comment that begins the patterns of tensors, where both may be meant."""


def can_be_regex(obj: Any) -> bool:
    """True for a pattern, compiled or not."""
    return isinstance(obj, str | re.Pattern)


def make_regex(obj: Any) -> re.Pattern[str]:
    """A compiled pattern."""
    if not can_be_regex(obj):
        raise ValueError(f"Expected a string or a regex, got: {type(obj).__name__}")
    return re.compile(obj) if isinstance(obj, str) else obj


def _admits(positive_filter: Any) -> Callable[[Any], bool]:
    return (lambda _: True) if positive_filter is True else positive_filter


def filter_ts(ops: Any, positive_filter: Any) -> list[Tensor]:
    """The inputs and outputs of ``ops`` that a function admits; ``True`` admits all."""
    admits = _admits(positive_filter)
    tensors = (t for op in make_list_of_op(ops) for t in (*op.inputs, *op.outputs))
    return unique(tensor for tensor in tensors if admits(tensor))


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Tensor]:
    """The inputs and outputs of ``ops`` in whose names a pattern is found."""
    pattern = make_regex(regex)
    return filter_ts(ops, lambda tensor: pattern.search(tensor.name) is not None)


def filter_ops(ops: Any, positive_filter: Any) -> list[Operation]:
    """The operations that a function admits; ``True`` admits all."""
    admits = _admits(positive_filter)
    return [op for op in make_list_of_op(ops) if admits(op)]


def filter_ops_from_regex(ops: Any, regex: Any) -> list[Operation]:
    """The operations in whose names a pattern is found."""
    pattern = make_regex(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name) is not None)


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations in a scope of names, and the one that has its name."""
    inside = f"{scope.rstrip('/')}/" if scope else ""
    return [
        op for op in make_list_of_op(ops) if op.name.startswith(inside) or op.name == inside[:-1]
    ]


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The tensors that ``ops`` take from others, those that others can take, and those inside.

    An output that nobody takes, or somebody else does, is of the second kind.
    """
    chosen = make_list_of_op(ops)
    there = set(chosen)
    inputs = unique(t for op in chosen for t in op.inputs if t.op not in there)
    outputs, inner = [], []
    for tensor in (tensor for op in chosen for tensor in op.outputs):
        takers = tensor.consumers()
        if not takers or any(op not in there for op in takers):
            outputs.append(tensor)
        if any(op in there for op in takers):
            inner.append(tensor)
    return inputs, outputs, inner


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Operation]:
    """The operations next to ``ops``: whose tensors they take, and who takes theirs."""
    if control_ios is not None:
        control_inputs, control_outputs = True, control_ios
    found: list[Operation] = []
    for op in make_list_of_op(ops):
        found += [tensor.op for tensor in op.inputs]
        found += [other for tensor in op.outputs for other in tensor.consumers()]
        if control_inputs:
            found += op.control_inputs
        if control_outputs is not None:
            found += control_outputs.get(op) or ()
    return unique(found)


def select_ops(
    *args: Any,
    graph: Graph | None = None,
    positive_filter: Any = None,
    restrict_ops_regex: bool = False,
) -> list[Operation]:
    """The operations among ``args``: operations, and patterns for the names of ``graph``.

    With ``restrict_ops_regex`` only patterns that begin with ``(?#ops)`` are for operations.
    """
    found: list[Operation] = []
    for arg in args:
        if not can_be_regex(arg):
            found += make_list_of_op(arg, ignore_ts=True)
            continue
        pattern = make_regex(arg)
        if pattern.pattern.startswith(_FOR_TENSORS):
            continue
        if restrict_ops_regex and not pattern.pattern.startswith("(?#ops)"):
            continue
        found += filter_ops_from_regex(_searched(graph), pattern)
    return unique(op for op in found if positive_filter is None or positive_filter(op))


def select_ts(
    *args: Any,
    graph: Graph | None = None,
    positive_filter: Any = None,
    restrict_ts_regex: bool = False,
) -> list[Tensor]:
    """The tensors among ``args``: tensors, and patterns for the names of ``graph``.

    With ``restrict_ts_regex`` only patterns that begin with ``(?#ts)`` are for tensors.
    """
    found: list[Tensor] = []
    for arg in args:
        if not can_be_regex(arg):
            found += make_list_of_t(arg, ignore_ops=True)
            continue
        pattern = make_regex(arg)
        if pattern.pattern.startswith("(?#ops)"):
            continue
        if restrict_ts_regex and not pattern.pattern.startswith(_FOR_TENSORS):
            continue
        tensors = (t for op in _searched(graph).get_operations() for t in op.outputs)
        found += [tensor for tensor in tensors if pattern.search(tensor.name)]
    return unique(tensor for tensor in found if positive_filter is None or positive_filter(tensor))


def select_ops_and_ts(
    *args: Any, graph: Graph | None = None
) -> tuple[list[Operation], list[Tensor]]:
    """The operations and the tensors among ``args``; patterns of tensors begin with ``(?#ts)``."""
    ops = select_ops(*args, graph=graph)
    return ops, select_ts(*args, graph=graph, restrict_ts_regex=True)


def _searched(graph: Graph | None) -> Graph:
    if graph is None:
        raise ValueError("Use the keyword argument 'graph' to choose by a pattern.")
    return graph
