"""Sessions: running parts of a graph against state."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from runnel.graph import errors
from runnel.graph.default_session import (
    default_session,
    push_default_session,
    remove_default_session,
)
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.runtime.devices.device_memory import is_device_error
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.session import settings
from runnel.runtime.session.backend import LocalBackend, Plan, open_backend, reset_target
from runnel.runtime.session.feeds import check_feed, expand_feeds, fed_tensors
from runnel.runtime.session.fetches import Rebuild, expand_fetches
from runnel.runtime.session.subgraphs import Subgraph, Subgraphs
from runnel.runtime.state.at_exit import (
    cancel_at_exit,
    install,
    is_exiting,
    report_at_exit,
    require_running,
)
from runnel.runtime.state.in_thread import fulfil
from runnel.runtime.state.observer import Observers, StepObserver
from runnel.runtime.state.options import SessionOptions
from runnel.runtime.state.sent_ahead import raise_first
from runnel.runtime.state.step_context import RunningSteps
from runnel.runtime.state.task_state import TaskState
from runnel.step_time import limited_by

logger = logging.getLogger("runnel")

# Calls of different forms whose plans a session keeps; the oldest make room for new ones.
_MAX_PREPARED = 1 << 12

_REMOTE_PATIENCE_SECONDS = 10.0
"""How long a step of other tasks may go on when it is interrupted."""

# For Session.reset. The lock: a set must not change while it is listed.
_live_sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()
_live_lock = threading.Lock()


class _Prepared:
    """What one form of ``run`` call needs: the plan and how to rebuild the fetches."""

    __slots__ = ("plan", "feeds", "_rebuild", "_tensors", "_single", "_flat")

    def __init__(
        self,
        plan: Plan,
        fetches: Any,
        rebuild: Rebuild,
        tensors: list[Tensor],
        feeds: list[Tensor],
    ) -> None:
        self.plan = plan
        self.feeds = feeds
        self._rebuild = rebuild
        self._tensors = tensors
        self._single = isinstance(fetches, Tensor | Operation)
        self._flat: list[int] | None = None
        """For a list of tensors and operations: where each is among the values, which come
        first, or behind them."""
        if type(fetches) is list and all(type(f) in (Tensor, Operation) for f in fetches):
            place_of: dict[Any, int] = {tensor: i for i, tensor in enumerate(tensors)}
            self._flat = [place_of.get(f, len(tensors)) for f in fetches]

    def fetched(self, values: list[Any]) -> Any:
        """The values that the plan gives, in the structure that was asked for."""
        if self._single:
            return values[0] if values else None
        if self._flat is not None:
            values.append(None)
            return [values[place] for place in self._flat]
        return self._rebuild(dict(zip(self._tensors, values, strict=True)).get)


class BaseSession:
    """Runs parts of a graph; owns the values of its variables. Safe to use from many threads."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {graph!r}")
        self._graph = graph if graph is not None else get_default_graph()
        if config is None:
            config = settings.copied_default()
        self._config = config
        self._options = SessionOptions.from_config(config)
        self._target = target.decode() if isinstance(target, bytes) else target or ""
        self._backend = open_backend(self._target, self._graph, config, self._options)
        self._steps = RunningSteps(self._backend.resources)
        if isinstance(self._backend, LocalBackend):
            self._steps.subgraphs = Subgraphs(self._plan, self._steps)
            self._steps.destination = self._devices.destination
        # Guards _prepared; a plan is prepared once even if several threads ask for it.
        self._prepare_lock = threading.Lock()
        self._prepared: dict[Any, _Prepared] = {}
        self._mutations = self._graph.mutation_count
        self._settings = settings.current
        """Those of the process that what is prepared goes by."""
        self._closed = False
        self._closing = threading.Lock()  # taken once, by who closes the session
        self._halted = is_exiting()
        """True when a call must look before it runs: the session or the process is ending."""
        with _live_lock:
            _live_sessions.add(self)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def(add_shapes=True)

    @property
    def sess_str(self) -> str:
        return self._target

    @property
    def _devices(self) -> SessionDevices:
        """Where steps are placed, if that is known in this process."""
        return self._backend.devices  # type: ignore[attr-defined]

    @property
    def _task(self) -> TaskState:
        """What a session of this process alone owns."""
        return self._backend.task  # type: ignore[attr-defined]

    # Running --------------------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Runs what ``fetches`` need and returns their values in the same structure.

        ``fetches`` is a tensor, operation, variable or name, or a (nested) list, tuple,
        namedtuple or dict of them; operations give None. ``feed_dict`` replaces the value of
        any feedable tensor for this step.

        Example:
            >>> sess.run({"loss": loss, "step": train_op}, feed_dict={x: batch})
        """
        if self._halted:
            self._require_open()
        prepared = self._lookup(fetches, feed_dict)
        if prepared is None:
            prepared, feed_dict = self._prepare(fetches, feed_dict)
        feeds = [check_feed(t, feed_dict[t]) for t in prepared.feeds] if feed_dict else []
        return prepared.fetched(self._run_plan(prepared.plan, feeds, options, run_metadata))

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        require_running()

    def _lookup(self, fetches: Any, feed_dict: dict[Any, Any] | None) -> _Prepared | None:
        """The plan of an earlier call of the same form; only tensors and operations qualify."""
        if self._mutations != self._graph.mutation_count or self._settings is not settings.current:
            return None
        try:
            key = _call_key(fetches, feed_dict)
            return self._prepared.get(key)
        except TypeError:  # something in it cannot be hashed
            return None

    def _prepare(
        self, fetches: Any, feed_dict: dict[Any, Any] | None
    ) -> tuple[_Prepared, dict[Any, Any]]:
        expanded = expand_feeds(self._graph, feed_dict) if feed_dict else {}
        elements, rebuild = expand_fetches(self._graph, fetches)
        # Calls that differ in the order of fetches and feeds alone share a plan.
        tensors = sorted((e for e in elements if isinstance(e, Tensor)), key=_place)
        targets = sorted((e for e in elements if isinstance(e, Operation)), key=lambda op: op.id)
        feeds = sorted(expanded, key=_place)
        key = ("plan", tuple(tensors), tuple(targets), tuple(feeds))
        if key not in self._prepared:  # before the lock: other calls need not wait for that
            self._backend.reach(tensors, targets, feeds)
        with self._prepare_lock:
            mutations, current = self._graph.mutation_count, settings.current
            if mutations != self._mutations or current is not self._settings:
                self._prepared.clear()
                self._mutations, self._settings = mutations, current
            known = self._prepared.get(key)
            plan = known.plan if known is not None else self._plan(tensors, targets, feeds)
            prepared = _Prepared(plan, fetches, rebuild, tensors, feeds)
            if mutations == self._graph.mutation_count:  # not while it was being prepared
                self._keep(key, prepared)
                if not feed_dict or all(type(k) is Tensor for k in feed_dict):
                    with suppress(TypeError):  # a form that cannot be a key is looked up each time
                        self._keep(_call_key(fetches, feed_dict), prepared)
        return prepared, expanded

    def _keep(self, key: Any, prepared: _Prepared) -> None:
        if self._closed:
            return
        while len(self._prepared) >= _MAX_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        self._prepared.setdefault(key, prepared)

    def _plan(
        self,
        tensors: list[Tensor],
        targets: list[Operation],
        feeds: list[Tensor],
        done: Collection[Operation] = (),
    ) -> Plan:
        precision = self._options.precision or self._graph.mixed_precision
        return self._backend.plan(tensors, targets, feeds, done, precision)

    def _run_plan(self, plan: Plan, feeds: list[Any], options: Any, run_metadata: Any) -> list[Any]:
        if options is not None or run_metadata is not None or self._options.timeout_ms:
            return self._run_with_options(plan, feeds, options, run_metadata)
        return self._run_step(plan, feeds, None, None)

    def _run_step(
        self, plan: Plan, feeds: list[Any], deadline: float | None, observer: Any
    ) -> list[Any]:
        context = self._steps.begin(deadline, observer)
        try:
            if deadline is None:
                return plan.run(feeds, context)
            with limited_by(context.look):
                return plan.run(feeds, context)
        except Exception as error:
            require_running()  # what ends with the process does so without a word
            gone = errors.FailedPreconditionError, errors.CancelledError
            if isinstance(error, gone) and self._closed:  # and with it what its steps use
                raise errors.CancelledError(
                    None, error.op, "The session was closed while this step was running"
                ) from error
            if isinstance(error, RuntimeError) and is_device_error(error):
                # What a device was still doing when its segment had been started.
                raise plan.device_error(error) from error
            if isinstance(error, MemoryError):  # outside of any operation: in copying a fetch
                raise errors.ResourceExhaustedError(
                    None, None, f"Out of memory: {error}"
                ) from error
            raise
        finally:
            self._steps.end(context)

    def _run_with_options(
        self,
        plan: Plan,
        feeds: list[Any],
        options: Any,
        run_metadata: Any,
        watch: StepObserver | None = None,
    ) -> list[Any]:
        """Runs a step as ``options`` say; ``watch`` observes it."""
        timeout_ms = self._options.timeout_ms
        if options is not None:
            if not hasattr(options, "timeout_in_ms"):
                raise TypeError(f"options must be a tf.RunOptions, but got {options!r}")
            timeout_ms = options.timeout_in_ms or timeout_ms
        deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else None
        if run_metadata is None or options is None:
            return self._run_step(plan, feeds, deadline, watch)
        if options.output_partition_graphs:
            plan.add_partition_graphs(run_metadata)
        if options.trace_level == options.NO_TRACE:
            return self._run_step(plan, feeds, deadline, watch)
        from runnel.runtime.schedule.tracing import StepTracer

        # Other tasks trace their parts of a step as they run.
        by_operation = options.trace_level == options.SOFTWARE_TRACE and isinstance(plan, StepPlan)
        tracer = StepTracer(plan.device_of, by_operation)
        observer = tracer if watch is None else Observers(tracer, watch)
        values = self._run_step(plan, feeds, deadline, observer)
        tracer.fill(run_metadata)
        return values

    def make_callable(
        self, fetches: Any, feed_list: list[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs ``fetches``, taking the values of ``feed_list`` as arguments.

        Example:
            >>> step = sess.make_callable([train_op, loss], feed_list=[x, y])
            >>> _, loss_value = step(batch_x, batch_y)
        """
        if self._halted:
            self._require_open()
        keys = [self._graph.as_graph_element(f, allow_operation=False) for f in feed_list or ()]
        if len(set(keys)) < len(keys):
            raise ValueError(f"A tensor is twice in feed_list: {[k.name for k in keys]}")
        return self._callable(self._prepare(fetches, dict.fromkeys(keys))[0], keys, accept_options)

    def _callable_where(
        self, fetches: Any, feed_list: list[Any], known: Mapping[Tensor, bool]
    ) -> Callable[..., Any]:
        """:meth:`make_callable` of a step in which tensors have the values ``known``.

        What is fed for them must be these values. A step that other tasks have a part in is
        prepared as for any values.
        """
        backend = self._backend
        if not known or not isinstance(backend, LocalBackend):
            return self.make_callable(fetches, feed_list)
        self._require_open()
        elements, rebuild = expand_fetches(self._graph, fetches)
        tensors = sorted((e for e in elements if isinstance(e, Tensor)), key=_place)
        targets = sorted((e for e in elements if isinstance(e, Operation)), key=lambda op: op.id)
        feeds = sorted(feed_list, key=_place)
        precision = self._options.precision or self._graph.mixed_precision
        plan = backend.plan(tensors, targets, feeds, (), precision, known)
        prepared = _Prepared(plan, fetches, rebuild, tensors, feeds)
        return self._callable(prepared, list(feed_list), False)

    def _callable(
        self, prepared: _Prepared, keys: list[Tensor], accept_options: bool
    ) -> Callable[..., Any]:
        plan, fetched = prepared.plan, prepared.fetched
        places = [keys.index(tensor) for tensor in prepared.feeds]

        def call(*args: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if self._halted:
                self._require_open()
            if len(args) != len(keys):
                raise ValueError(
                    f"This callable takes {len(keys)} arguments, one for each of "
                    f"{[k.name for k in keys]}, but got {len(args)}."
                )
            feeds = [check_feed(keys[i], args[i]) for i in places]
            return fetched(self._run_plan(plan, feeds, options, run_metadata))

        if accept_options:
            return call
        return lambda *args: call(*args)

    def _cancel_steps_of(self, thread: int, why: str) -> None:
        """Cancels the steps that ``thread`` is running; later ones are not concerned."""
        self._steps.cancel(why, thread)

    def _interrupt_steps_of(self, thread: int, why: str) -> None:
        """Ends steps of ``thread`` where they wait for input, until :meth:`_calm_steps_of`.

        Only its own devices tell a session what a step waits for. A step of other tasks is
        cancelled, whatever it does, unless it ends soon.
        """
        steps = self._steps
        steps.interrupt(why, thread)
        if isinstance(self._backend, LocalBackend):
            return

        def cancel() -> None:
            if steps.is_impatient(thread):
                steps.cancel(why, thread)

        timer = threading.Timer(_REMOTE_PATIENCE_SECONDS, cancel)
        timer.daemon = True
        timer.start()

    def _calm_steps_of(self, thread: int) -> None:
        """Lets steps of ``thread`` that begin from now on wait for input."""
        self._steps.calm(thread)

    def partial_run_setup(self, fetches: Any, feeds: list[Any] | None = None) -> Any:
        """Prepares a step that is fed and fetched in several parts; returns its handle."""
        if self._halted:
            self._require_open()
        return self._backend.partial_run(self, fetches, feeds or [])

    def partial_run(
        self, handle: Any, fetches: Any, feed_dict: dict[Any, Any] | None = None
    ) -> Any:
        """Continues the step of ``handle``: feeds some more, fetches some more."""
        if self._halted:
            self._require_open()
        return handle.run(self, fetches, feed_dict or {})

    def explain(self, fetches: Any, feed_dict: Any = None, hlo: bool | str = False) -> Any:
        """How this session runs a step: its units, which are compiled, why, and what they cost.

        ``feed_dict`` (or a list) names what is fed. The step is not run; what is shown comes from
        the times that it was. With ``hlo`` compiled units show their programs: True as XLA was
        given them, "optimized" as XLA runs them. On a cluster the task of this session explains its
        part, and says what the others have.

        Example:
            >>> print(sess.explain(train_op, feed_dict=[x, y]))
            >>> sess.explain(train_op, [x, y], hlo=True).save("step.html")
        """
        from runnel.runtime.report.explain_step import explain_step

        self._require_open()
        keys = [key for fed in feed_dict or () for key in fed_tensors(self._graph, fed)]
        plan = self._prepare(fetches, dict.fromkeys(keys))[0].plan
        if isinstance(plan, StepPlan):
            return explain_step(plan, hlo)
        if not hasattr(plan, "explain"):
            raise errors.UnimplementedError(
                None,
                None,
                f"Steps of {self._target} run in another process, which alone can explain them: "
                "call explain in a session that the process of that task has made",
            )
        return plan.explain(hlo)

    # Life -----------------------------------------------------------------------------------

    def list_devices(self) -> list[Any]:
        """The devices that this session can use."""
        return self._backend.list_devices()

    def close(self) -> None:
        """Ends the session; its variables are gone.

        Raises the error of a step that was sent ahead and failed, if nobody has seen it yet.
        """
        if not self._closing.acquire(blocking=False):
            return
        self._closed = self._halted = True
        self._steps.close("the session was closed")
        try:
            self._backend.close()
        finally:
            # Last: who prepares a step holds the lock, and may wait for what has just ended.
            with self._prepare_lock:
                self._prepared.clear()

    def as_default(self) -> AbstractContextManager[Any]:
        """Within the block this is the default session (which is not closed at its end)."""
        return default_session(self)


def _require_element(fetch: Any) -> None:
    if not hasattr(fetch, "_as_graph_element"):  # a variable is an element; a dict is not
        raise TypeError("not a flat list of graph elements")


def _place(tensor: Tensor) -> tuple[int, int]:
    return tensor.op.id, tensor.value_index


def _call_key(fetches: Any, feed_dict: dict[Any, Any] | None) -> Any:
    """What identifies a form of call: the fetched elements themselves, in a list or alone."""
    kind = type(fetches)
    if kind is list or kind is tuple:
        for item in fetches:
            if type(item) is not Tensor and type(item) is not Operation:
                _require_element(item)
        fetch_key: Any = (kind, *fetches)
    else:
        if kind is not Tensor and kind is not Operation:
            _require_element(fetches)
        fetch_key = fetches
    if not feed_dict:
        return (fetch_key,)
    if type(feed_dict) is not dict and not isinstance(feed_dict, Mapping):
        raise TypeError("not a dictionary")
    return (fetch_key, *feed_dict)


class Session(BaseSession):
    """A session; as a context manager it is the default session, closed at the block's end.

    Example:
        >>> with tf.Session() as sess:
        ...     print(sess.run(tf.constant(2) * 3))
        6
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._entered: list[tuple[Any, Any]] = []

    def __enter__(self) -> Session:
        graph_context = self._graph.as_default()
        session_context = self.as_default()
        graph_context.__enter__()
        session_context.__enter__()
        self._entered.append((graph_context, session_context))
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> None:
        graph_context, session_context = self._entered.pop()
        session_context.__exit__(exc_type, exc_value, exc_traceback)
        graph_context.__exit__(exc_type, exc_value, exc_traceback)
        try:
            self.close()
        except errors.OpError as failure:
            if exc_type is None:
                raise
            logger.error("A step that was sent ahead failed: %s", failure)

    @staticmethod
    def reset(target: str = "", containers: list[str] | None = None, config: Any = None) -> None:
        """Clears the named containers (all by default): of the cluster at ``target``, or of the
        sessions of this process."""
        if target:
            reset_target(target, containers or [], config)
            return
        with _live_lock:
            sessions = list(_live_sessions)
        failures: list[Exception] = []
        for session in sessions:
            if not session._closed and not session._target:
                failures += session._task.settle_all()
                session._task.clear(containers or None)
        raise_first(failures)


class InteractiveSession(BaseSession):
    """A session that makes itself the default one, for use in a shell.

    Example:
        >>> sess = tf.InteractiveSession()
        >>> tf.constant(1.0).eval()
        1.0
        >>> sess.close()
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._graph_context: Any = None
        if graph is not None:
            self._graph_context = graph.as_default()
            self._graph_context.__enter__()
        push_default_session(self)

    def close(self) -> None:
        if not self._closed:
            try:
                super().close()
            finally:
                remove_default_session(self)
                if self._graph_context is not None:
                    self._graph_context.__exit__(None, None, None)
                    self._graph_context = None


def _cancel_steps() -> None:
    """Cancels what the sessions of the process run, now that it ends."""
    if not _live_lock.acquire(timeout=0.1):
        return  # a thread that was ended holds it
    try:
        sessions = list(_live_sessions)
    finally:
        _live_lock.release()
    for session in sessions:
        session._halted = True
        session._steps.cancel("the process is ending")


def _report_failures() -> None:
    """Logs the errors of steps that were sent ahead by sessions that nobody has closed."""
    for session in list(_live_sessions):
        if not isinstance(session._backend, LocalBackend):
            continue
        for failure in session._backend.task.settle_all():
            logger.error("A step that was sent ahead failed, and the process ended: %s", failure)


report_at_exit(_report_failures)
cancel_at_exit(
    _cancel_steps,
    inside=(
        BaseSession._run_plan,
        BaseSession._prepare,
        BaseSession.partial_run,
        Subgraph.__call__,
        Subgraph.rows,
        fulfil,
    ),
)
install()
