"""A part of a graph: operations, the tensors that they take, and those that they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.graph_editor.elements import (
    as_elements,
    is_iterable,
    require_one_graph,
    unique,
)
from runnel.contrib.graph_editor.selection import (
    can_be_regex,
    compute_boundary_ts,
    get_name_scope_ops,
    select_ops_and_ts,
)
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor


class SubGraphView:
    """Operations, and ordered lists of their inputs and outputs.

    ``passthrough_ts`` are tensors that are inputs and outputs at once. A view does not follow
    changes of its graph: make it anew.

    Example:
        >>> view = tf.contrib.graph_editor.sgv(hidden.op, logits.op)
        >>> view.inputs, view.outputs
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = unique(inside_ops)
        self._passthrough = unique(passthrough_ts)
        require_one_graph([*self._ops, *self._passthrough])
        inputs, outputs, _ = compute_boundary_ts(self._ops)
        # What is inside, and asked for, is an output as well.
        own = [tensor for tensor in self._passthrough if tensor.op in set(self._ops)]
        through = [tensor for tensor in self._passthrough if tensor.op not in set(self._ops)]
        self._inputs = unique([*inputs, *through])
        self._outputs = unique([*outputs, *own, *through])

    @property
    def graph(self) -> Graph | None:
        """Where its elements are; None of an empty one."""
        elements = [*self._ops, *self._passthrough]
        return elements[0].graph if elements else None

    @property
    def ops(self) -> list[Operation]:
        """The operations."""
        return list(self._ops)

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that it takes."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that it gives."""
        return list(self._outputs)

    @property
    def passthroughs(self) -> list[Tensor]:
        """Its tensors that are inputs and outputs at once."""
        return [tensor for tensor in self._inputs if tensor in set(self._outputs)]

    def op(self, op_id: int) -> Operation:
        """The operation at a place."""
        return self._ops[op_id]

    def is_passthrough(self, t: Tensor) -> bool:
        """True for a tensor that is an input and an output at once."""
        return t in self.passthroughs

    def remap(self, new_input_indices: Any = None, new_output_indices: Any = None) -> SubGraphView:
        """The view with some of its inputs and outputs, by place or as tensors, in that order."""
        copy = self._copy()
        if new_input_indices is not None:
            copy._inputs = _chosen(self._inputs, new_input_indices)
        if new_output_indices is not None:
            copy._outputs = _chosen(self._outputs, new_output_indices)
        return copy

    def remap_inputs(self, new_input_indices: Any) -> SubGraphView:
        """The view with some of its inputs."""
        return self.remap(new_input_indices)

    def remap_outputs(self, new_output_indices: Any) -> SubGraphView:
        """The view with some of its outputs."""
        return self.remap(None, new_output_indices)

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> Any:
        """The view with all its inputs and outputs again."""
        fresh = SubGraphView(self._ops, self._passthrough)
        return self.remap(
            fresh._inputs if remove_input_map else None,
            fresh._outputs if remove_output_map else None,
        )

    def _copy(self) -> SubGraphView:
        copy = SubGraphView.__new__(SubGraphView)
        copy._ops, copy._passthrough = self._ops, self._passthrough
        copy._inputs, copy._outputs = self._inputs, self._outputs
        return copy

    def _with_boundary(self, inputs: list[Tensor], outputs: list[Tensor]) -> SubGraphView:
        copy = self._copy()
        copy._inputs, copy._outputs = inputs, outputs
        return copy

    def __bool__(self) -> bool:
        return self.graph is not None

    def __enter__(self) -> SubGraphView:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        parts = (("ops", self._ops), ("inputs", self._inputs), ("outputs", self._outputs))
        lines = [f"SubGraphView (graphid={id(self.graph)}):"]
        for name, elements in parts:
            lines.append(f"** {name}[{len(elements)}]:")
            lines += [f"  {element.name}" for element in elements]
        return "\n".join(lines) + "\n"


def _chosen(tensors: Sequence[Tensor], places: Any) -> list[Tensor]:
    given = list(places) if is_iterable(places) else [places]
    return [place if isinstance(place, Tensor) else tensors[place] for place in given]


def make_view(*args: Any, graph: Graph | None = None) -> SubGraphView:
    """A view of operations and tensors, or of those whose names patterns find in ``graph``.

    A view is given back as it is.
    """
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    ops: list[Any] = []
    tensors: list[Any] = []
    for arg in args:
        if can_be_regex(arg):
            found = select_ops_and_ts(arg, graph=graph)
            ops += found[0]
            tensors += found[1]
            continue
        elements = as_elements(arg)
        ops += [element for element in elements if isinstance(element, Operation)]
        tensors += [element for element in elements if isinstance(element, Tensor)]
    return SubGraphView(ops, tensors)


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of all operations in a scope of names."""
    return SubGraphView(get_name_scope_ops(graph, scope))
