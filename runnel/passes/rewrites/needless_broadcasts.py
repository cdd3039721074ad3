"""Simplifies gradients of operands that were not broadcast: no empty sum, no reshape to itself.

The gradient of ``x * y`` is summed over the axes in which one of them was stretched. If the size of
the batch is unknown while the graph is built, the graph leaves this to the step: it takes the
shapes (of every iteration, for the gradient of a loop), finds the axes, and makes a sum and a
reshape of them. ``symbolic_shapes`` finds out where all this does nothing. Then the loop also stops
pushing values that nobody pops any more.
"""

from __future__ import annotations

from runnel.passes.program.program import Node, Program
from runnel.passes.rewrites.dead_code import remove_dead_code
from runnel.passes.rewrites.dead_stacks import drop_dead_stacks
from runnel.passes.rewrites.symbolic_shapes import SymbolicShapes
from runnel.passes.structure.structured import map_programs, nested_nodes

_REPEATING = frozenset({"Sum", "Reshape"})


def drop_needless_broadcasts(program: Program) -> Program:
    """``program``, a whole step, without reshapes that change nothing, and such sums."""
    kinds = {node.op_def.name for node in nested_nodes(program.nodes)}
    if "BroadcastGradientArgs" not in kinds:
        return program
    program = _without_dead_code(_Rewriting(SymbolicShapes(program)).rewritten(program))
    return drop_dead_stacks(program) if "StackPushV2" in kinds else program


def _without_dead_code(program: Program) -> Program:
    map_programs(program, _without_dead_code, dynamic=False)
    return remove_dead_code(program)


class _Rewriting:
    """A step whose shapes are known, as it is rewritten, program by program."""

    def __init__(self, shapes: SymbolicShapes) -> None:
        self._shapes = shapes

    def rewritten(self, program: Program) -> Program:
        """``program`` and those inside it with values in place of what only repeats them."""
        map_programs(program, self.rewritten, dynamic=False)
        producers = program.producers()
        same: dict[int, int] = {}
        nodes: list[Node] = []
        moved: dict[Node, Node] = {}
        for node in program.nodes:
            made = node
            changed = same and not same.keys().isdisjoint(node.inputs)
            if changed or (node.control and not moved.keys().isdisjoint(node.control)):
                inputs = tuple([same.get(value, value) for value in node.inputs])
                control = tuple([moved.get(c, c) for c in node.control])
                made = Node(node.op, node.op_def, inputs, node.outputs, control, node.attrs)
                moved[node] = made
            nodes.append(made)
            if node.op_def.name in _REPEATING and not node.control:
                given = self._repeated(node, producers)
                if given is not None:
                    same[node.outputs[0]] = same.get(given, given)
        if not same:
            return program
        fetches = tuple([same.get(value, value) for value in program.fetches])
        return Program(nodes, program.feeds, fetches, program.infos)

    def _repeated(self, node: Node, producers: dict[int, Node]) -> int | None:
        """The value that ``node`` gives once more, if it only does that."""
        shapes, kind = self._shapes, node.op_def.name
        if kind == "Sum" and not node.attrs["keep_dims"]:
            axes = self._axes(node, producers)
            if axes is not None:
                one, other = (shapes.shape_in(value) for value in axes.inputs)
                if one is not None and one == other:
                    return node.inputs[0]
        elif kind == "Reshape":
            x, shape = node.inputs[0], shapes.shape_in(node.inputs[1])
            if shape is None:
                return None
            if shapes.sizes(x) == shape:
                return x
            summed = self._summed(producers.get(x), shape, producers)
            if summed is not None and shapes.sizes(summed) == shape:
                return summed
        return None

    def _summed(
        self, total: Node | None, shape: tuple[object, ...], producers: dict[int, Node]
    ) -> int | None:
        """What ``total`` sums, where it has ``shape``, over nothing but axes of size 1."""
        if total is None or total.op_def.name != "Sum" or total.control:
            return None
        axes = self._axes(total, producers)
        if axes is None:
            return None
        side = axes.outputs.index(total.inputs[1])
        own, other = (self._shapes.shape_in(axes.inputs[place]) for place in (side, 1 - side))
        if own != shape or other is None or len(other) > len(own):
            return None
        return total.inputs[0]

    @staticmethod
    def _axes(total: Node, producers: dict[int, Node]) -> Node | None:
        """What finds the axes over which ``total`` sums, if that looks at two shapes."""
        axes = producers.get(total.inputs[1])
        if axes is None or axes.op_def.name != "BroadcastGradientArgs" or axes.control:
            return None
        return axes
