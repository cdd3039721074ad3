"""Weight decay apart from the gradient's step (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation
from runnel.ops.assign import scatter_update
from runnel.ops.casting import cast
from runnel.ops.control import no_op
from runnel.ops.gather import gather
from runnel.train.adam import AdamOptimizer
from runnel.train.momentum import MomentumOptimizer
from runnel.train.optimizer import Optimizer


class DecoupledWeightDecayExtension(Optimizer):
    """What stands before an optimizer among the bases of a class to give it weight decay.

    Each variable loses ``weight_decay`` times itself before its gradient is applied; of a variable
    with a sparse gradient, the rows that the gradient names. The decay is not scaled by the
    learning rate: where one is scheduled, schedule the other.

    Example:
        >>> class AdagradW(tf.contrib.opt.DecoupledWeightDecayExtension, tf.train.AdagradOptimizer):
        ...     pass
        >>> AdagradW(1e-4, learning_rate=0.1).minimize(loss, decay_var_list=kernels)
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decay_var_list: set[Any] | None = None
        self._weight_decay = weight_decay
        super().__init__(*args, **kwargs)

    def minimize(
        self, loss: Any, *args: Any, decay_var_list: Iterable[Any] | None = None, **kwargs: Any
    ) -> Operation:
        """``Optimizer.minimize``; only the variables of ``decay_var_list``, if given, decay.

        (TensorFlow 1.15 forgets the list here and decays all; in ``apply_gradients`` it does not.)
        """
        self._decay_var_list = set(decay_var_list) if decay_var_list else None
        return super().minimize(loss, *args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """``Optimizer.apply_gradients``; only the variables of ``decay_var_list`` decay."""
        if decay_var_list:
            self._decay_var_list = set(decay_var_list)
        try:
            return super().apply_gradients(grads_and_vars, global_step, name)
        finally:
            self._decay_var_list = None  # a list is one call's

    def _update(self, grad: Any, variable: Any) -> Any:
        with get_default_graph().control_dependencies([self._decay(grad, variable)]):
            return super()._update(grad, variable)

    def _decay(self, grad: Any, variable: Any) -> Operation:
        if self._decay_var_list is not None and variable not in self._decay_var_list:
            return no_op()
        rate = cast(self._call_if_callable(self._weight_decay), variable.dtype.base_dtype)
        value = variable.read_value()
        if isinstance(grad, IndexedSlices):
            rows = gather(value, grad.indices)
            # Set, not added to: an index may stand several times.
            updated = scatter_update(variable, grad.indices, rows - rate * rows)
            return updated.op
        return variable.assign_sub(rate * value, use_locking=self._use_locking, read_value=False)

    def _current(self, var: Any) -> Any:
        return var.read_value()  # after the decay


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """The class ``base_optimizer`` with weight decay, which is its first argument.

    Example:
        >>> MyAdamW = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.AdamOptimizer)
        >>> MyAdamW(weight_decay=1e-4, learning_rate=1e-3).minimize(loss)
    """

    class OptimizerWithDecoupledWeightDecay(
        DecoupledWeightDecayExtension,
        base_optimizer,  # type: ignore[misc, valid-type]
    ):
        """An optimizer with weight decay."""

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Gradient descent with momentum and weight decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with weight decay.

    Example:
        >>> tf.contrib.opt.AdamWOptimizer(weight_decay=1e-4, learning_rate=1e-3).minimize(loss)
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)
