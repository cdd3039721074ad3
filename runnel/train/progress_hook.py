"""How far a loop is: one line that changes on a terminal, some lines elsewhere."""

from __future__ import annotations

import logging
import math
import shutil
import sys
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np

from runnel.graph.errors import OpError, OutOfRangeError
from runnel.pipelines.watching import INPUT_TIMES, InputInterval
from runnel.train.global_step import global_step as value_of
from runnel.train.hooks import require_global_step, waiting_for_input
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

logger = logging.getLogger("runnel")

ON_TERMINAL_SECONDS = 0.2
ELSEWHERE_SECONDS = 10.0
_CLEAR = "\r\x1b[2K"
"""Goes to the beginning of the line, and clears it."""


class ProgressLine:
    """Step, rate, loss, time left and what is waited for, as they become known.

    On a terminal it is one line that changes; elsewhere a line every ten seconds. ``what`` names a
    step. A line of a loop that nobody has asked for is ``unasked``: elsewhere it says nothing of
    what ends within these ten seconds, nor where ``tf.logging`` is to be quieter than warnings.
    """

    def __init__(self, output: Any = None, what: str = "step", unasked: bool = False) -> None:
        self._output = sys.stderr if output is None else output
        self._what = what
        self._on_terminal = bool(self._output.isatty())
        self._pause = ON_TERMINAL_SECONDS if self._on_terminal else ELSEWHERE_SECONDS
        self._first: tuple[float, int] | None = None
        self._shown = time.monotonic()
        self._silent_until = 0.0
        if unasked and not self._on_terminal:
            loud = logger.isEnabledFor(logging.WARNING)
            self._silent_until = self._shown + self._pause if loud else math.inf
        self._input = InputInterval()
        self._text = ""

    def is_due(self) -> bool:
        """True when the line is to be shown anew."""
        return time.monotonic() - self._shown >= self._pause

    def show(self, step: int, last_step: int | None, loss: Any = None) -> None:
        """Shows the state after ``step``; ``last_step`` is the end, if one is known."""
        before, self._shown = self._shown, time.monotonic()
        now = self._shown
        if self._first is None:
            self._first = now, step
        self._text = self._described(now, step, last_step, loss)
        if waits := waiting_for_input(self._input, now - before):
            self._text += f" · {waits}"
        if not self._on_terminal:
            if now >= self._silent_until:
                print(self._text, file=self._output, flush=True)
            return
        width = shutil.get_terminal_size().columns
        self._output.write(f"{_CLEAR}{self._text[: width - 1]}")
        self._output.flush()

    def _described(self, now: float, step: int, last_step: int | None, loss: Any) -> str:
        assert self._first is not None
        since, from_step = self._first
        seconds, steps = now - since, step - from_step
        parts = [f"{self._what} {step:,}" + (f" of {last_step:,}" if last_step is not None else "")]
        if steps > 0 and seconds > 0:
            parts.append(f"{steps / seconds:.3g} steps/s")
        if loss is not None:
            parts.append(f"loss {float(np.mean(loss)):.4g}")
        if steps > 0 and last_step is not None:
            left = max(last_step - step, 0) * seconds / steps
            parts.append(f"{timedelta(seconds=round(left))} left")
        return " · ".join(parts)

    def clear(self) -> None:
        """Takes the line off a terminal: the program may write its own."""
        if self._on_terminal and self._text:
            self._output.write(_CLEAR)
            self._output.flush()
            self._text = ""

    def close(self) -> None:
        """Leaves the last line as it is."""
        if self._on_terminal and self._text:
            self._output.write("\n")
            self._output.flush()


class LoopProgress:
    """Shows how far a loop over the steps of a session is; as a context, its end too.

    ``global_step`` is a variable, or None where nothing counts steps and nothing is shown.
    """

    def __init__(self, sess: Any, global_step: Any, last_step: int | None = None) -> None:
        self._sess = sess
        self._global_step = global_step
        self._last_step = last_step
        self._line = ProgressLine(unasked=True)
        self._loss: Any = None
        self._shown: int | None = None

    def __enter__(self) -> LoopProgress:
        INPUT_TIMES.watch()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        INPUT_TIMES.leave()
        if kind is None or issubclass(kind, OutOfRangeError):
            with suppress(OpError, RuntimeError):  # the session may be no more
                self._show()
        self._line.close()

    def note(self, loss: Any = None) -> None:
        """A step was made; ``loss`` counts as one if it is a number with a fraction."""
        self._loss = loss if isinstance(loss, float | np.floating) else None
        if self._line.is_due():
            self._show()

    def _show(self) -> None:
        if self._global_step is not None:
            step = value_of(self._sess, self._global_step)
            if step != self._shown:
                self._line.show(step, self._last_step, self._loss)
            self._shown = step


class ProgressHook(SessionRunHook):
    """Shows step, rate, loss and time left while a monitored session trains; waits for input, too.

    ``loss`` is a tensor; it is fetched only with the steps after which it is shown. ``last_step``
    is where training ends, or a function that knows it once the session has begun. ``output`` is a
    text file, by default the standard error output. One that is ``unasked`` says nothing of short
    jobs, unless it is on a terminal.

    Example:
        >>> hooks = [tf.train.ProgressHook(loss, last_step=10_000)]
        >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        ...     while not sess.should_stop():
        ...         sess.run(train_op)
    """

    def __init__(
        self, loss: Any = None, last_step: Any = None, output: Any = None, unasked: bool = False
    ) -> None:
        self._unasked = unasked
        self._loss = loss
        self._last_step = last_step
        self._output = output

    def begin(self) -> None:
        self._global_step = require_global_step("ProgressHook")
        self._line = ProgressLine(self._output, unasked=self._unasked)
        INPUT_TIMES.watch()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._line.show(int(session.run(self._global_step)), self._end())

    def _end(self) -> int | None:
        return self._last_step() if callable(self._last_step) else self._last_step

    def before_run(self, run_context: Any) -> SessionRunArgs | None:
        if not self._line.is_due():
            return None
        loss = [] if self._loss is None else [self._loss]
        return SessionRunArgs([self._global_step, *loss])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results is not None:
            # What was read may be the step before the training operation incremented it.
            step = int(run_context.session.run(self._global_step))
            self._line.show(step, self._end(), *run_values.results[1:])

    def end(self, session: Any) -> None:
        INPUT_TIMES.leave()
        self._line.show(int(session.run(self._global_step)), self._end())
        self._line.close()
