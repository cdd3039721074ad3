"""Elastic averaging: a worker's own variables and a shared center draw each other nearer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.contrib.opt.own_variables import (
    OwnVariablesGetter,
    OwnVariablesOptimizer,
    StartAtCenterHook,
    assigned_from,
)
from runnel.control_flow.conditional import cond
from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.arithmetic import add_n, subtract
from runnel.ops.assign import assign_add, assign_sub
from runnel.ops.comparison import equal
from runnel.ops.constants import constant
from runnel.ops.control import group, no_op
from runnel.ops.l2 import l2_loss
from runnel.ops.queues.queues import FIFOQueue
from runnel.train.optimizer import Optimizer
from runnel.train.saver import Saver
from runnel.variables.initialization import global_variables, trainable_variables
from runnel.variables.partitioned_variable import PartitionedVariable

LOCAL_CENTER = "local_center_variable"


class ElasticAverageCustomGetter(OwnVariablesGetter):
    """A custom getter for :class:`ElasticAverageOptimizer`: own variables, centers, their copies.

    Example:
        >>> getter = tf.contrib.opt.ElasticAverageCustomGetter("/job:worker/task:0")
        >>> with tf.device(setter), tf.variable_scope("", custom_getter=getter):
        ...     w = tf.get_variable("w", [3])
    """

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device, LOCAL_CENTER)


class ElasticAverageOptimizer(OwnVariablesOptimizer):
    """``opt`` on a worker's own variables; every ``communication_period`` steps they meet a center.

    There the difference between both, times ``moving_rate``, is taken from the one and added to
    the other. In between, ``rho`` times the squared distance to the center as it was last seen is
    part of the loss. Workers do not wait for each other; with ``synchronous`` they begin together.
    ``global_step`` counts the meetings.

    Example:
        >>> opt = tf.contrib.opt.ElasticAverageOptimizer(
        ...     tf.train.GradientDescentOptimizer(0.1), num_worker=2, ea_custom_getter=getter)
        >>> train = opt.minimize(loss, global_step=step)
        >>> hooks = [opt.make_session_run_hook(is_chief, task_index)]
    """

    BETA = 0.9

    def __init__(
        self,
        opt: Optimizer,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: Any = None,
        rho: Any = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, ea_custom_getter, use_locking, name)
        self._seen = ea_custom_getter.beside
        self._num_worker = num_worker
        self._period = communication_period
        self._synchronous = synchronous
        if moving_rate is None:
            moving_rate = self.BETA / communication_period / num_worker
        self._moving_rate = moving_rate
        self._rho = moving_rate / opt._learning_rate if rho is None else rho  # type: ignore[attr-defined]

    def compute_gradients(
        self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any
    ) -> list[tuple[Any, Any]]:
        """The gradients of the loss and of the distance to the center."""
        variables = list(var_list or trainable_variables())
        apart = [l2_loss(subtract(own, self._seen[own])) for own in variables]
        return self._opt.compute_gradients(
            loss + self._rho * add_n(apart), variables, *args, **kwargs
        )

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """A worker's step: its own update, and a meeting with the center when it is time."""
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        before = {variable.op.name for variable in global_variables()}
        applied = self._opt.apply_gradients(pairs)
        _make_local(before)
        with graph.control_dependencies([applied]):
            counted = assign_add(self._local_step, 1, name="local_step_update")
        trained = [variable for grad, variable in pairs if grad is not None]
        with graph.control_dependencies([counted.op]):
            is_time = equal(self._local_step.read_value() % self._period, 0)
            return cond(is_time, lambda: self._meet(trained, global_step), no_op)

    def _meet(self, trained: list[Any], global_step: Any) -> Operation:
        graph = get_default_graph()
        looked = [assigned_from(self._seen[own], self._centers[own]) for own in trained]
        moves = []
        with graph.control_dependencies(looked):
            for own in trained:
                with graph.device(own.device):
                    pull = self._moving_rate * subtract(
                        own.read_value(), self._seen[own].read_value()
                    )
                with graph.control_dependencies([pull]):
                    with graph.device(own.device):
                        moves.append(assign_sub(own, pull))
                    with graph.device(self._centers[own].device):
                        moves.append(assign_add(self._centers[own], pull))
            if global_step is not None:
                with graph.colocate_with(global_step.op):
                    moves.append(assign_add(global_step, 1))
        return group(*moves)

    def get_init_op(self, task_index: int) -> Operation:
        """Has the worker's own variables be what the centers are; then others are waited for."""
        graph = get_default_graph()
        own = trainable_variables()
        if not own:
            raise ValueError("There are no trainable variables made with the custom getter")
        pulled = [self._pulled(own)]
        pulled += [assigned_from(self._seen[each], self._centers[each]) for each in own]
        if not self._synchronous:
            return group(*pulled)
        queues = [
            FIFOQueue(
                self._num_worker,
                [dtypes.bool_],
                shapes=[()],
                shared_name=f"variable_init_sync_queue{index}",
            )
            for index in range(self._num_worker)
        ]
        with graph.control_dependencies(pulled):
            told = [q.enqueue(constant(False)) for i, q in enumerate(queues) if i != task_index]
        return group(*told, queues[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> StartAtCenterHook:
        """The hook that every worker's session needs."""
        return StartAtCenterHook(lambda: self.get_init_op(task_index))

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A saver of the centers under the names of the variables, for programs that evaluate."""
        if not self._centers:
            raise RuntimeError(
                "There is no center: call this when the model was made with the custom getter"
            )
        if var_list is None:
            var_list = trainable_variables()
        if not isinstance(var_list, dict):
            var_list = _by_saved_name(var_list)
        swapped = {
            key: [self._centers.get(part, part) for part in value]
            if isinstance(value, list | PartitionedVariable)
            else self._centers.get(value, value)
            for key, value in var_list.items()
        }
        return Saver(swapped, name=name, **kwargs)


def _by_saved_name(variables: Iterable[Any]) -> dict[str, Any]:
    """Variables by the names that checkpoints give them; parts of one together."""
    found: dict[str, Any] = {}
    for variable in variables:
        part = getattr(variable, "_get_save_slice_info", lambda: None)()
        if part is None:
            found[variable.op.name] = variable
        else:
            found.setdefault(part.full_name, []).append(variable)
    return found


def _make_local(before: set[str]) -> None:
    """Has what the optimizer has made since then be local to the worker, as its variables are."""
    shared = get_default_graph().get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
    made = [variable for variable in shared if variable.op.name not in before]
    shared[:] = [variable for variable in shared if variable.op.name in before]
    get_default_graph().get_collection_ref(GraphKeys.LOCAL_VARIABLES).extend(made)
