"""The context of one branch of a conditional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.context import ControlFlowContext, add_control_inputs, output_context
from runnel.control_flow.structure import map_leaves
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.loop_edges import closes_loop
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import with_dependencies
from runnel.ops.control_flow import switch


class CondContext(ControlFlowContext):
    """A branch (1 for true, 0 for false) of the conditional on ``pred``.

    ``pivot`` is alive when the branch is taken: what has no inputs from the branch waits for it.
    """

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, name: str = "cond_text") -> None:
        super().__init__(name)
        self._pred = pred
        self._pivot = pivot
        self._branch = branch
        self._values |= {pred, pivot}
        self._external_values[pred] = pred
        pivot.op.control_flow_context = self

    @property
    def pred(self) -> Tensor:
        return self._pred

    @property
    def pivot(self) -> Tensor:
        return self._pivot

    @property
    def branch(self) -> int:
        return self._branch

    @property
    def back_prop(self) -> bool:
        loop = self.GetWhileContext()
        return loop.back_prop if loop is not None else False

    def GetControlPivot(self) -> Tensor:
        return self._pivot

    def AddValue(self, value: Tensor) -> Tensor:
        if value in self._values:
            return self._external_values.get(value, value)
        self._values.add(value)
        result = value
        if self._outer_context is not None:
            result = self._outer_context.AddValue(value)
            self._values.add(result)
            self._external_values[result] = result
        with self._graph.control_dependencies(None), self._graph.colocate_with(result, True):
            result = switch(result, self._pred)[self._branch]
        result.op.control_flow_context = self
        self._graph.prevent_fetching(result.op)
        self._graph.prevent_feeding(result)
        self._know_everywhere([result])
        self._external_values[value] = result
        return result

    def AddOp(self, op: Operation) -> None:
        with self._graph.name_scope(f"{op.name}/"):
            self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        if not op.inputs:
            self._remove_external_control_inputs(op)
            if not any(self._is_within(control) for control in op.control_inputs):
                add_control_inputs(op, [self._pivot.op])
        else:
            inputs = list(op.inputs)
            op.inputs = [t if closes_loop(t, op) else self.AddValue(t) for t in inputs]
            self._remove_external_control_inputs(op)
        self._know_everywhere(op.outputs)
        self._hide(op)

    def _is_within(self, op: Operation) -> bool:
        context = output_context(op)
        while context is not None and context is not self:
            context = context.outer_context
        return context is self

    # Building -------------------------------------------------------------------------------

    def build_branch(self, function: Callable[[], Any]) -> tuple[Any, list[Tensor]]:
        """What ``function`` returns, and the tensors that stand for it inside the branch."""
        from runnel.control_flow.structure import flatten

        original = function()
        if original is None:
            return None, []
        return original, flatten(map_leaves(self._result, original))

    def _result(self, value: Any) -> Tensor:
        if isinstance(value, Operation):
            # The pivot stands for an operation: it is there when the operation has run.
            with self._graph.colocate_with(self._pivot):
                return with_dependencies([value], self._pivot)
        flow = getattr(value, "_flow_of_tensor_array", None)
        if flow is not None:
            value = flow()
        return self._known(convert_to_tensor(value))

    def _known(self, value: Tensor) -> Tensor:
        """``value`` inside the branch, also where the branch returns it as it came."""
        if value in self._values:
            return self._external_values.get(value, value)
        self._values.add(value)
        result = value
        if self._outer_context is not None:
            result = self._outer_context.AddValue(value)
            self._values.add(result)
            self._external_values[result] = result
        with self._graph.colocate_with(result, True):
            result = switch(result, self._pred)[self._branch]
        self._external_values[value] = result
        return result
