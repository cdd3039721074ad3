"""Simplifies gradients of operands that were not broadcast: no empty sum, no reshape to itself.

The gradient of ``x * y`` is summed over the axes in which one of them was stretched. If the size of
the batch is unknown while the graph is built, the graph leaves this to the step: it takes the
shapes (of every iteration, for the gradient of a loop), finds the axes, and makes a sum and a
reshape of them. ``symbolic_shapes`` finds out where all this does nothing. Then the loop also stops
pushing values that nobody pops any more.
"""

from __future__ import annotations

from functools import partial

from runnel.passes.program.program import Node, Program
from runnel.passes.rewrites.dead_code import remove_dead_code
from runnel.passes.rewrites.dead_stacks import drop_dead_stacks
from runnel.passes.rewrites.substitution import Rewriter, RuleSet
from runnel.passes.rewrites.symbolic_shapes import SymbolicShapes
from runnel.passes.structure.structured import map_programs, nested_nodes


def drop_needless_broadcasts(program: Program) -> Program:
    """``program``, a whole step, without reshapes that change nothing, and such sums."""
    kinds = {node.op_def.name for node in nested_nodes(program.nodes)}
    if "BroadcastGradientArgs" not in kinds:
        return program
    rules, shapes = RuleSet(), SymbolicShapes(program)
    rules.rule("Sum")(partial(_unsummed, shapes))
    rules.rule("Reshape")(partial(_unshaped, shapes))
    program = _applied(rules, program)
    return drop_dead_stacks(program) if "StackPushV2" in kinds else program


def _applied(rules: RuleSet, program: Program) -> Program:
    map_programs(program, partial(_applied, rules), dynamic=False)
    return remove_dead_code(rules.apply(program))


def _unsummed(shapes: SymbolicShapes, rewriter: Rewriter, node: Node) -> int | None:
    """A sum over no axes gives its input."""
    axes = None if node.control or node.attrs["keep_dims"] else _axes(rewriter, node)
    if axes is None:
        return None
    one, other = (shapes.shape_in(value) for value in axes.inputs)
    return node.inputs[0] if one is not None and one == other else None


def _unshaped(shapes: SymbolicShapes, rewriter: Rewriter, node: Node) -> int | None:
    """A reshape to the shape that its input has, or had before it was summed over axes of 1."""
    x, shape = node.inputs[0], shapes.shape_in(node.inputs[1])
    if node.control or shape is None:
        return None
    if shapes.sizes(x) == shape:
        return x
    total = rewriter.producer(x, "Sum")
    axes = None if total is None or total.control else _axes(rewriter, total)
    if total is None or axes is None:
        return None
    side = axes.outputs.index(total.inputs[1])
    own, other = (shapes.shape_in(axes.inputs[place]) for place in (side, 1 - side))
    if own != shape or other is None or len(other) > len(own):
        return None
    return total.inputs[0] if shapes.sizes(total.inputs[0]) == shape else None


def _axes(rewriter: Rewriter, total: Node) -> Node | None:
    """What finds the axes over which ``total`` sums, if that looks at two shapes."""
    axes = rewriter.producer(total.inputs[1], "BroadcastGradientArgs")
    return None if axes is None or axes.control else axes
