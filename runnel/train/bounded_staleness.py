"""``BoundedStalenessOptimizer``: each worker updates on its own, none too far ahead of the slowest.

All of it is graph code over one variable, the table of ``membership.py``, which lies beside the
global step. Before a step a worker asks the table whether it may begin; after it, the step is
applied if the worker still takes part, and its clock goes on. A worker holds nothing that is lost
with it: those that wait ask again, so a process may die at any moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph import dtypes
from runnel.graph.graph import Graph, get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import scatter_add
from runnel.ops.constants import constant
from runnel.ops.control import group, identity, no_op
from runnel.ops.joining import stack
from runnel.ops.reduce_functions import reduce_sum
from runnel.train import membership
from runnel.train.leased_table import (
    GRAPH,
    MICROSECONDS,
    LeasedTable,
    check_row,
    draw_incarnation,
    keep_lease,
)
from runnel.train.membership import GO, PUT_OUT, Members
from runnel.train.optimizer import Optimizer
from runnel.train.session_run_hook import SessionRunHook
from runnel.variables.variable import Variable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
"""How long, in seconds, a worker that must wait pauses before it asks again."""


class BoundedStalenessOptimizer(Optimizer):
    """``opt`` on many workers, none of which is more than ``staleness`` steps ahead of another.

    With 0 they go in lockstep, with ``math.inf`` each as fast as it can. ``worker_index`` is a row
    of a table for ``num_workers``; workers may join late, leave and come back. One that was not
    heard of for ``lease_seconds`` and holds up others is left out, and what it sends later is
    dropped and counted (:meth:`num_dropped`). Every worker needs :meth:`make_session_run_hook`.
    TensorFlow has nothing like it; ``docs/guide/coordination.md`` has the guarantee.

    Example:
        >>> optimizer = tf.train.BoundedStalenessOptimizer(
        ...     tf.train.AdamOptimizer(), staleness=3, worker_index=task, num_workers=4)
        >>> train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        >>> hooks = [optimizer.make_session_run_hook()]
        >>> with tf.train.MonitoredTrainingSession(server.target, task == 0, hooks=hooks) as sess:
        ...     sess.run(train)
    """

    def __init__(
        self,
        opt: Optimizer,
        staleness: float,
        worker_index: int,
        num_workers: int,
        lease_seconds: float = 10.0,
        use_locking: bool = False,
        name: str = "bounded_staleness",
    ) -> None:
        super().__init__(use_locking, name)
        if staleness < 0 or (staleness != math.inf and staleness != int(staleness)):
            raise ValueError(f"staleness must be a number of steps or math.inf, not {staleness}")
        check_row(worker_index, num_workers, lease_seconds, "num_workers")
        self._opt = opt
        self._staleness = membership.UNBOUNDED if staleness == math.inf else int(staleness)
        self._row = worker_index
        self._workers = num_workers
        self._lease_seconds = lease_seconds
        self._lease = int(lease_seconds * MICROSECONDS)
        self._members: LeasedTable[Members] | None = None
        self._new_incarnation: Any = None
        self._join: Any = None
        self._enter: Any = None
        self._renew: Any = None
        self._leave: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients of this worker, as the wrapped optimizer computes them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """A worker's step: applied, unless the job has gone on without the worker."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        if not pairs:
            raise ValueError("Must supply at least one variable with a gradient")
        if global_step is None:
            raise ValueError("Global step is required: the table of workers lies beside it")
        graph = get_default_graph()
        with graph.control_dependencies(None):
            self._opt._create_slots([variable for _, variable in pairs])
            self._members = table = LeasedTable(
                Members, self._name, global_step, self._row, self._workers, is_saved=True
            )
        with name_scope(name, self._name):
            self._describe_events(graph, table)
            arrived = [(_moved(graph, grad, variable), variable) for grad, variable in pairs]
            parts = [part for grad, _ in arrived for part in _tensors(grad)]
            # When all gradients are where they are used, nothing of the worker's is needed to apply
            # them: admitted, they are applied soon, whatever becomes of the worker.
            with graph.control_dependencies(parts), table.beside():
                members, now = table.columns_now()
                admitted = membership.admits(
                    GRAPH, members, table.mine(), table.identity(), now, self._lease
                )
            applied = cond(admitted, lambda: self._opt.apply_gradients(arrived, global_step), no_op)
            with graph.control_dependencies([applied]), table.beside():
                done, left, dropped = membership.change(
                    GRAPH, table.columns(), table.mine(), table.identity(), admitted
                )
                nothing = constant(0, dtypes.int64)
                added = stack([[nothing, done, left, nothing, dropped]])
                return group(scatter_add(table.variable, [self._row], added))

    # The table --------------------------------------------------------------------------------

    def _describe_events(self, graph: Graph, table: LeasedTable[Members]) -> None:
        mine, lease = table.mine(), self._lease
        self._new_incarnation, born = table.new_life()
        with graph.control_dependencies([born]):
            self._join = table.event(
                lambda m, now, me: (membership.join(GRAPH, m, mine, me, now, lease), None),
            )
        self._enter = table.event(
            lambda m, now, me: membership.enter(GRAPH, m, mine, me, now, lease, self._staleness),
        )
        self._renew = table.event(
            lambda m, now, me: (membership.renew(GRAPH, m, mine, me, now, lease), None)
        )
        self._leave = table.event(lambda m, now, me: (membership.leave(GRAPH, m, mine, me), None))

    # What a program runs ----------------------------------------------------------------------

    def num_dropped(self, name: str | None = None) -> Tensor:
        """How many steps of all workers were dropped, since the table was made."""
        return reduce_sum(self._checked_table().read_value()[:, -1], name=name)

    def clocks(self, name: str | None = None) -> Tensor:
        """How far each worker has come; of one that takes no part, how far it had."""
        return identity(self._checked_table().read_value()[:, 1], name=name)

    def _checked_table(self) -> Any:
        if self._members is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._members.variable

    def make_session_run_hook(self) -> SessionRunHook:
        """The hook that every worker's session needs: it joins, waits before steps, and leaves."""
        return _MemberHook(self)

    def get_slot(self, var: Any, name: str) -> Any:
        """The wrapped optimizer's slot."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """The wrapped optimizer's variables."""
        return self._opt.variables()


