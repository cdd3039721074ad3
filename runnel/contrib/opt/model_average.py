"""Workers that train variables of their own and average them every so many steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.contrib.opt.own_variables import (
    CENTER,
    OwnVariablesGetter,
    OwnVariablesOptimizer,
    StartAtCenterHook,
)
from runnel.control_flow.conditional import cond
from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.assign import assign, assign_add
from runnel.ops.comparison import equal
from runnel.ops.control import group, no_op
from runnel.ops.fill import fill
from runnel.ops.queues.accumulators import ConditionalAccumulator
from runnel.ops.queues.queues import FIFOQueue
from runnel.train.optimizer import Optimizer
from runnel.variables.initialization import trainable_variables
from runnel.variables.variable import Variable


class ModelAverageCustomGetter(OwnVariablesGetter):
    """A custom getter for :class:`ModelAverageOptimizer`: a worker's own variables, and centers.

    Example:
        >>> getter = tf.contrib.opt.ModelAverageCustomGetter("/job:worker/task:0")
        >>> with tf.device(setter), tf.variable_scope("", custom_getter=getter):
        ...     w = tf.get_variable("w", [3])
    """

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)

    def _center(
        self, getter: Callable[..., Any], name: str, own: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return Variable(
            own.initialized_value(),
            name=f"{CENTER}/{name}",
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
        )


class ModelAverageOptimizer(OwnVariablesOptimizer):
    """``opt`` on a worker's own variables, which all workers average every ``interval_steps``.

    The means go into the centers, and from there into all workers' variables; ``global_step``
    counts the averages. Workers wait for each other there. Each needs
    :meth:`make_session_run_hook`.

    Example:
        >>> opt = tf.contrib.opt.ModelAverageOptimizer(
        ...     tf.train.GradientDescentOptimizer(0.1), 2, is_chief, getter, interval_steps=10)
        >>> train = opt.minimize(loss, global_step=step)
        >>> hooks = [opt.make_session_run_hook()]
    """

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, ma_custom_getter, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._interval_steps = interval_steps
        self._chief_init_op: Operation = no_op()

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """A worker's step: its own update, and the average when it is time for one."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required")
        graph = get_default_graph()
        trained = [variable for grad, variable in pairs if grad is not None]
        accumulators = [self._accumulator(variable) for variable in trained]
        with graph.colocate_with(global_step.op):
            tokens = FIFOQueue(-1, [dtypes.bool_], shapes=[()], shared_name="sync_queue")
        moved = [accumulator.set_global_step(global_step) for accumulator in accumulators]
        self._chief_init_op = group(*moved)
        with graph.control_dependencies([self._opt.apply_gradients(pairs)]):
            counted = assign_add(self._local_step, 1, name="local_step_update")
        with graph.control_dependencies([counted.op]):
            is_time = equal(self._local_step.read_value() % self._interval_steps, 0)

            def average() -> Operation:
                met = self._meet(trained, accumulators, tokens, global_step)
                with graph.control_dependencies([met]):
                    return self._pulled(trained)

            return cond(is_time, average, no_op)

    def _accumulator(self, variable: Any) -> ConditionalAccumulator:
        center = self._centers[variable]
        with get_default_graph().device(center.device):
            return ConditionalAccumulator(
                variable.dtype.base_dtype,
                shape=variable.get_shape(),
                shared_name=f"{center.name}/var_accum",
            )

    def _meet(
        self,
        trained: list[Any],
        accumulators: list[ConditionalAccumulator],
        tokens: Any,
        global_step: Any,
    ) -> Operation:
        """Hands over the worker's variables, and ends when the centers have the means."""
        graph = get_default_graph()
        given = [
            accumulator.apply_grad(variable.read_value(), local_step=global_step)
            for variable, accumulator in zip(trained, accumulators, strict=True)
        ]
        if not self._is_chief:
            with graph.control_dependencies(given), graph.device(global_step.device):
                return tokens.dequeue().op
        averaged = []
        with graph.control_dependencies(given):
            for variable, accumulator in zip(trained, accumulators, strict=True):
                center = self._centers[variable]
                with graph.device(center.device):
                    averaged.append(assign(center, accumulator.take_grad(self._num_worker)))
        with graph.control_dependencies(averaged), graph.device(global_step.device):
            counted = assign_add(global_step, 1)
            with graph.control_dependencies([counted]):
                return tokens.enqueue_many((fill([self._num_worker - 1], False),))

    def get_init_op(self) -> Operation:
        """Has the worker's own variables be what the centers are."""
        return self._pulled(trainable_variables())

    def make_session_run_hook(self) -> StartAtCenterHook:
        """The hook that every worker's session needs."""

        def start() -> Operation:
            return group(self.get_init_op(), *([self._chief_init_op] if self._is_chief else []))

        return StartAtCenterHook(start)
