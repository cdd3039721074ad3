"""The context of a loop that computes the gradient of another loop."""

from __future__ import annotations

from runnel.autodiff.loop_history import stand_in
from runnel.autodiff.loop_record import record_of
from runnel.control_flow.context import while_context_of, while_context_of_output
from runnel.control_flow.while_context import WhileContext
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import EXITS

_KNOWN_FROM_SHAPES = frozenset({"Shape", "Size", "Rank"})


class GradientContext(WhileContext):
    """The loop in which the gradient of ``forward`` is being built, or was.

    Its operations may take values of ``forward``: they get those of the iteration whose gradient
    they compute, from the history that ``forward`` keeps.
    """

    def __init__(self, forward: WhileContext) -> None:
        super().__init__(
            parallel_iterations=forward.parallel_iterations,
            back_prop=forward.back_prop,
            swap_memory=forward.swap_memory,
        )
        self._forward = forward
        self._record = record_of(self)
        self._record.gradient_of = record_of(forward)

    def may_take(self, inside: WhileContext) -> bool:
        return True

    def _stand_in(self, value: Tensor) -> Tensor | None:
        if while_context_of_output(value.op) is not self._forward:
            return None
        return stand_in(self._record, value)

    def _add_op(self, op: Operation) -> None:
        """What needs only the shape of a value of ``forward`` runs there: the shape is kept."""
        source = op.inputs[0].op if op.op_def.name in _KNOWN_FROM_SHAPES else None
        if (
            source is None
            or while_context_of(source) is not self._forward
            or source.op_def.name in EXITS
        ):
            super()._add_op(op)
            return
        op.control_flow_context = source.control_flow_context
        op.control_inputs = ()
        source.control_flow_context._add_op(op)
