"""Bounding the norms of variables after each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation
from runnel.ops.assign import scatter_update
from runnel.ops.clipping import clip_by_norm
from runnel.ops.control import group
from runnel.ops.gather import gather
from runnel.train.optimizer import Optimizer


class VariableClippingOptimizer(Optimizer):
    """``opt``, whose variables are then clipped to an L2 norm of at most ``max_norm``.

    ``vars_to_clip_dims`` maps each variable to the dimensions over which its norm is taken. Of a
    variable with a sparse gradient only the rows that it names are clipped, unless dimension 0 is
    among those.
    """

    def __init__(
        self,
        opt: Optimizer,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._vars_to_clip_dims = {v: list(dims) for v, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        with name_scope(name, self._name) as scope:
            train = self._opt.apply_gradients(pairs, global_step=global_step)
            clips = []
            with graph.control_dependencies([train]):
                for grad, variable in pairs:
                    if grad is not None and variable in self._vars_to_clip_dims:
                        beside = graph.colocate_with(variable.op) if self._colocate else None
                        with name_scope(f"clip_{variable.op.name}"), beside or nullcontext():
                            clips.append(self._clip(grad, variable))
            return group(train, *clips, name=scope)

    def _clip(self, grad: Any, variable: Any) -> Operation:
        dims = self._vars_to_clip_dims[variable]
        value = variable.read_value()
        if isinstance(grad, IndexedSlices) and 0 not in dims:
            # Set, where TensorFlow subtracts: an index may stand several times.
            rows = clip_by_norm(gather(value, grad.indices), self._max_norm, dims)
            return scatter_update(variable, grad.indices, rows, self._use_locking).op
        clipped = clip_by_norm(value, self._max_norm, dims)
        return variable.assign(clipped, use_locking=self._use_locking, read_value=False)
