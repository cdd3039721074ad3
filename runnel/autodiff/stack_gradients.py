"""Gradients of the values that loops keep on stacks: on other stacks, in the other direction.

A loop pushes a value in each iteration, and the loop that computes its gradient pops them, from the
last to the first. When the second loop is differentiated, it pushes the gradients of the popped
values, from the first to the last. The gradient of the first loop pops those: they belong to the
values that it had pushed.

The second loop may be in a branch that the first is not in, if ``tf.gradients`` was called there.
If the branch is not taken, nothing was popped, and the gradients of the pushed values are zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.autodiff.differentiation import guards_of
from runnel.autodiff.handles import stack_of
from runnel.autodiff.loop_history import new_stack, pop, push
from runnel.autodiff.loop_record import LoopRecord, record_of
from runnel.autodiff.zeros import completed, dead_elsewhere
from runnel.control_flow.guards import Guards
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import control_trigger_op


class StackGradients:
    """The stacks of gradients that one call of ``tf.gradients`` makes."""

    def __init__(self) -> None:
        self._of: dict[Tensor, Tensor] = {}
        self._filled_by: dict[tuple[Tensor, Any], list[tuple[Operation, Guards]]] = {}
        self._only_in: dict[Tensor, Guards] = {}
        """The branches in which the gradients are filled, where the pushing loop is in others."""

    def __contains__(self, stack: Tensor | None) -> bool:
        return stack in self._of

    def push(self, popped: Operation, grad: Any) -> None:
        """Keeps the gradient of what ``popped`` gave."""
        graph = popped.graph
        stack = stack_of(popped.inputs[0])
        context = graph._get_control_flow_context()
        loop = context.GetWhileContext() if context is not None else None
        record = None if loop is None else record_of(loop)
        if stack is None or record is None or record.gradient_of is None:
            raise LookupError(
                f"{popped.name!r} takes values from a stack outside the gradient of a loop; there "
                "is no gradient for what was pushed"
            )
        if stack not in self._of:
            self._of[stack] = new_stack(graph, popped.outputs[0].dtype.base_dtype)
        guards = guards_of(graph).in_branches(popped.outputs[0])
        push(record, self._of[stack], dead_elsewhere(convert_to_tensor(grad), guards))

    def pop(self, pushed: Operation, record: LoopRecord) -> Tensor:
        """The gradient of what ``pushed`` kept, in the gradient of its loop."""
        stack = stack_of(pushed.inputs[0])
        assert stack is not None
        value = pushed.inputs[1]
        guards = guards_of(pushed.graph).in_branches(pushed.outputs[0])
        only_in = self._only_in.get(stack, ())
        dtype = value.dtype.base_dtype
        popped = pop(record, self._of[stack], dtype, value.dims, (*guards, *only_in))
        return convert_to_tensor(completed(popped, value, only_in, guards))

    def filled(self, stack: Tensor, context: Any, by: Operation, guards: Guards) -> None:
        """When ``by``, in ``context``, has run, all gradients for ``stack`` are there.

        It runs in the branches ``guards``, like the loop that pops from ``stack``.
        """
        if stack in self._of:
            self._filled_by.setdefault((stack, context), []).append((by, guards))

    def await_filled(
        self, stacks: Iterable[Tensor], context: Any, here: Tensor, present: Guards
    ) -> list[Operation]:
        """What must have run, in ``context``, before the gradients for ``stacks`` are popped.

        They will be popped where ``here`` is alive, by the gradient of a loop that is in the
        branches ``present``.
        """
        analysis = guards_of(here.graph)
        awaited: dict[Operation, None] = {}
        in_branches: dict[Operation, None] = {}
        for stack in stacks:
            for op, guards in self._filled_by.get((stack, context), ()):
                missing = analysis.missing(here, tuple([g for g in guards if g not in present]))
                if missing:
                    assert self._only_in.setdefault(stack, missing) == missing
                (in_branches if missing else awaited)[op] = None
        if in_branches:
            with here.graph.control_dependencies(list(in_branches)):
                awaited[control_trigger_op(name="sync")] = None  # runs also when they are dead
        return list(awaited)
