"""``tf.train.Supervisor``: a session with threads that save, summarize and count steps.

Programs from before ``MonitoredTrainingSession`` use it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runnel.graph import errors
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph_io import write_graph
from runnel.summary.file_writer import FileWriter
from runnel.summary.summaries import merge_all
from runnel.train import live_model
from runnel.train.coordinator import Coordinator, LooperThread
from runnel.train.global_step import get_global_step
from runnel.train.global_step import global_step as value_of
from runnel.train.progress_hook import LoopProgress
from runnel.train.saver import Saver
from runnel.train.scaffold import Scaffold
from runnel.train.session_manager import SessionManager
from runnel.train.termination import Termination
from runnel.variables.initialization import (
    global_variables,
    global_variables_initializer,
    local_variables,
    report_uninitialized_variables,
)

logger = logging.getLogger("runnel")

_LOST = (errors.AbortedError, errors.UnavailableError)
"""Errors after which another session may succeed."""
_OF_A_STOP = (errors.CancelledError, errors.OutOfRangeError)
"""How steps end that wait for input when the job is told to stop."""
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})


class Supervisor:
    """Makes a session that begins from the newest checkpoint of ``logdir``, and looks after it.

    While it lasts, threads save a checkpoint every ``save_model_secs`` and summaries every
    ``save_summaries_secs``; 0 has them left out. What is not given comes from the graph's
    collections, or is made; None has it left out. The graph is final once there is a supervisor.

    Example:
        >>> sv = tf.train.Supervisor(logdir="/tmp/model")
        >>> with sv.managed_session() as sess:
        ...     while not sv.should_stop():
        ...         sess.run(train_op)
    """

    USE_DEFAULT = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: Any = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        self.is_chief = is_chief
        self.coord = Coordinator()
        self.init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._stop_grace_secs = stop_grace_secs
        with self._graph.as_default():
            self.ready_op = _given(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self.ready_for_local_init_op = _given(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self.init_op = _given(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self.local_init_op = _given(local_init_op, GraphKeys.LOCAL_INIT_OP, _local_init_op)
            self.saver: Saver | None = _given(saver, GraphKeys.SAVERS, _default_saver)
            self.summary_op = _given(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self.global_step = get_global_step() if _is_default(global_step) else global_step
        self._logdir = os.fsdecode(os.fspath(logdir)) if logdir and is_chief else None
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self.save_path = self._logdir and os.path.join(self._logdir, checkpoint_basename)
        self.summary_writer = None
        if is_chief:
            self.summary_writer = summary_writer
            if _is_default(summary_writer):
                self.summary_writer = FileWriter(self._logdir) if self._logdir else None
        self._has_written_graph = False
        self._termination: Termination | None = None
        self._saving = threading.Lock()  # held while a thread, or the end, saves
        self.session_manager = session_manager or SessionManager(
            local_init_op=self.local_init_op,
            ready_op=self.ready_op,
            ready_for_local_init_op=self.ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._require_devices()
        self._graph.finalize()

    def _require_devices(self) -> None:
        if self.is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in _VARIABLES and not op.device:
                raise ValueError(
                    "When using replicas, all Variables must have their device set: "
                    f"{op.name!r}, made at {op.creation_site()[-1]}, has none"
                )

    # The session ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A session with its threads, for a block; what fails in either is raised at its end.

        The end of the input (``tf.errors.OutOfRangeError``) ends the block without an error.
        Ctrl-C and SIGTERM have the chief save and leave.
        """
        sess: Any = None
        try:
            sess = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            with Termination(self._stop_soon) as termination:
                self._termination = termination
                try:
                    with termination.watching(sess):
                        yield sess
                except Exception as error:
                    if not (termination.told and isinstance(error, _OF_A_STOP)):
                        raise
                if termination.told:
                    self._save_if_new(sess)
        except Exception as error:  # noqa: BLE001 (raised again when the threads have ended)
            if not isinstance(error, _LOST):
                live_model.failed()
            self.request_stop(error)
        except (KeyboardInterrupt, SystemExit):
            if sess is not None:
                self._save_if_new(sess)
            raise
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if sess is not None:
                    with contextlib.suppress(errors.OpError):
                        sess.close()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready: the chief prepares it, others wait for the chief."""
        self.coord.clear_stop()
        if self.summary_writer is not None:
            self.summary_writer.reopen()
        if not self.is_chief:
            sess = self.session_manager.wait_for_session(master, config, max_wait_secs)
        else:
            sess = self.session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self.init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(sess)
        if start_standard_services:
            self.start_queue_runners(sess)
        return sess

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self.summary_writer is not None and not self._has_written_graph:
            self.summary_writer.add_graph(self._graph)
            self._has_written_graph = True

    # Threads --------------------------------------------------------------------------------

    def start_standard_services(self, sess: Any) -> list[LooperThread]:
        """Starts the threads that save checkpoints and summaries; returns them."""
        if not self.is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors "
                "can write events."
            )
        if not self._logdir:
            logger.warning("Standard services need a 'logdir' passed to the Supervisor")
            return []
        self._log_session("START", value_of(sess, self.global_step) if self._counts else None)
        found = []
        if self.save_summaries_secs and self.summary_writer is not None:
            if self.summary_op is not None:
                found.append(self.loop(self.save_summaries_secs, self._summarize, (sess,)))
            if self._counts:
                rate = _StepRate(self, sess)
                found.append(self.loop(self.save_summaries_secs, rate))
        if self.saver is not None and self.save_model_secs:
            found.append(self.loop(self.save_model_secs, self._save, (sess,)))
        return found

    @property
    def _counts(self) -> bool:
        return self.global_step is not None

    def _log_session(self, status: str, step: int | None = None, path: str = "") -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog

        if self.summary_writer is not None:
            log = SessionLog(status=getattr(SessionLog, status), checkpoint_path=path)
            self.summary_writer.add_session_log(log, step)

    def _summarize(self, sess: Any) -> None:
        if self._counts:
            summary, step = sess.run([self.summary_op, self.global_step])
            self.summary_computed(sess, summary, int(step))
        else:
            self.summary_computed(sess, sess.run(self.summary_op))

    def _save(self, sess: Any) -> None:
        logger.info("Saving checkpoint to path %s", self.save_path)
        assert self.saver is not None
        with self._saving:
            path = self.saver.save(sess, self.save_path, global_step=self.global_step)
        step = value_of(sess, self.global_step) if self._counts else None
        self._log_session("CHECKPOINT", step, path or "")

    def _save_if_new(self, sess: Any) -> None:
        """Saves what the newest checkpoint does not have."""
        if self._logdir is None or self.saver is None:
            return
        if self._termination is not None:
            self._termination.pause()
        newest = self.saver.last_checkpoints[-1:]
        step = value_of(sess, self.global_step) if self._counts else None
        if step is None or newest != [f"{self.save_path}-{step}"]:
            self._save(sess)

    def start_queue_runners(self, sess: Any, queue_runners: Sequence[Any] | None = None) -> Any:
        """Starts the threads that fill the graph's queues, or those of ``queue_runners``."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls ``target`` every so many seconds, until the end."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Any = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops the threads and waits for them; raises what ended one of them."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, self._stop_grace_secs, ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self._log_session("STOP")
                self.summary_writer.close()
                self._has_written_graph = False

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop; ``ex`` is why."""
        self.coord.request_stop(ex)

    def _stop_soon(self) -> None:
        """Asks for a stop from a thread of its own: who is interrupted may hold a lock for that."""
        threading.Thread(target=self.request_stop, name="runnel-stop", daemon=True).start()

    def should_stop(self) -> bool:
        """True when the loop of steps should end."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A block in which an exception asks the threads to stop, and goes no further."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until something asks for a stop."""
        self.coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary that the program has computed."""
        if self.summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._counts:
            global_step = value_of(sess, self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners
    Loop = loop
    Stop = stop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _StepRate:
    """Writes, each time it is called, how many steps a second were made since the last time."""

    def __init__(self, supervisor: Supervisor, sess: Any) -> None:
        self._supervisor = supervisor
        self._sess = sess
        self._tag = f"{supervisor.global_step.op.name}/sec"
        self._last = value_of(sess, supervisor.global_step), time.monotonic()

    def __call__(self) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        before, then = self._last
        step, now = value_of(self._sess, self._supervisor.global_step), time.monotonic()
        self._last = step, now
        rate = (step - before) / (now - then) if now > then else float("inf")
        summary = Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)])
        self._supervisor.summary_computed(self._sess, summary, step)
        logger.info("%s: %g", self._tag, rate)


