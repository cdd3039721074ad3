"""A table of the workers that take part in a job: a variable of the graph beside the global step.

Rules over its columns (``membership.py``, ``quorum.py``) say what becomes of it at each event; here
is what makes an event of the graph of such a rule. Each replaces the table in one atomic step on
the task that holds it. A worker's row is under a lease, which a thread of the worker renews.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import numpy as np

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import DeadlineExceededError, OpError
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.ops.casting import cast
from runnel.ops.clock import timestamp
from runnel.ops.comparison import equal
from runnel.ops.constants import constant, placeholder
from runnel.ops.control import identity, no_op
from runnel.ops.joining import stack
from runnel.ops.reduce_functions import reduce_any, reduce_max, reduce_min, reduce_sum
from runnel.ops.selection import where_v2
from runnel.ops.splitting import unstack
from runnel.train.membership import NOBODY, Arrays
from runnel.variables.variable import Variable

Columns = TypeVar("Columns", bound=tuple[Any, ...])

MICROSECONDS = 1_000_000
"""Of a second: leases and deadlines are counted in them."""


def _where(condition: Any, x: Any, y: Any) -> Tensor:
    wanted = dtypes.int64
    return where_v2(condition, convert_to_tensor(x, wanted), convert_to_tensor(y, wanted))


def _total(x: Any) -> Tensor:
    return reduce_sum(cast(x, dtypes.int64))


GRAPH = Arrays(_where, equal, reduce_min, reduce_max, reduce_any, _total)
"""The functions of the rules, as operations."""


def check_row(worker_index: int, rows: int, lease_seconds: float, most: str) -> None:
    """Raises what is wrong with a worker's row and lease; ``most`` is the argument of ``rows``."""
    if not 0 <= worker_index < rows:
        raise ValueError(
            f"worker_index is {worker_index}, but there are rows for {rows} workers; "
            f"{most} is the most that ever take part"
        )
    if lease_seconds <= 0:
        raise ValueError(f"lease_seconds must be positive, not {lease_seconds}")


class LeasedTable(Generic[Columns]):
    """The table with the columns of the named tuple ``kind``, as the worker of ``row`` sees it."""

    def __init__(
        self,
        kind: type[Columns],
        name: str,
        global_step: Any,
        row: int,
        rows: int,
        *,
        is_saved: bool,
    ) -> None:
        self._kind = kind
        self._row, self._rows = row, rows
        graph = get_default_graph()
        fields = kind._fields  # type: ignore[attr-defined]
        # Replicas in one graph share it; those of other graphs do so by its name.
        made = graph.get_collection_ref(("__leased_table", name))
        if not made:
            with graph.colocate_with(global_step.op), name_scope(None):
                made.append(
                    Variable(
                        np.zeros((rows, len(fields)), np.int64),
                        trainable=False,
                        collections=None if is_saved else [],
                        name=f"{name}_members",
                    )
                )
        self.variable: Any = made[0]
        # Of this worker: only what is beside another operation escapes a device function that
        # puts variables on parameter servers.
        with graph.colocate_with(no_op()), name_scope(None):
            self._incarnation = Variable(
                np.int64(NOBODY),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                name=f"{name}_incarnation",
            )

    @contextmanager
    def beside(self) -> Iterator[None]:
        """On the task of the table, whatever device was asked for."""
        with get_default_graph().colocate_with(self.variable.op, ignore_existing=True):
            yield

    def mine(self) -> Tensor:
        """True for the row of this worker."""
        return constant(np.arange(self._rows) == self._row)

    def identity(self) -> Tensor:
        """Which life of this worker it is."""
        return self._incarnation.read_value()

    def columns(self) -> Columns:
        """The columns of the table as it is."""
        return self._kind(*unstack(self.variable.read_value(), axis=1))

    def columns_now(self) -> tuple[Columns, Tensor]:
        """The time in microseconds, and the columns of the table after it."""
        now = cast(timestamp() * float(MICROSECONDS), dtypes.int64, name="now")
        with get_default_graph().control_dependencies([now]):
            return self.columns(), now

    def event(self, decide: Callable[[Columns, Tensor, Tensor], Any]) -> Tensor | Operation:
        """What replaces the table by what ``decide`` makes of it; gives its second result."""
        identity_tensor = self.identity()
        with self.beside():
            columns, now = self.columns_now()
            changed, told = decide(columns, now, identity_tensor)
            stored = self.variable.assign(stack(list(changed), axis=1), read_value=False)
            with get_default_graph().control_dependencies([stored]):
                return no_op() if told is None else identity(told)

    def new_life(self) -> tuple[Tensor, Tensor]:
        """A placeholder for the number of a new life of this worker, and what makes it known."""
        life = placeholder(dtypes.int64, [], name="new_incarnation")
        return life, self._incarnation.assign(life)


def draw_incarnation() -> int:
    """Of the system's own randomness: no two lives of a worker have the same number."""
    return random.SystemRandom().randrange(1, 2**62)


def keep_lease(session: Any, coord: Any, renew: Operation, lease_seconds: float) -> None:
    """Starts a thread that renews a lease until the session ends: also a long step keeps it."""

    def keep() -> None:
        try:
            while not coord.wait_for_stop(lease_seconds / 6):
                with suppress(DeadlineExceededError):  # of the session's configuration: once more
                    session.run(renew)
        except (OpError, RuntimeError):  # the session is lost or closed, as the next step will say
            return

    thread = threading.Thread(target=keep, name="membership", daemon=True)
    coord.register_thread(thread)
    thread.start()
