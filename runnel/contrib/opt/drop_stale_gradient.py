"""Asynchronous updates of which those are dropped that were computed too many steps ago."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.ops.array_shape import reshape
from runnel.ops.casting import cast
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.summary.summaries import scalar
from runnel.train.global_step import get_global_step
from runnel.train.optimizer import Optimizer
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros


class DropStaleGradientOptimizer(Optimizer):
    """``opt``, unless the global step has gone on by more than ``staleness`` meanwhile.

    The variable ``stale_counter`` beside the global step counts what was dropped.

    Example:
        >>> opt = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.AdamOptimizer(), staleness=4)
        >>> train = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())
    """

    def __init__(
        self,
        opt: Optimizer,
        staleness: int,
        use_locking: bool = False,
        name: str = "DropStaleGradient",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients, after the global step was read."""
        graph = get_default_graph()
        with graph.colocate_with(loss.op):
            self._local_step = get_global_step() + 0
        with graph.control_dependencies([self._local_step]):
            return self._opt.compute_gradients(identity(loss), *args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """Applies the gradients, or counts them; gives how many were dropped in all."""
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        with graph.colocate_with(global_step.op):
            dropped = get_variable("stale_counter", [], initializer=Zeros(), trainable=False)
        computed = [
            grad.op if isinstance(grad, IndexedSlices) else grad
            for grad, _ in pairs
            if grad is not None
        ]
        with graph.control_dependencies(computed), graph.colocate_with(global_step.op):
            behind = reshape(global_step.read_value() - self._local_step, [])

        def accept() -> Any:
            applied = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with graph.control_dependencies([applied]):
                return constant(0.0)

        update = dropped.assign_add(cond(behind <= self._staleness, accept, lambda: constant(1.0)))
        scalar(
            "Gradient staleness percentage",
            dropped.read_value() / cast(global_step.read_value() + 1, dropped.dtype.base_dtype),
        )
        return update
