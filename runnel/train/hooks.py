"""The standard hooks that watch, log, feed and stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from runnel.graph.graph import get_default_graph
from runnel.pipelines.watching import INPUT_TIMES, InputInterval
from runnel.summary.file_writer import FileWriterCache
from runnel.train.global_step import get_global_step
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

logger = logging.getLogger("runnel")


def require_global_step(who: str) -> Any:
    """The global step, which ``who`` needs."""
    step = get_global_step()
    if step is None:
        raise RuntimeError(f"Global step should be created to use {who}.")
    return step


class SecondOrStepTimer:
    """Says at which steps something is done: every so many steps, or seconds."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self.reset()
        self._every_secs = every_secs
        self._every_steps = every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")

    def reset(self) -> None:
        """Forgets when it was last done."""
        self._last_step: int | None = None
        self._last_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """True when it should be done at ``step``."""
        if self._last_step is None or self._last_time is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it is done at ``step``; returns the seconds and steps since the last time."""
        now = time.time()
        elapsed: tuple[float | None, int | None] = None, None
        if self._last_step is not None and self._last_time is not None:
            elapsed = now - self._last_time, step - self._last_step
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was last done."""
        return self._last_step


def _timer(secs: float | None, steps: int | None) -> SecondOrStepTimer:
    return SecondOrStepTimer(every_secs=secs, every_steps=steps)


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every so many steps or seconds, or at the end.

    ``tensors`` is a list of names or tensors, or a dictionary with tags for them. ``formatter``
    turns a dictionary of values into text.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(tensors, Mapping):
            self._tensors = dict(tensors)
        else:
            self._tensors = {getattr(tensor, "name", tensor): tensor for tensor in tensors}
        self._formatter = formatter
        self._at_end = at_end
        self._timer = None if only_at_end else _timer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        if self._timer is not None:
            self._timer.reset()
        self._step = 0
        self._elapsed: float | None = None
        find = get_default_graph().as_graph_element
        self._current = {tag: find(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: Any) -> SessionRunArgs | None:
        self._due = self._timer is not None and self._timer.should_trigger_for_step(self._step)
        return SessionRunArgs(self._current) if self._due else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._due:
            self._log(run_values.results)
        self._step += 1

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log(session.run(self._current))

    def _log(self, values: dict[str, Any]) -> None:
        elapsed = None
        if self._timer is not None:
            elapsed, _ = self._timer.update_last_triggered_step(self._step)
        if self._formatter is not None:
            logger.info(self._formatter(values))
            return
        text = ", ".join(f"{tag} = {values[tag]}" for tag in self._current)
        logger.info(text if elapsed is None else f"{text} ({elapsed:.3f} sec)")


class StopAtStepHook(SessionRunHook):
    """Stops after ``num_steps`` more steps, or when the global step is ``last_step``."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    @property
    def last_step(self) -> int | None:
        """Where it stops; None while no session has begun, if that decides."""
        return self._last_step

    def begin(self) -> None:
        self._global_step = require_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._global_step)) + self._num_steps

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        assert self._last_step is not None
        if int(run_values.results) + 1 >= self._last_step:
            # The step may have been read before or after it was incremented: ask again.
            if int(run_context.session.run(self._global_step)) >= self._last_step:
                run_context.request_stop()


_NOTEWORTHY = 0.05
"""Which share of the time steps must wait for input to be told of it."""


def waiting_for_input(times: InputInterval, elapsed: float) -> str:
    """For which share of ``elapsed`` seconds steps have waited, in words; empty if for little."""
    share, slowest = times.share(elapsed)
    if share < _NOTEWORTHY:
        return ""
    what = f", mostly for {slowest}" if slowest else ""
    return f"{share:.0%} of the time steps wait for input{what}"


class StepCounterHook(SessionRunHook):
    """Logs how many steps a second are made, and writes it as the summary ``global_step/sec``.

    Where steps wait for datasets or queues, the line says for which share of the time, and which
    stage of the input takes longest.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = _timer(every_n_secs, every_n_steps)
        self._summary_writer = summary_writer
        self._output_dir = output_dir

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step = require_global_step("StepCounterHook")
        self._tag = f"{self._global_step.op.name}/sec"
        INPUT_TIMES.watch()
        self._input = InputInterval()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = int(run_values.results)
        if not self._timer.should_trigger_for_step(step):
            return
        seconds, steps = self._timer.update_last_triggered_step(step)
        if seconds and steps:
            self._log_and_record(steps, seconds, step)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            from tensorboard.compat.proto.summary_pb2 import Summary

            summary = Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)])
            self._summary_writer.add_summary(summary, global_step)
        waits = waiting_for_input(self._input, elapsed_time)
        logger.info("%s: %g%s", self._tag, rate, f"; {waits}" if waits else "")

    def end(self, session: Any) -> None:
        INPUT_TIMES.leave()


class NanLossDuringTrainingError(RuntimeError):
    """A loss that is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops, or raises, when the loss is not a number."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if np.isnan(run_values.results).any():
            message = "Model diverged with loss = NaN."
            if self._fail_on_nan_loss:
                logger.error(message)
                raise NanLossDuringTrainingError
            logger.warning(message)
            run_context.request_stop()


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = _timer(save_secs, save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step = require_global_step("SummarySaverHook")

    def before_run(self, run_context: Any) -> SessionRunArgs:
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        fetches = {"global_step": self._global_step}
        summaries = self._summaries()
        if self._due and summaries:
            fetches["summary"] = summaries
        return SessionRunArgs(fetches)

    def _summaries(self) -> list[Any]:
        found = self._summary_op if self._scaffold is None else self._scaffold.summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, list | tuple) else [found]

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._summary_writer is None:
            return
        step = int(run_values.results["global_step"])
        if self._next_step is None:
            from tensorboard.compat.proto.event_pb2 import SessionLog

            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        if "summary" in run_values.results:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results["summary"]:
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any) -> None:
        if self._summary_writer is not None:
            self._summary_writer.flush()


class GlobalStepWaiterHook(SessionRunHook):
    """Waits, before the first step, until the global step has come to ``wait_until_step``."""

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        self._is_over = False
        self._global_step = require_global_step("GlobalStepWaiterHook")

    def before_run(self, run_context: Any) -> None:
        if self._is_over or self._wait_until_step <= 0:
            self._is_over = True
            return
        logger.info("Waiting for global step %d before starting training.", self._wait_until_step)
        while int(run_context.session.run(self._global_step)) < self._wait_until_step:
            threading.Event().wait(0.5)  # another process makes the steps
        self._is_over = True


class FinalOpsHook(SessionRunHook):
    """Runs something at the end of a session; ``final_ops_values`` has what came of it."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        return self._values

    def end(self, session: Any) -> None:
        if self._final_ops is not None:
            self._values = session.run(self._final_ops, feed_dict=self._feed_dict)


class FeedFnHook(SessionRunHook):
    """Feeds what a function returns to each step."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
