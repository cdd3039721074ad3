"""Gradients of what loops keep on stacks: on stacks of their own, in the other direction.

A loop pushes a value in each iteration, and the loop that computes its gradient pops them, from the
last to the first. Differentiated, the second loop pushes the gradients of what it popped, from the
first to the last, and the gradient of the first loop pops those: they belong to what it had pushed.
"""

from __future__ import annotations

from typing import Any

from runnel.control_flow.guards import guards_of
from runnel.control_flow.loop_history import GradState, new_stack, stack_of
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor


class StackGradients:
    """The stacks of gradients that one call of ``tf.gradients`` makes."""

    def __init__(self) -> None:
        self._of: dict[Tensor, Tensor] = {}
        self._filled_by: dict[tuple[Tensor, Any], list[Operation]] = {}

    def __contains__(self, stack: Tensor | None) -> bool:
        return stack in self._of

    def push(self, pop: Operation, grad: Any) -> None:
        """Keeps the gradient of what ``pop`` gave."""
        graph = pop.graph
        stack = stack_of(pop.inputs[0])
        context = graph._get_control_flow_context()
        loop = context.GetWhileContext() if context is not None else None
        if stack is None or loop is None or loop.grad_state is None:
            raise LookupError(
                f"{pop.name!r} takes values from a stack outside the gradient of a loop; there is "
                "no gradient for what was pushed"
            )
        if stack not in self._of:
            self._of[stack] = new_stack(graph, pop.outputs[0].dtype.base_dtype)
        loop.grad_state.push(self._of[stack], convert_to_tensor(grad))

    def pop(self, push: Operation, state: GradState) -> Tensor:
        """The gradient of what ``push`` kept, in the gradient of its loop."""
        stack = stack_of(push.inputs[0])
        assert stack is not None
        value = push.inputs[1]
        guards = guards_of(push.graph).in_branches(push.outputs[0])
        return state.pop(self._of[stack], value.dtype.base_dtype, value.dims, guards)

    def filled(self, stack: Tensor, context: Any, by: Operation) -> None:
        """When ``by``, in ``context``, has run, all gradients for ``stack`` are there."""
        if stack in self._of:
            self._filled_by.setdefault((stack, context), []).append(by)

    def filled_by(self, stack: Tensor, context: Any) -> list[Operation]:
        """What must have run, in ``context``, before the gradients for ``stack`` are popped."""
        return self._filled_by.get((stack, context), [])
