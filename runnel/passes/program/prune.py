"""Pruning: the operations that the fetches need, cut at the feeds, in the order they run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from runnel.graph.loop_edges import NEXT_ITERATIONS, closes_loop
from runnel.graph.operation import Operation, Tensor
from runnel.graph.topological_order import topological_order
from runnel.passes.program.program import Node, Program, ValueInfo


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
    back_edges = [op.outputs[0] for op in ordered if op.op_def.name in NEXT_ITERATIONS]
    for tensor in back_edges:  # a loop's first node takes the value of its last
        if tensor not in fed:
            numbers[tensor] = len(infos)
            infos.append(ValueInfo(tensor.dtype, tensor.dims))
    for op in ordered:
        outputs = []
        for tensor in op.outputs:
            if back_edges and tensor in numbers and tensor not in fed:
                outputs.append(numbers[tensor])
                continue
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
    _forget_doubtful_shapes(program)
    return program


def _forget_doubtful_shapes(program: Program) -> None:
    """Static shapes that may have been inferred from the value of a tensor that is fed another.

    ``tf.reshape(x, tf.constant([2, 3]))`` has the static shape (2, 3), but not in a step in which
    the constant is fed.
    """
    doubtful = {
        number
        for tensor, number in program.feeds.items()
        if tensor.dtype.is_integer and tensor.op.op_def.name != "Placeholder"
    }
    if not doubtful:
        return
    before = -1
    while len(doubtful) > before:  # again where the end of a loop leads back to its beginning
        before = len(doubtful)
        for node in program.nodes:
            if not doubtful.isdisjoint(node.inputs):
                doubtful.update(node.outputs)
                for value in node.outputs:
                    program.infos[value] = ValueInfo(program.infos[value].dtype, None)


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

    def sources(op: Operation) -> list[Operation]:
        awaited = [t.op for t in op.inputs if t not in fed and not closes_loop(t, op)]
        return [*awaited, *op.control_inputs]

    for op in ordered:
        for tensor in op.inputs:
            if tensor.op.id >= op.id and tensor not in fed:
                return topological_order(ordered, sources)
        for control in op.control_inputs:
            if control.id >= op.id:
                return topological_order(ordered, sources)
    return ordered
