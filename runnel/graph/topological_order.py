"""Sorts operations so that producers come first, where the order of construction does not."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation

Sources = Callable[[Operation], Iterable[Operation]]


def topological_order(operations: Sequence[Operation], sources: Sources) -> list[Operation]:
    """``operations``, each after those of its ``sources`` that are among them.

    Kahn's algorithm; among the operations that are ready, the one constructed first. A cycle is
    an error that names the operations on it.
    """
    members = set(operations)
    waiting: dict[Operation, int] = {}
    consumers: dict[Operation, list[Operation]] = {}
    for op in operations:
        awaited = members.intersection(sources(op))
        waiting[op] = len(awaited)
        for source in awaited:
            consumers.setdefault(source, []).append(op)
    ready = [(op.id, op) for op in operations if waiting[op] == 0]
    heapq.heapify(ready)
    result: list[Operation] = []
    while ready:
        _, op = heapq.heappop(ready)
        result.append(op)
        for consumer in consumers.get(op, ()):
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                heapq.heappush(ready, (consumer.id, consumer))
    if len(result) < len(operations):
        stuck = {op: None for op in operations if waiting[op] > 0}
        raise _cycle_error(stuck, sources)
    return result


def _cycle_error(stuck: dict[Operation, None], sources: Sources) -> InvalidArgumentError:
    """The error for operations each of which waits for another of them."""
    path: dict[Operation, None] = {}
    op = next(iter(stuck))
    while op not in path:
        path[op] = None
        op = next(source for source in sources(op) if source in stuck)
    walked = list(path)
    cycle = [*walked[walked.index(op) :], op]
    return InvalidArgumentError(
        None,
        op,
        f"The graph has a cycle: {' <- '.join(repr(o.name) for o in cycle)}. Operations on a cycle "
        "can never run; remove one of these edges (an input or a control input), or feed one of "
        "the tensors",
    )
