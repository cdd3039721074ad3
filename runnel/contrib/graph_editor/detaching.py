"""Parts of a graph cut off from the rest, and joined to others."""

from __future__ import annotations

from typing import Any

from runnel.contrib.graph_editor.placeholders import make_placeholder_from_tensor
from runnel.contrib.graph_editor.rerouting import remove_control_inputs, reroute_ts
from runnel.contrib.graph_editor.view import SubGraphView, make_view
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor


def _placeholders(view: SubGraphView, tensors: list[Tensor]) -> list[Tensor]:
    graph = view.graph
    if graph is None:
        return []
    with graph.as_default(), name_scope(None), graph.control_dependencies(None):
        return [make_placeholder_from_tensor(tensor) for tensor in tensors]


def detach_inputs(sgv: Any, control_inputs: bool = False) -> tuple[SubGraphView, list[Tensor]]:
    """Has the operations of a view take placeholders; returns it, and these.

    With ``control_inputs`` they no longer wait for others either.
    """
    view = make_view(sgv)
    instead = _placeholders(view, view.inputs)
    reroute_ts(instead, view.inputs, can_modify=view.ops)
    inside: set[Operation] = set(view.ops)
    for op in view.ops if control_inputs else ():
        remove_control_inputs(op, [other for other in op.control_inputs if other not in inside])
    return view._with_boundary(instead, view.outputs), instead


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[SubGraphView, list[Tensor]]:
    """Has those who take a view's outputs take placeholders; returns it, and these.

    ``control_outputs``, a mapping from operations to those that wait for them, says whose waiting
    ends.
    """
    view = make_view(sgv)
    inside = set(view.ops)
    taken = [
        tensor for tensor in view.outputs if any(op not in inside for op in tensor.consumers())
    ]
    instead = _placeholders(view, taken)
    reroute_ts(instead, taken, cannot_modify=view.ops)
    if control_outputs is not None:
        for op in view.ops:
            for waiting in control_outputs.get(op) or ():
                if waiting not in inside:
                    remove_control_inputs(waiting, [op])
    return view, instead


def detach(
    sgv: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[SubGraphView, list[Tensor], list[Tensor]]:
    """:func:`detach_inputs` and :func:`detach_outputs`."""
    if control_ios is not None:
        control_inputs, control_outputs = True, control_ios
    view, inputs = detach_inputs(sgv, control_inputs)
    view, outputs = detach_outputs(view, control_outputs)
    return view, inputs, outputs


def connect(
    sgv0: Any, sgv1: Any, disconnect_first: bool = False
) -> tuple[SubGraphView, SubGraphView]:
    """Has the second view take the outputs of the first.

    With ``disconnect_first`` others take them no longer.
    """
    first, second = make_view(sgv0), make_view(sgv1)
    if disconnect_first:
        detach_outputs(first)
    reroute_ts(first.outputs, second.inputs, can_modify=second.ops)
    return first, second._with_boundary(first.outputs, second.outputs)


def bypass(sgv: Any) -> tuple[SubGraphView, list[Tensor]]:
    """Has those who take a view's outputs take its inputs; the view itself takes placeholders."""
    view = make_view(sgv)
    inputs = view.inputs
    detached, instead = detach_inputs(view)
    reroute_ts(inputs, detached.outputs)
    return detached, instead
