"""Training one set of weights and saving their moving averages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.control import group
from runnel.train.moving_averages import ExponentialMovingAverage
from runnel.train.optimizer import Optimizer
from runnel.train.saver import Saver
from runnel.variables.initialization import global_variables


class MovingAverageOptimizer(Optimizer):
    """``opt``, and moving averages of all that it trains.

    The :meth:`swapping_saver` saves the averages under the names of the variables, so that a
    program that only restores them, to evaluate, uses the averages. ``sequential_update`` moves
    the averages after the variables, not beside them.

    Example:
        >>> opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
        >>> train = opt.minimize(loss)
        >>> saver = opt.swapping_saver()
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: Any = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._swapped: dict[str, str] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        pairs = list(grads_and_vars)
        train = self._optimizer.apply_gradients(pairs, global_step, name)
        trained = [variable for grad, variable in pairs if grad is not None]
        with get_default_graph().control_dependencies([train] if self._sequential_update else []):
            move = self._ema.apply(trained)
        self._swapped = {}
        for variable in trained:
            average = self._ema.average(variable)
            assert average is not None  # apply has made it
            self._swapped[variable.op.name] = average.op.name
            self._swapped[average.op.name] = variable.op.name
        return group(train, move, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A saver of ``var_list`` (default: all) in which averages and variables change places.

        Call it when all variables, and the training operation, have been made.
        """
        if self._swapped is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        if var_list is None:
            var_list = global_variables()
        if not isinstance(var_list, dict):
            var_list = {variable.op.name: variable for variable in var_list}
        missing = [self._swapped[key] for key in var_list if key in self._swapped]
        missing = [key for key in missing if key not in var_list]
        if missing:
            raise ValueError(
                f"Variable to swap {missing[0]} is not part of variables to save. "
                "This breaks MovingAverageOptimizer."
            )
        swapped = {key: var_list[self._swapped.get(key, key)] for key in var_list}
        return Saver(swapped, name=name, **kwargs)
