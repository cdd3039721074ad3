"""The gradient of a loop: another loop, which runs through the iterations backwards.

It has a variable for the gradient of each loop variable, and a sum for the gradient of each tensor
from outside (``runnel.autodiff.loop_sums``). In each iteration a walk through the body carries the
gradients of the loop variables from the end of the iteration to its beginning. Stacks keep the
values of the body that the walk's operations need (``runnel.autodiff.loop_history``) and, in the
gradient of a gradient, the gradients of those values (``runnel.autodiff.stack_gradients``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.autodiff.aggregation import add
from runnel.autodiff.gradient_context import GradientContext
from runnel.autodiff.handles import stack_of
from runnel.autodiff.loop_history import counter_of
from runnel.autodiff.loop_record import Iterations, LoopRecord, record_of
from runnel.autodiff.loop_sums import Sum, sum_over_iterations
from runnel.autodiff.loops import LoopLevel, WalkedLoop, dependencies, is_differentiable
from runnel.autodiff.stack_gradients import StackGradients
from runnel.autodiff.zeros import zeros_for
from runnel.control_flow.loop_variable import LoopVariable
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import Dims, merge_dims
from runnel.ops.control import identity

Walk = Callable[
    [Sequence[Tensor], Sequence[Any], Sequence[Tensor], LoopLevel, Sequence[WalkedLoop]], list[Any]
]
"""(targets, their gradients, sources, level, loops that receive gradients otherwise) → gradients"""


def loop_gradients(
    loop: WalkedLoop,
    exit_grads: Sequence[Any],
    leads: Sequence[bool],
    walk: Walk,
    stacks: StackGradients,
) -> list[Any]:
    """The gradient for each of ``loop.inputs``, given those of ``loop.outputs``.

    ``leads`` says which inputs depend on what is differentiated by.
    """
    found: list[Any] = [None] * len(loop.inputs)
    if not loop.context.back_prop:
        return found
    loop.require_differentiable()
    gradient = _LoopGradient(loop, exit_grads, leads, walk, stacks)
    if not gradient.needed:
        return found
    with name_scope(f"{loop.context.name}_grad"):
        return gradient.build()


class _LoopGradient:
    """The construction of the gradient of one loop."""

    def __init__(
        self,
        loop: WalkedLoop,
        exit_grads: Sequence[Any],
        leads: Sequence[bool],
        walk: Walk,
        stacks: StackGradients,
    ) -> None:
        self.loop = loop
        self.walk = walk
        self.stacks = stacks
        self.level = loop.level()
        by_exit = dict(zip(loop.outputs, exit_grads, strict=True))
        self.exit_grads = [by_exit.get(v.exit) for v in loop.variables]  # type: ignore[arg-type]
        self.pushes = [p for p in loop.pushes() if stack_of(p.inputs[0]) in stacks]
        """What the loop has pushed and a gradient is there for."""
        inner = [self.level.loop(context) for context in loop.context.inner_loops]
        self.inner = [found for found in inner if found.receives(stacks)]
        """The loops inside for which the same holds."""
        count = len(loop.variables)
        self.sources = [
            tensor
            for tensor, leading in zip(loop.invariants, leads[count:], strict=True)
            if leading and is_differentiable(tensor)
        ]
        self.active = self._active(leads[:count])
        self.sums: dict[Tensor, Sum] = {}
        self.count: Tensor
        self.record: LoopRecord

    @property
    def needed(self) -> bool:
        return bool(self.active or self.pushes or self.inner)

    def _active(self, leads: Sequence[bool]) -> list[int]:
        """The variables that receive a gradient and can pass it on to what is asked for."""
        variables = self.loop.variables
        reach = [
            dependencies(self.level, [v.result]) if is_differentiable(v.merged) else set()
            for v in variables
        ]

        def uses(tensors: set[Tensor], variable: LoopVariable) -> bool:
            return variable.merged in tensors or variable.start in tensors

        sources = set(self.sources)
        passes = {
            k
            for k, tensors in enumerate(reach)
            if tensors and (leads[k] or not sources.isdisjoint(tensors))
        }
        while True:
            further = {
                k
                for k, tensors in enumerate(reach)
                if k not in passes and any(uses(tensors, variables[j]) for j in passes)
            }
            if not further:
                break
            passes |= further
        active = {k for k, grad in enumerate(self.exit_grads) if grad is not None}
        kept = [push.inputs[1] for push in self.pushes]
        kept += [tensor for inner in self.inner for tensor in inner.inputs]
        of_kept = dependencies(self.level, kept)
        active |= {k for k, variable in enumerate(variables) if uses(of_kept, variable)}
        queue = list(active)
        while queue:
            tensors = reach[queue.pop()]
            for k, variable in enumerate(variables):
                if k not in active and uses(tensors, variable):
                    active.add(k)
                    queue.append(k)
        return sorted(active & passes)

    # Building -------------------------------------------------------------------------------

    def build(self) -> list[Any]:
        """The gradients of the loop's inputs."""
        from runnel.ops.fill import zeros_like

        loop, forward = self.loop, self.loop.context
        graph = forward.graph
        around = graph._get_control_flow_context()
        self.count = counter_of(record_of(forward)).count
        if self.pushes or self.inner:
            here = identity(self.count)
            with graph.control_dependencies(self._awaited(around, here)):
                self.count = identity(here)
        grads = []
        for k in self.active:
            grad, variable = self.exit_grads[k], loop.variables[k]
            if grad is not None:
                grads.append(_of_known_shape(convert_to_tensor(grad), variable.merged.dims))
            elif variable.exit is not None:
                grads.append(zeros_like(variable.exit, optimize=False))
            else:
                grads.append(zeros_for(variable.enter.op.inputs[0]))
        context = GradientContext(forward)
        self.record = record_of(context)
        shapes = [(), *(loop.variables[k].merged.dims for k in self.active)]
        exits = context.build(
            lambda index, *_: index > 0, self._body, [self.count, *grads], shapes, True
        )
        end: Operation = exits[0].op
        outer = context.outer_context.GetWhileContext() if context.outer_context else None
        backwards = None if outer is None else record_of(outer).backwards
        if backwards is not None:
            backwards.end_after(end, guarded=True)
        for stack in loop.popped:
            self.stacks.filled(stack, around, end, loop.guards())
        found: list[Any] = [None] * len(loop.variables)
        for k, exit_tensor in zip(self.active, exits[1:], strict=True):
            found[k] = exit_tensor
        return found + [self.sums[t]() if t in self.sums else None for t in loop.invariants]

    def _awaited(self, context: Any, here: Tensor) -> list[Operation]:
        """What fills the stacks that the gradient, made where ``here`` is alive, will pop."""
        found = [stack_of(push.inputs[0]) for push in self.loop.pushes(deep=True)]
        stacks = dict.fromkeys([stack for stack in found if stack is not None])
        return self.stacks.await_filled(stacks, context, here, self.loop.guards())

    def _body(self, index: Tensor, *grads: Tensor) -> list[Tensor]:
        loop = self.loop
        following = index - 1
        context = self.record.loop
        pivot = context.GetControlPivot()
        assert pivot is not None
        self.record.backwards = Iterations(context, pivot.op, following.op)
        active = [loop.variables[k] for k in self.active]
        targets = [v.result for v in active]
        seeds: list[Any] = list(grads)
        for push in self.pushes:
            targets.append(push.inputs[1])
            seeds.append(self.stacks.pop(push, self.record))
        # A body uses its variables behind the Switch; the condition, and what it shares, before.
        starts = [t for v in active for t in (v.start, v.merged) if t is not None]
        sources = [*starts, *self.sources]
        found = dict(
            zip(sources, self.walk(targets, seeds, sources, self.level, self.inner), strict=True)
        )
        into = [self._at_start(variable, found) for variable in active]
        for tensor in self.sources:
            grad = found[tensor]
            if grad is not None:
                outside = tensor.op.inputs[0]
                self.sums[tensor] = sum_over_iterations(
                    context, outside, grad, self.count, following
                )
        return [following, *into]

    @staticmethod
    def _at_start(variable: LoopVariable, found: dict[Any, Any]) -> Tensor:
        """The gradient of a loop variable at the start of an iteration."""
        grads = [found.get(variable.start), found.get(variable.merged)]
        parts = [convert_to_tensor(grad) for grad in grads if grad is not None]
        if parts:
            total = parts[0] if len(parts) == 1 else add(parts[0], parts[1])
        else:
            total = zeros_for(variable.merged if variable.start is None else variable.start)
        total.set_shape(variable.merged.dims)
        return total


def _of_known_shape(grad: Tensor, dims: Dims) -> Tensor:
    """``grad`` with what is known of its shape: that of the loop variable."""
    if merge_dims(grad.dims, dims) == grad.dims:
        return grad
    known = identity(grad)  # what was given from outside stays as it is
    known.set_shape(dims)
    return known
