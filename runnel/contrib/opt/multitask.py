"""Training on several losses of which some are missing from a batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.ops.clipping import clip_by_global_norm
from runnel.ops.comparison import equal
from runnel.ops.control import group, no_op
from runnel.ops.reduce_functions import count_nonzero
from runnel.train.optimizer import Optimizer


class MultitaskOptimizerWrapper:
    """``opt``, which leaves a variable and its slots alone where its gradient is all zeros.

    The gradient of a loss that a batch does not have is zero; applied, it would decay averages of
    gradients, though nothing is known. Everything else is the optimizer's own.

    Example:
        >>> opt = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
        >>> pairs, _ = tf.contrib.opt.clip_gradients_by_global_norm(opt.compute_gradients(loss))
        >>> train = opt.apply_gradients(pairs)
    """

    def __init__(self, opt: Optimizer) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        apply = opt._update

        def update(grad: Any, variable: Any) -> Any:
            values = grad.values if isinstance(grad, IndexedSlices) else grad
            nothing = equal(count_nonzero(values), 0)
            return cond(nothing, no_op, lambda: group(apply(grad, variable)))

        opt._update = update  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def clip_gradients_by_global_norm(
    gradients_variables: Iterable[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """The pairs with gradients scaled to a global norm of at most ``clip_norm``, and that norm.

    Gradients that are all zeros add nothing to it.
    """
    gradients, variables = zip(*gradients_variables, strict=True)
    clipped, norm = clip_by_global_norm(gradients, clip_norm)
    return list(zip(clipped, variables, strict=True)), norm
