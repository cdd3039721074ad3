"""Lists of operations and tensors, of one graph, from what programs give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.variables.variable import Variable


def is_iterable(value: Any) -> bool:
    """True for a collection, which a tensor is not."""
    return not isinstance(value, Tensor | Operation | Graph | str) and hasattr(value, "__iter__")


def as_elements(values: Any) -> list[Any]:
    """The operations and tensors of a nest of collections, in their order; variables as tensors."""
    if isinstance(values, Variable):
        return [values.op.outputs[0] if values.dtype.is_ref_dtype else values.value()]
    if is_iterable(values):
        return [element for value in values for element in as_elements(value)]
    return [values]


def require_one_graph(elements: Iterable[Any]) -> None:
    """Refuses elements of several graphs."""
    graphs = {element.graph for element in elements}
    if len(graphs) > 1:
        raise ValueError(f"These operations and tensors are of {len(graphs)} graphs, not of one.")


def _of(kind: Any, values: Any, ignored: Any) -> list[Any]:
    found = as_elements(values)
    for element in found:
        if not isinstance(element, (kind, *ignored)):
            raise TypeError(f"Expected {kind.__name__}s, got {element!r}")
    chosen = [element for element in found if isinstance(element, kind)]
    require_one_graph(chosen)
    return chosen


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """The operations of a collection, or of a graph; with ``ignore_ts`` it may have tensors."""
    if isinstance(ops, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: give the operations, not their graph")
        return ops.get_operations()
    return _of(Operation, ops, (Tensor,) if ignore_ts else ())


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """The tensors of a collection, or of a graph; with ``ignore_ops`` it may have operations."""
    if isinstance(ts, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: give the tensors, not their graph")
        return get_tensors(ts)
    return _of(Tensor, ts, (Operation,) if ignore_ops else ())


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph."""
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


def unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order of their first places."""
    return list(dict.fromkeys(elements))


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations whose outputs ``ts`` are."""
    return unique(tensor.op for tensor in make_list_of_t(ts, allow_graph=False))


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take ``ts``."""
    tensors = make_list_of_t(ts, allow_graph=False)
    return unique(op for tensor in tensors for op in tensor.consumers())


def scope_prefix(name: str) -> str:
    """The scope of a name, with its last slash; empty without one."""
    return name[: name.rfind("/") + 1]