def _moved(graph: Graph, grad: Any, variable: Any) -> Any:
    """The gradient where its variable is."""
    with graph.colocate_with(variable.op, ignore_existing=True):
        if isinstance(grad, IndexedSlices):
            return IndexedSlices(identity(grad.values), identity(grad.indices), grad.dense_shape)
        return identity(grad)


def _tensors(grad: Any) -> list[Tensor]:
    return [grad.values, grad.indices] if isinstance(grad, IndexedSlices) else [grad]


class _MemberHook(SessionRunHook):
    """Keeps a worker in the table: joins, asks before each step, renews the lease, leaves."""

    def __init__(self, optimizer: BoundedStalenessOptimizer) -> None:
        self._optimizer = optimizer
        self._coord: Any = None

    def begin(self) -> None:
        self._optimizer._checked_table()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._coord = coord
        self._join(session)
        keep_lease(session, coord, self._optimizer._renew, self._optimizer._lease_seconds)

    def _join(self, session: Any) -> None:
        optimizer = self._optimizer
        session.run(optimizer._join, {optimizer._new_incarnation: draw_incarnation()})

    def before_run(self, run_context: Any) -> None:
        session, pause = run_context.session, _FIRST_PAUSE
        while (told := session.run(self._optimizer._enter)) != GO:
            if told == PUT_OUT:
                self._join(session)
            elif self._coord.wait_for_stop(pause):
                return
            pause = min(2 * pause, _LONGEST_PAUSE)

    def end(self, session: Any) -> None:
        session.run(self._optimizer._leave)
