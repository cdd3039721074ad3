"""QueueRunner: threads that fill a queue."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.default_collections import add_to_collection
from runnel.graph.default_session import get_default_session
from runnel.graph.errors import OutOfRangeError, exception_type_from_error_code
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.message_types import INT32, STRING, MessageTypes, many, one
from runnel.ops.queues.queues import QueueBase
from runnel.pipelines.watching import INPUT_TIMES
from runnel.train.coordinator import Coordinator
from runnel.train.step_gate import StepGate
from runnel.variables.proto_names import add_scope, strip_scope

logger = logging.getLogger("runnel")

_TYPES = MessageTypes(
    "queue_runner",
    {
        "QueueRunnerDef": [
            one("queue_name", 1, STRING),
            many("enqueue_op_name", 2, STRING),
            one("close_op_name", 3, STRING),
            one("cancel_op_name", 4, STRING),
            many("queue_closed_exception_types", 5, INT32),
        ]
    },
)


@cache
def queue_runner_def() -> Any:
    """The class of ``QueueRunnerDef`` messages."""
    return _TYPES["QueueRunnerDef"]


class QueueRunner:
    """Runs each of ``enqueue_ops`` again and again in a thread of its own.

    When one of them ends (with one of ``queue_closed_exception_types``, OutOfRangeError by
    default) its thread ends, and the last one to end runs ``close_op``, so that consumers get what
    is left and then an OutOfRangeError. When the coordinator stops, ``cancel_op`` wakes those that
    wait. Both close ``queue`` unless others are given.

    Example:
        >>> runner = tf.train.QueueRunner(queue, [queue.enqueue(example)] * 4)  # four threads
        >>> tf.train.add_queue_runner(runner)
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[BaseException], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        # Guards what follows, which several threads of the runner change.
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._gates: weakref.WeakKeyDictionary[Any, StepGate] = weakref.WeakKeyDictionary()
        self._exceptions: list[BaseException] = []
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._read(queue_runner_def, import_scope)
            return
        if queue is None or not enqueue_ops:
            raise ValueError("QueueRunner needs a queue and some enqueue_ops")
        if queue_closed_exception_types is None:
            queue_closed_exception_types = (OutOfRangeError,)
        elif not (
            isinstance(queue_closed_exception_types, tuple)
            and queue_closed_exception_types
            and all(
                isinstance(t, type) and issubclass(t, Exception)
                for t in queue_closed_exception_types
            )
        ):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of exception "
                f"types, but is {queue_closed_exception_types!r}"
            )
        self._queue: Any = queue
        self._enqueue_ops = list(enqueue_ops)
        self._close_op = close_op if close_op is not None else queue.close()
        if cancel_op is None:
            cancel_op = queue.close(cancel_pending_enqueues=True)
        self._cancel_op = cancel_op
        self._closed_types = queue_closed_exception_types

    # In a MetaGraphDef ----------------------------------------------------------------------

    def _read(self, described: Any, scope: str | None) -> None:
        find = get_default_graph().as_graph_element
        self._queue = find(add_scope(described.queue_name, scope))
        self._enqueue_ops = [find(add_scope(name, scope)) for name in described.enqueue_op_name]
        self._close_op = find(add_scope(described.close_op_name, scope))
        self._cancel_op = find(add_scope(described.cancel_op_name, scope))
        codes = described.queue_closed_exception_types or [OutOfRangeError.code]
        try:
            self._closed_types = tuple(exception_type_from_error_code(code) for code in codes)
        except KeyError as error:
            raise ValueError(
                f"The runner of {self.name} has an unknown error code, {error}"
            ) from None

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner that ``queue_runner_def`` describes, of operations of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The ``QueueRunnerDef``, as seen from inside ``export_scope``; None if it lies outside."""
        if export_scope and not self.name.startswith(f"{export_scope.rstrip('/')}/"):
            return None
        return queue_runner_def()(
            queue_name=strip_scope(self.name, export_scope),
            enqueue_op_name=[strip_scope(op.name, export_scope) for op in self._enqueue_ops],
            close_op_name=strip_scope(self._close_op.name, export_scope),
            cancel_op_name=strip_scope(self._cancel_op.name, export_scope),
            queue_closed_exception_types=[
                getattr(kind, "code", OutOfRangeError.code) for kind in self._closed_types
            ],
        )

    # What it consists of --------------------------------------------------------------------

    @property
    def queue(self) -> Any:
        """The queue that is filled; its operation, where the runner was imported."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        """The operations that fill it, one for each thread."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """What runs when the last thread has ended."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """What runs when the coordinator stops."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[BaseException], ...]:
        """The exceptions that mean that there is no more to enqueue."""
        return self._closed_types

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """Exceptions of threads that had no coordinator to tell them to."""
        return self._exceptions

    @property
    def name(self) -> str:
        """The name of the queue's operation."""
        return self._queue.name

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """The threads that fill the queue in ``sess``; none if it is being filled already."""
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions = []
        threads = [
            threading.Thread(
                target=self._fill,
                args=(sess, op, coord),
                name=f"QueueRunnerThread-{self.name}-{getattr(op, 'name', op)}",
            )
            for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=self._cancel_on_stop,
                    args=(sess, coord, list(threads)),
                    name=f"QueueRunnerThread-{self.name}-close_on_stop",
                )
            )
        for thread in threads:
            thread.daemon = daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def gate(self, sess: Any) -> StepGate:
        """Where the threads that fill the queue in ``sess`` can be held back between steps."""
        with self._lock:
            return self._gates.setdefault(sess, StepGate())

    def _fill(self, sess: Any, op: Any, coord: Coordinator | None) -> None:
        gate = self.gate(sess)
        try:
            fill = sess.make_callable(op)
            with INPUT_TIMES.filling():
                while coord is None or not coord.should_stop():
                    with gate:
                        fill()
        except self._closed_types:
            if self._count_down(sess) == 0:
                with gate:
                    self._try(sess, self._close_op)
            return
        except Exception as error:
            self._count_down(sess)
            if coord is not None:
                coord.request_stop(error)
                return
            logger.error("%s ends: %s", threading.current_thread().name, error)
            with self._lock:
                self._exceptions.append(error)
            raise
        self._count_down(sess)

    def _count_down(self, sess: Any) -> int:
        with self._lock:
            self._running[sess] -= 1
            return self._running[sess]

    def _cancel_on_stop(
        self, sess: Any, coord: Coordinator, fillers: list[threading.Thread]
    ) -> None:
        coord.wait_for_stop()
        self._try(sess, self._cancel_op)

    @staticmethod
    def _try(sess: Any, op: Any) -> None:
        """Runs ``op``, which may find that the queue or the session has been closed before."""
        try:
            sess.run(op)
        except Exception as error:  # noqa: BLE001 (it ends either way)
            logger.debug("Closing a queue: %s", error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to those that :func:`start_queue_runners` starts."""
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of every runner of the session's graph; returns them.

    Example:
        >>> coord = tf.train.Coordinator()
        >>> threads = tf.train.start_queue_runners(sess, coord)
        >>> ...
        >>> coord.request_stop()
        >>> coord.join(threads)
    """
    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with "
                "sess.as_default()` or pass a session to tf.train.start_queue_runners(sess=sess)"
            )
    graph = getattr(sess, "graph", None)
    if not isinstance(graph, Graph):
        raise TypeError(f"sess must be a tf.Session, but is {sess!r}")
    return [
        thread
        for runner in graph.get_collection(collection)
        for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
    ]
