"""Synchronous training whose workers come and go: the graph of the rules in ``quorum.py``.

A worker that has added its gradients says so in a table, and rings for the chief. The chief's
update begins with a loop that reads the table, and waits for a ring, until what was given suffices.
A worker's step ends with a loop that waits, likewise, until the table and the global step say that
the update was made. Both loops are on the task of the table. A ring carries nothing: whoever hears
it looks at the state again, so one too many is harmless, and the next renewal of a lease makes up
for one that was lost with a process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.control_flow.loop import while_loop
from runnel.graph import dtypes
from runnel.graph.errors import DeadlineExceededError
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.assign import is_variable_initialized
from runnel.ops.casting import cast
from runnel.ops.constants import constant
from runnel.ops.control import group, no_op
from runnel.ops.fill import fill
from runnel.ops.queues.accumulators import (
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
)
from runnel.ops.queues.queues import FIFOQueue
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.splitting import unstack
from runnel.train import membership, quorum
from runnel.train.leased_table import (
    GRAPH,
    MICROSECONDS,
    LeasedTable,
    draw_incarnation,
    keep_lease,
)
from runnel.train.quorum import Givers

_LONGEST_WAIT = 7200.0
"""For the chief, in seconds: as long as a session waits for it."""
_PAUSE = 0.02


class ElasticReplicas:
    """What the worker ``row`` of at most ``rows`` does beside adding and applying gradients.

    An update is made of ``required`` gradients, or of those of all members whose leases last.
    """

    def __init__(
        self, name: str, global_step: Any, row: int, rows: int, required: int, lease_seconds: float
    ) -> None:
        self._step = global_step
        self._required = required
        self._lease_seconds = lease_seconds
        self._lease = lease = int(lease_seconds * MICROSECONDS)
        graph = get_default_graph()
        with graph.control_dependencies(None):
            self._table = table = LeasedTable(Givers, name, global_step, row, rows, is_saved=False)
        with graph.device(global_step.device), name_scope(None):
            self._chief_bell = _bell(f"{name}_chief_bell")
            self._bells = [_bell(f"{name}_bell_{each}") for each in range(rows)]
        self._own_bell = self._bells[row]
        self._initialized = is_variable_initialized(table.variable)
        mine = table.mine()
        self._new_life, born = table.new_life()
        with graph.control_dependencies([born]):
            self._join = table.event(
                lambda g, now, me: (quorum.join(GRAPH, g, mine, me, now, lease), None)
            )
        renewed = table.event(
            lambda g, now, me: (membership.renew(GRAPH, g, mine, me, now, lease), None)
        )
        # Time has passed: perhaps nobody waits any more for one whose lease is over.
        self._renew = group(self._ring(self._chief_bell, renewed), self._ring(self._own_bell))
        left = table.event(lambda g, now, me: (membership.leave(GRAPH, g, mine, me), None))
        self._leave = self._ring(self._chief_bell, left)

    # The graph of a worker's step, and of the chief's -----------------------------------------

    def give_and_wait(self, added: Sequence[Operation], local_step: Any) -> Tensor:
        """Says that the gradients were added; the step to go on with, when the update was made."""
        table, graph = self._table, get_default_graph()
        mine, me = table.mine(), table.identity()
        with graph.control_dependencies(added):
            given = self._give(cast(local_step.read_value(), dtypes.int64))

        def is_over() -> Tensor:
            return ~quorum.waits(GRAPH, table.columns(), mine, me, self._global_step())

        with graph.control_dependencies([given]):
            over = self._wait_until(is_over, self._own_bell)
        with graph.control_dependencies([over]):
            return self._step.read_value()

    def _give(self, step: Tensor) -> Operation:
        mine = self._table.mine()
        given = self._table.event(
            lambda g, now, me: (quorum.give(GRAPH, g, mine, me, step, now, self._lease), None)
        )
        return self._ring(self._chief_bell, given)

    def enough_given(self) -> Operation:
        """Ends when the chief can make an update; each accumulator has a gradient then."""

        def is_enough() -> Tensor:
            givers, now = self._table.columns_now()
            return quorum.suffices(GRAPH, givers, self._global_step(), self._required, now)

        return self._wait_until(is_enough, self._chief_bell).op

    def wake(self) -> Operation:
        """Rings for those whose update was just made; after the global step has gone on."""
        with self._table.beside():
            before = self._global_step() - 1
            waiting = quorum.waiting(GRAPH, self._table.columns(), before)
            rings = unstack(cast(waiting, dtypes.int32), num=len(self._bells))
        return group(*(self._ring(bell, count=count) for bell, count in zip(self._bells, rings)))

    def begin_anew(
        self, accumulators: Sequence[tuple[ConditionalAccumulatorBase, str]]
    ) -> Operation:
        """The chief begins: what was collected is forgotten, and every worker takes its row again.

        In this order. Whoever is in its row has added its gradients after they were forgotten.
        """
        graph = get_default_graph()
        moved = []
        for accumulator, device in accumulators:
            with graph.device(device), graph.control_dependencies([_emptied(accumulator)]):
                moved.append(accumulator.set_global_step(self._step, name="SetGlobalStep"))
        with graph.control_dependencies(moved):
            return self.dismiss()

    def dismiss(self) -> Operation:
        """Nobody takes part, and nobody waits for an update any more."""
        with self._table.beside():
            variable = self._table.variable
            nobody = variable.assign(variable.initial_value, read_value=False)
        return group(*(self._ring(bell, nobody) for bell in self._bells))

    def num_members(self, name: str | None = None) -> Tensor:
        """How many workers an update waits for."""
        with self._table.beside():
            givers, now = self._table.columns_now()
            alive = quorum.living(GRAPH, givers, now)
            return reduce_sum(cast(alive, dtypes.int32), name=name)

    def _global_step(self) -> Tensor:
        return cast(self._step.read_value(), dtypes.int64)

    def _ring(self, bell: Any, after: Any = None, count: Any = 1) -> Operation:
        graph = get_default_graph()
        with graph.control_dependencies([] if after is None else [after]), self._table.beside():
            return bell.enqueue_many((fill([count], constant(False)),))

    def _wait_until(self, holds: Callable[[], Tensor], bell: Any) -> Tensor:
        graph = get_default_graph()

        def again(_: Any) -> Tensor:
            # All that have been rung at once: each only says to look again.
            rung = bell.dequeue_many(maximum(bell.size(), 1))
            with graph.control_dependencies([rung]):
                return holds()

        with self._table.beside():
            return while_loop(
                lambda held: ~held, again, [holds()], parallel_iterations=1, back_prop=False
            )

    # What a hook runs -------------------------------------------------------------------------

    def join(self, session: Any, coord: Any) -> None:
        """Takes part, as soon as the chief has begun, until the session ends."""
        waited = 0.0
        while not session.run(self._initialized):
            if coord.wait_for_stop(_PAUSE):
                return
            waited += _PAUSE
            if waited > _LONGEST_WAIT:
                raise DeadlineExceededError(
                    None, None, "The chief did not begin: does it have the hook, with is_chief?"
                )
        session.run(self._join, {self._new_life: draw_incarnation()})
        keep_lease(session, coord, self._renew, self._lease_seconds)

    def leave(self, session: Any) -> None:
        """Takes part no more: nobody waits for it."""
        session.run(self._leave)


def _bell(name: str) -> FIFOQueue:
    return FIFOQueue(-1, dtypes.bool_, shapes=[()], name=name, shared_name=name)


def _emptied(accumulator: ConditionalAccumulatorBase) -> Operation:
    def forget() -> Operation:
        if isinstance(accumulator, SparseConditionalAccumulator):
            taken: IndexedSlices = accumulator.take_indexed_slices_grad(1)
            return group(taken.values, taken.indices)
        assert isinstance(accumulator, ConditionalAccumulator)
        return group(accumulator.take_grad(1))

    return cond(accumulator.num_accumulated() > 0, forget, no_op)
