"""An optimizer that scales the loss up before differentiating and the gradients down afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation
from runnel.ops.casting import cast
from runnel.ops.control import group, no_op
from runnel.train.loss_scale import LossScale, as_loss_scale
from runnel.train.optimizer import Optimizer
from runnel.variables.variable import Variable


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """``opt`` with its loss multiplied by ``loss_scale`` and its gradients divided by it.

    A step whose gradients are not all finite changes no variable but the loss scale.

    Example:
        >>> optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        ...     tf.train.AdamOptimizer(1e-3), loss_scale="dynamic")
        >>> train = optimizer.minimize(loss)
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f"opt must be a tf.train.Optimizer, but is {opt!r}")
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale = as_loss_scale(loss_scale)

    @property
    def loss_scale(self) -> LossScale:
        """The loss scale."""
        return self._loss_scale

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Pairs of (gradient, variable), as without scaling but for what would have underflowed."""
        tensor = convert_to_tensor(loss() if callable(loss) else loss)
        scale = self._loss_scale()
        scaled = tensor * cast(scale, tensor.dtype.base_dtype)
        inverse = 1.0 / scale
        pairs = self._optimizer.compute_gradients(scaled, *args, **kwargs)
        return [(_times(grad, inverse), variable) for grad, variable in pairs]

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that updates the variables, if all gradients are finite."""
        pairs = list(grads_and_vars)
        adapt, finite = self._loss_scale.update([grad for grad, _ in pairs])

        def apply() -> Operation:
            return self._optimizer.apply_gradients(pairs, global_step, name)

        if finite is True:
            return group(apply(), adapt)
        graph = get_default_graph()
        with graph.control_dependencies(None):  # slots are made once, not in a branch
            self._optimizer._create_slots([v for grad, v in pairs if grad is not None])
        return group(cond(finite, apply, no_op), adapt)

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot ``name`` of the wrapped optimizer."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """Every variable that the wrapped optimizer has made in the default graph."""
        return self._optimizer.variables()


def _times(grad: Any, factor: Any) -> Any:
    if grad is None:
        return None
    factor = cast(factor, grad.dtype.base_dtype)
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor
