"""``SyncReplicasOptimizer``: one update from the gradients of many workers.

All of it is graph code over accumulators and one queue. Each variable has an accumulator beside it,
to which every worker adds its gradient; the chief's queue runner takes the mean when enough have
come, applies it, and puts a token for each worker into a queue. A worker that has added its
gradients waits for a token, which says at which step its next gradients will have been computed.
An accumulator drops a gradient that is from an earlier step than its own.

Where workers come and go, the table of ``elastic_replicas.py`` says when enough have come and who
goes on, in place of a number and of tokens.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import group, no_op
from runnel.ops.fill import fill
from runnel.ops.joining import stack
from runnel.ops.queues.accumulators import (
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
)
from runnel.ops.queues.queues import FIFOQueue
from runnel.ops.reduce_functions import reduce_max
from runnel.train.elastic_replicas import ElasticReplicas
from runnel.train.leased_table import check_row
from runnel.train.optimizer import Optimizer
from runnel.train.queue_runner import QueueRunner
from runnel.train.session_run_hook import SessionRunHook
from runnel.variables.initialization import global_variables, report_uninitialized_variables
from runnel.variables.variable import Variable

logger = logging.getLogger("runnel")


class SyncReplicasOptimizer(Optimizer):
    """``opt`` applied to the mean of the gradients of ``replicas_to_aggregate`` workers.

    ``total_num_replicas`` is how many workers there are; those beyond ``replicas_to_aggregate`` are
    backups: a step takes the first gradients that come, and later ones are dropped and counted
    (:meth:`num_dropped`). Every worker needs :meth:`make_session_run_hook`.

    With ``worker_index``, which TensorFlow does not have, workers come and go: each is a row of a
    table for ``total_num_replicas``, and an update is made of ``replicas_to_aggregate`` gradients
    or, where there are fewer workers, of those of all that are there. One that was not heard of
    for ``lease_seconds`` is not waited for until it is back. ``docs/guide/coordination.md`` has the
    guarantee.

    Example:
        >>> optimizer = tf.train.SyncReplicasOptimizer(
        ...     tf.train.AdamOptimizer(), replicas_to_aggregate=3, total_num_replicas=4)
        >>> train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        >>> hooks = [optimizer.make_session_run_hook(is_chief)]
        >>> with tf.train.MonitoredTrainingSession(server.target, is_chief, hooks=hooks) as sess:
        ...     sess.run(train)
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
        *,
        worker_index: int | None = None,
        lease_seconds: float = 10.0,
    ) -> None:
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        logger.info("Synchronous: the first %d gradients of %d", replicas_to_aggregate, total)
        if worker_index is not None:
            check_row(worker_index, total, lease_seconds, "total_num_replicas")
        self._row = worker_index
        self._lease_seconds = lease_seconds
        self._elastic: ElasticReplicas | None = None
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total
        self._tokens_per_step = max(total, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._gradients_applied = False
        self._accumulators: list[tuple[ConditionalAccumulatorBase, str]] = []
        self._global_step: Any = None
        self._token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self.local_step_init_op: Any = None
        """Sets a worker's own step to the global one."""
        self.chief_init_op: Any = None
        """The same, and sets the accumulators' steps: for the chief."""
        self.ready_for_local_init_op: Any = None
        """Names the global variables that are not initialised yet."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients of this worker, as the wrapped optimizer computes them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """A worker's step: adds its gradients, then waits for the update of the chief."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        graph = get_default_graph()
        # A variable of the worker's: only what is beside another operation escapes a device
        # function that puts variables on parameter servers.
        with graph.colocate_with(no_op()):
            local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        self.local_step_init_op = local_step.assign(global_step, read_value=False)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

        with name_scope(self._name):
            if self._row is not None:
                self._elastic = ElasticReplicas(
                    self._name,
                    global_step,
                    self._row,
                    self._total_num_replicas,
                    self._replicas_to_aggregate,
                    self._lease_seconds,
                )
            added: list[Operation] = []
            taken: list[tuple[Any, Any]] = []
            enough = [] if self._elastic is None else [self._elastic.enough_given()]
            for grad, variable in pairs:
                with graph.device(variable.device):
                    exchanged = self._exchange(grad, variable, local_step, added, enough)
                    taken.append((exchanged, variable))
            with graph.device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(taken, global_step)
                step = global_step.dtype.base_dtype
                self._token_queue = FIFOQueue(
                    -1, step, shapes=[()], name="sync_token_q", shared_name="sync_token_q"
                )
                # Closing a queue of a parameter server is for ever, and a queue runner closes its
                # queue at the end: it is given one that nobody uses.
                unused = FIFOQueue(
                    1, dtypes.int32, shapes=[()], name="dummy_queue", shared_name="dummy_queue"
                )
                token = self._after_the_update(graph, added, local_step)
                train_op = local_step.assign(token)
                with graph.control_dependencies([update]):
                    sync_op = self._let_go_on()
                if self._variable_averages is not None:
                    with graph.control_dependencies([sync_op]):
                        sync_op = self._variable_averages.apply(self._variables_to_average)
                self._chief_queue_runner = _UpdateRunner(unused, [sync_op])
            self.chief_init_op = group(self.local_step_init_op, *self._begin(graph, global_step))
        self._gradients_applied = True
        return train_op

    def _exchange(
        self,
        grad: Any,
        variable: Any,
        local_step: Any,
        added: list[Operation],
        enough: list[Operation],
    ) -> Any:
        """Adds a gradient to the variable's accumulator; returns what the chief takes out."""
        if grad is None:
            return None
        # Where workers come and go, the number was decided before: then what is there is taken.
        required = 1 if enough else self._replicas_to_aggregate
        before_taking = get_default_graph().control_dependencies(enough)
        name = f"{variable.name}/grad_accum"
        if isinstance(grad, IndexedSlices):
            rows = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=name)
            self._accumulators.append((rows, variable.device))
            added.append(rows.apply_indexed_slices_grad(grad, local_step=local_step))
            with before_taking:
                return rows.take_indexed_slices_grad(required)
        if not isinstance(grad, Tensor):
            raise ValueError(
                f"The gradient of {variable.name} must be a tensor or IndexedSlices, not {grad!r}"
            )
        whole = ConditionalAccumulator(grad.dtype, shape=variable.get_shape(), shared_name=name)
        self._accumulators.append((whole, variable.device))
        added.append(whole.apply_grad(grad, local_step=local_step))
        with before_taking:
            return whole.take_grad(required)

    def _after_the_update(self, graph: Graph, added: list[Operation], local_step: Any) -> Any:
        """The step at which the worker goes on, once the update of its gradients was made."""
        if self._elastic is not None:
            return self._elastic.give_and_wait(added, local_step)
        with graph.control_dependencies(added):
            return self._token_queue.dequeue()

    def _let_go_on(self) -> Operation:
        """Tells the workers that an update was made."""
        if self._elastic is not None:
            return self._elastic.wake()
        return self._tokens(self._tokens_per_step)

    def _begin(self, graph: Graph, global_step: Any) -> list[Operation]:
        """Has the accumulators be where the job is."""
        if self._elastic is not None:
            return [self._elastic.begin_anew(self._accumulators)]
        moved = []
        for accumulator, device in self._accumulators:
            with graph.device(device):
                moved.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
        return moved

    # What a program, or the hook, runs --------------------------------------------------------

    def get_chief_queue_runner(self) -> QueueRunner:
        """The runner whose thread, in the chief, applies what the workers have added."""
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Puts the first tokens into the queue: as many as gradients are aggregated, or a number.

        With none (and no fewer workers than gradients that are aggregated) every worker waits for
        the first update. Workers that have been given one each are a gradient ahead of it.
        """
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if self._elastic is not None:
            num_tokens = 0  # nobody runs ahead, and there are no tokens
        elif num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} "
                "(needed): there are fewer workers than gradients that are aggregated."
            )
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        return self._tokens(num_tokens)

    def _tokens(self, count: int) -> Operation:
        """Puts tokens of the present step into the queue."""
        with get_default_graph().device(self._global_step.device), name_scope(""):
            tokens = fill([count], self._global_step.read_value())
            return self._token_queue.enqueue_many((tokens,))

    def num_dropped(self, name: str | None = None) -> Tensor:
        """How many steps of workers came too late; of the variable that has dropped the most.

        It counts from when the parameter server began. TensorFlow does not tell.
        """
        if not self._gradients_applied:
            raise ValueError("num_dropped() should be called after apply_gradients().")
        counts = []
        for accumulator, device in self._accumulators:
            with get_default_graph().device(device):
                counts.append(accumulator.num_dropped())
        return reduce_max(stack(counts), name=name)

    def num_members(self, name: str | None = None) -> Tensor:
        """How many workers an update waits for now; where workers come and go.

        TensorFlow does not tell.
        """
        if self._elastic is None:
            raise ValueError(
                "num_members() needs worker_index, and should be called after apply_gradients()."
            )
        return self._elastic.num_members(name)

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """The hook that every worker's session needs; the chief's also applies the updates."""
        return _SyncReplicasHook(self, is_chief, num_tokens)

    # The wrapped optimizer's state ------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Any:
        """The wrapped optimizer's slot."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """The wrapped optimizer's variables."""
        return self._opt.variables()


class _UpdateRunner(QueueRunner):
    """Applies updates until the coordinator stops, also when it waits for gradients then.

    No queue that is closed would wake it: without this a job ends when the coordinator's patience
    does, after two minutes.
    """

    def _cancel_on_stop(self, sess: Any, coord: Any, fillers: list[threading.Thread]) -> None:
        coord.wait_for_stop()
        for thread in fillers:
            while thread.is_alive():  # one cancellation could come just before a step begins
                sess._cancel_steps_of(thread.ident, "The training session ends")
                thread.join(0.02)


class _SyncReplicasHook(SessionRunHook):
    """Begins the steps of a worker where the job is; in the chief, starts what applies updates."""

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._first_tokens: Operation | None = None
        self._last_tokens: Operation | None = None

    def begin(self) -> None:
        if not self._optimizer._gradients_applied:
            raise ValueError(
                "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
            )
        if self._is_chief:
            self._first_tokens = self._optimizer.get_init_tokens_op(self._num_tokens)
            elastic = self._optimizer._elastic
            self._last_tokens = (
                self._optimizer._let_go_on() if elastic is None else elastic.dismiss()
            )

    def after_create_session(self, session: Any, coord: Any) -> None:
        optimizer = self._optimizer
        missing = session.run(optimizer.ready_for_local_init_op)
        if len(missing):
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init: "
                f"these variables are not initialized: {names}"
            )
        elastic = optimizer._elastic
        if not self._is_chief:
            if elastic is not None:
                elastic.join(session, coord)  # from here on, updates wait for it
            session.run(optimizer.local_step_init_op)
            return
        session.run(optimizer.chief_init_op)
        session.run(self._first_tokens)
        if elastic is not None:
            elastic.join(session, coord)
        runner = optimizer.get_chief_queue_runner()
        runner.create_threads(session, coord=coord, daemon=True, start=True)

    def end(self, session: Any) -> None:
        elastic = self._optimizer._elastic
        if elastic is not None and not self._is_chief:
            elastic.leave(session)
        # No update comes any more: who waits for one is to see that the job is done.
        if self._last_tokens is not None:
            session.run(self._last_tokens)
