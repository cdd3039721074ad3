"""Who takes which tensor, changed in the graph that is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.graph_editor.elements import make_list_of_op, make_list_of_t, require_one_graph
from runnel.contrib.graph_editor.view import SubGraphView, make_view
from runnel.graph.operation import Operation, Tensor


def _require_fitting(new: Tensor, old: Tensor) -> None:
    if not new.dtype.is_compatible_with(old.dtype):
        raise ValueError(
            f"{new.name!r} is of type {new.dtype.name}, and cannot take the place of "
            f"{old.name!r}, which is of type {old.dtype.name}."
        )
    if not new.shape.is_compatible_with(old.shape):
        raise ValueError(
            f"{new.name!r} of shape {new.shape} cannot take the place of {old.name!r} of shape "
            f"{old.shape}."
        )


def _rerouted(
    moves: Sequence[tuple[Tensor, Tensor]], can_modify: Any = None, cannot_modify: Any = None
) -> int:
    """Gives each second tensor's takers the first; all moves at once, so that two can swap."""
    allowed = None if can_modify is None else set(make_list_of_op(can_modify))
    if cannot_modify is None:
        kept = set()
    else:
        kept = set(make_list_of_op(cannot_modify))
    changes: list[tuple[Operation, int, Tensor]] = []
    for new, old in moves:
        if new is old:
            continue
        _require_fitting(new, old)
        for op in old.consumers():
            if (allowed is None or op in allowed) and op not in kept:
                changes += [(op, i, new) for i, taken in enumerate(op.inputs) if taken is old]
    for op, index, tensor in changes:
        op._update_input(index, tensor)
    return len(changes)


def _pairs(ts0: Any, ts1: Any) -> list[tuple[Tensor, Tensor]]:
    first, second = make_list_of_t(ts0), make_list_of_t(ts1)
    require_one_graph([*first, *second])
    if len(first) != len(second):
        raise ValueError(f"There are {len(first)} tensors to take the places of {len(second)}.")
    return list(zip(first, second, strict=True))


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Has those who take ``ts1`` take ``ts0``; returns how many inputs changed.

    Only the operations of ``can_modify`` change, and none of ``cannot_modify``.

    Example:
        >>> tf.contrib.graph_editor.reroute_ts([checked], [x], cannot_modify=[checked.op])
    """
    return _rerouted(_pairs(ts0, ts1), can_modify, cannot_modify)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Has those who take ``ts1`` take ``ts0``, and the other way round."""
    pairs = _pairs(ts0, ts1)
    both = [*pairs, *((second, first) for first, second in pairs)]
    return _rerouted(both, can_modify, cannot_modify)


def _views(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    first, second = make_view(sgv0), make_view(sgv1)
    require_one_graph([*first.ops, *second.ops])
    return first, second


def _inputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[SubGraphView, SubGraphView]:
    first, second = _views(sgv0, sgv1)
    pairs = _pairs(first.inputs, second.inputs)
    _rerouted(pairs, can_modify=second.ops)
    if swap:
        _rerouted([(new, old) for old, new in pairs], can_modify=first.ops)
    return (
        first._with_boundary(second.inputs if swap else first.inputs, first.outputs),
        second._with_boundary(first.inputs, second.outputs),
    )


def _outputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[SubGraphView, SubGraphView]:
    first, second = _views(sgv0, sgv1)
    pairs = _pairs(first.outputs, second.outputs)
    both = [*pairs, *((b, a) for a, b in pairs)] if swap else pairs
    _rerouted(both, cannot_modify=[*first.ops, *second.ops])
    return first, second


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Has the second view take the inputs of the first."""
    return _inputs(sgv0, sgv1, swap=False)


def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Has each of two views take the inputs of the other."""
    return _inputs(sgv0, sgv1, swap=True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Has those who take the outputs of the second view take those of the first."""
    return _outputs(sgv0, sgv1, swap=False)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Has those who take the outputs of one of two views take those of the other."""
    return _outputs(sgv0, sgv1, swap=True)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """:func:`reroute_inputs` and :func:`reroute_outputs`."""
    return _outputs(*_inputs(sgv0, sgv1, swap=False), swap=False)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """:func:`swap_inputs` and :func:`swap_outputs`."""
    return _outputs(*_inputs(sgv0, sgv1, swap=True), swap=True)


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Has ``op`` run after ``cops`` too."""
    waited = make_list_of_op(cops, allow_graph=False)
    for other in waited:
        if other in op.control_inputs:
            raise ValueError(f"{other.name} is already a control_input of {op.name}")
    op._add_control_inputs(waited)


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Has ``op`` no longer wait for ``cops``."""
    waited = make_list_of_op(cops, allow_graph=False)
    for other in waited:
        if other not in op.control_inputs:
            raise ValueError(f"{other.name} is not a control_input of {op.name}")
    kept = [other for other in op.control_inputs if other not in waited]
    op._remove_all_control_inputs()
    op._add_control_inputs(kept)