def _is_default(value: Any) -> bool:
    return value is Supervisor.USE_DEFAULT


def _given(value: Any, key: str, make: Callable[[], Any]) -> Any:
    """``value``, unless the default is wanted: the collection's first, or what ``make`` gives."""
    if not _is_default(value):
        return value
    graph = get_default_graph()
    found = graph.get_collection(key)
    if found:
        return found[0]
    made = make()
    if made is not None:
        graph.add_to_collection(key, made)
    return made


def _local_init_op() -> Any:
    tables = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return Scaffold.default_local_init_op() if local_variables() or tables else None


def _default_saver() -> Saver | None:
    return Saver() if global_variables() else None


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls ``train_step_fn(sess, *args, **kwargs)`` until the supervisor stops.

    After an ``AbortedError`` another session goes on. How far it is is shown, with the loss where
    ``train_step_fn`` returns it.

    Example:
        >>> tf.train.basic_train_loop(sv, lambda sess: sess.run(train_op))
    """
    while True:
        try:
            with (
                supervisor.managed_session(master) as sess,
                LoopProgress(sess, supervisor.global_step) as progress,
            ):
                while not supervisor.should_stop():
                    loss = train_step_fn(sess, *(args or ()), **(kwargs or {}))
                    progress.note(loss)
            return
        except errors.AbortedError as error:
            logger.info("A session was lost; another one goes on: %s", error)
