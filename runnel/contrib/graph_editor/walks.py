"""The operations that lie behind others, before them, or between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.contrib.graph_editor.elements import (
    get_consuming_ops,
    get_generating_ops,
    is_iterable,
    make_list_of_op,
    make_list_of_t,
)
from runnel.graph.operation import Operation, Tensor

Within = Callable[[Operation], bool] | None


def _seeds(seed_ops: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    seeds = list(seed_ops) if is_iterable(seed_ops) else [seed_ops]
    if seeds and isinstance(seeds[0], Tensor):
        return of_tensors(seeds)
    return make_list_of_op(seeds, allow_graph=False)


def _walk(
    seeds: list[Operation],
    neighbours: Callable[[Operation], Iterable[Operation]],
    within: tuple[Any, Within],
    inclusive: bool,
) -> list[Operation]:
    """Breadth first from ``seeds``, which come first."""
    inside = set(make_list_of_op(within[0], allow_graph=False)) if within[0] else None
    admits = within[1]
    found = dict.fromkeys(seeds)
    wave = list(found)
    while wave:
        following: dict[Operation, None] = {}
        for op in wave:
            for other in neighbours(op):
                known = other in found or other in following
                if known or (inside is not None and other not in inside):
                    continue
                if admits is None or admits(other):
                    following[other] = None
        found.update(following)
        wave = list(following)
    return [op for op in found if inclusive or op not in set(seeds)]


def get_forward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Within = None,
    stop_at_ts: Any = (),
    control_outputs: Any = None,
) -> list[Operation]:
    """The operations that depend on ``seed_ops``, or take the tensors there.

    The walk stops at ``stop_at_ts`` and does not leave ``within_ops``. It follows the control edges
    of ``control_outputs``, a mapping from operations to those that wait for them.
    """
    stops = set(make_list_of_t(stop_at_ts))

    def following(op: Operation) -> Iterable[Operation]:
        for tensor in op.outputs:
            if tensor not in stops:
                yield from tensor.consumers()
        if control_outputs is not None:
            yield from control_outputs.get(op) or ()

    seeds = _seeds(seed_ops, get_consuming_ops)
    return _walk(seeds, following, (within_ops, within_ops_fn), inclusive)


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Within = None,
    stop_at_ts: Any = (),
    control_inputs: bool = False,
) -> list[Operation]:
    """The operations that ``seed_ops``, or the tensors there, depend on.

    The walk stops at ``stop_at_ts`` and does not leave ``within_ops``; with ``control_inputs`` it
    follows control edges too.
    """
    stops = set(make_list_of_t(stop_at_ts))

    def before(op: Operation) -> Iterable[Operation]:
        yield from (tensor.op for tensor in op.inputs if tensor not in stops)
        if control_inputs:
            yield from op.control_inputs

    seeds = _seeds(seed_ops, get_generating_ops)
    return _walk(seeds, before, (within_ops, within_ops_fn), inclusive)


def _both_walks(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool,
    backward_inclusive: bool,
    within: tuple[Any, Within],
    control: tuple[bool, Any, Any],
) -> tuple[list[Operation], list[Operation]]:
    control_inputs, control_outputs, control_ios = control
    if control_ios is not None:
        control_inputs, control_outputs = True, control_ios
    forward = get_forward_walk_ops(
        forward_seed_ops, forward_inclusive, *within, control_outputs=control_outputs
    )
    backward = get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, *within, control_inputs=control_inputs
    )
    return forward, backward


def get_walks_intersection_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Within = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations between: those that both walks find."""
    forward, backward = _both_walks(
        *(forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive),
        *((within_ops, within_ops_fn), (control_inputs, control_outputs, control_ios)),
    )
    both = set(backward)
    return [op for op in forward if op in both]


def get_walks_union_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Within = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations that one of the walks finds."""
    forward, backward = _both_walks(
        *(forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive),
        *((within_ops, within_ops_fn), (control_inputs, control_outputs, control_ios)),
    )
    return list(dict.fromkeys([*forward, *backward]))


def get_within_boundary_ops(
    ops: Any,
    seed_ops: Any,
    boundary_ops: Any = (),
    inclusive: bool = True,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations of ``ops`` that a walk from ``seed_ops`` reaches without crossing others."""
    inside = make_list_of_op(ops)
    walls = set(make_list_of_op(boundary_ops))
    if control_ios is not None:
        control_inputs, control_outputs = True, control_ios

    def neighbours(op: Operation) -> Iterable[Operation]:
        if op in walls:
            return
        yield from (tensor.op for tensor in op.inputs)
        yield from (other for tensor in op.outputs for other in tensor.consumers())
        if control_inputs:
            yield from op.control_inputs
        if control_outputs is not None:
            yield from control_outputs.get(op) or ()

    found = _walk(make_list_of_op(seed_ops), neighbours, (inside, None), True)
    return [op for op in found if inclusive or op not in walls]
