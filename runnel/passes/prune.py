"""Pruning: the operations that the fetches need, cut at the feeds, in the order they run."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation, Tensor
from runnel.passes.program import Node, Program, ValueInfo


def prune(
    fetches: Sequence[Tensor],
    targets: Iterable[Operation],
    feeds: Iterable[Tensor],
    done: Collection[Operation] = (),
) -> Program:
    """The program that computes ``fetches`` and runs ``targets``, given ``feeds``.

    Operations in ``done`` have run already, in an earlier part of the same step: nobody waits
    for them.
    """
    fed = dict.fromkeys(feeds)
    # A fed placeholder has nothing to run: whoever waits for it has it.
    placeholders = {t.op for t in fed if t.op.op_def.name == "Placeholder"}
    done = placeholders.union(done)
    needed = _needed_ops(fetches, targets, fed, done)
    ordered = _in_order(needed, fed)
    program = Program([], {}, ())
    numbers: dict[Tensor, int] = {}
    infos = program.infos
    for tensor in fed:
        number = len(infos)
        infos.append(ValueInfo(tensor.dtype.base_dtype, tensor.dims))
        numbers[tensor] = program.feeds[tensor] = number
    nodes: dict[Operation, Node] = {}
    for op in ordered:
        outputs = []
        for tensor in op.outputs:
            number = len(infos)
            infos.append(ValueInfo(tensor.dtype, tensor.dims))
            outputs.append(number)
            if tensor not in fed:
                numbers[tensor] = number
        inputs = tuple([numbers[tensor] for tensor in op.inputs])
        control: tuple[Node, ...] = ()
        if op.control_inputs:
            control = tuple([nodes[c] for c in op.control_inputs if c not in done])
        node = Node(op, op.op_def, inputs, tuple(outputs), control, op.attrs)
        nodes[op] = node
    program.nodes = list(nodes.values())
    program.fetches = tuple(numbers[tensor] for tensor in fetches)
    return program


def _needed_ops(
    fetches: Sequence[Tensor],
    targets: Iterable[Operation],
    fed: dict[Tensor, None],
    done: Collection[Operation],
) -> set[Operation]:
    stack = [t.op for t in fetches if t not in fed]
    stack += targets
    needed: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        needed.add(op)
        for tensor in op.inputs:
            if tensor not in fed and tensor.op not in needed:
                stack.append(tensor.op)
        if op.control_inputs:
            stack += [c for c in op.control_inputs if c not in done]
    return needed


def _in_order(needed: set[Operation], fed: dict[Tensor, None]) -> list[Operation]:
    """The order of construction, unless an edge was added later that contradicts it."""
    ordered = sorted(needed, key=lambda op: op.id)
    for op in ordered:
        for tensor in op.inputs:
            if tensor.op.id >= op.id and tensor not in fed:
                return _topological(ordered, fed)
        for control in op.control_inputs:
            if control.id >= op.id:
                return _topological(ordered, fed)
    return ordered


def _topological(ordered: list[Operation], fed: dict[Tensor, None]) -> list[Operation]:
    """Kahn's algorithm; among the operations that are ready, the one constructed first."""
    waiting: dict[Operation, int] = {}
    consumers: dict[Operation, list[Operation]] = {}
    members = set(ordered)
    for op in ordered:
        sources = {t.op for t in op.inputs if t not in fed}
        sources |= {c for c in op.control_inputs if c in members}
        waiting[op] = len(sources)
        for source in sources:
            consumers.setdefault(source, []).append(op)
    ready = [(op.id, op) for op in ordered if waiting[op] == 0]
    heapq.heapify(ready)
    result: list[Operation] = []
    while ready:
        _, op = heapq.heappop(ready)
        result.append(op)
        for consumer in consumers.get(op, ()):
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                heapq.heappush(ready, (consumer.id, consumer))
    if len(result) != len(ordered):
        stuck = next(op for op in ordered if waiting[op] > 0)
        raise InvalidArgumentError(
            None,
            stuck,
            f"The graph has a cycle through {_cycle(stuck, waiting, fed)}; "
            "operations on a cycle can never run.",
        )
    return result


def _cycle(start: Operation, waiting: dict[Operation, int], fed: dict[Tensor, None]) -> str:
    seen: dict[Operation, None] = {}
    op = start
    while op not in seen:
        seen[op] = None
        sources = [t.op for t in op.inputs if t not in fed] + list(op.control_inputs)
        op = next(s for s in sources if waiting.get(s, 0) > 0)
    path = list(seen)
    names = [o.name for o in path[path.index(op) :]] + [op.name]
    return " <- ".join(repr(n) for n in names)
