"""How far training is: one line that changes on a terminal, some lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from datetime import timedelta
from typing import Any

import numpy as np

from runnel.train.hooks import require_global_step
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

ON_TERMINAL_SECONDS = 0.2
ELSEWHERE_SECONDS = 10.0
_CLEAR = "\r\x1b[2K"
"""Goes to the beginning of the line, and clears it."""


class ProgressLine:
    """Step, rate, loss and time left, as they become known.

    On a terminal it is one line that changes; elsewhere a line every ten seconds.
    """

    def __init__(self, output: Any = None) -> None:
        self._output = sys.stderr if output is None else output
        self.on_terminal = bool(self._output.isatty())
        self._pause = ON_TERMINAL_SECONDS if self.on_terminal else ELSEWHERE_SECONDS
        self._first: tuple[float, int] | None = None
        self._shown = time.monotonic()
        self._text = ""

    def is_due(self) -> bool:
        """True when the line is to be shown anew."""
        return time.monotonic() - self._shown >= self._pause

    def show(self, step: int, last_step: int | None, loss: Any = None) -> None:
        """Shows the state after ``step``; ``last_step`` is the end, if one is known."""
        now = self._shown = time.monotonic()
        if self._first is None:
            self._first = now, step
        self._text = self._described(now, step, last_step, loss)
        if not self.on_terminal:
            print(self._text, file=self._output, flush=True)
            return
        width = shutil.get_terminal_size().columns
        self._output.write(f"{_CLEAR}{self._text[: width - 1]}")
        self._output.flush()

    def _described(self, now: float, step: int, last_step: int | None, loss: Any) -> str:
        assert self._first is not None
        since, from_step = self._first
        seconds, steps = now - since, step - from_step
        parts = [f"step {step:,}" + (f" of {last_step:,}" if last_step is not None else "")]
        if steps > 0 and seconds > 0:
            parts.append(f"{steps / seconds:.3g} steps/s")
        if loss is not None:
            parts.append(f"loss {float(np.mean(loss)):.4g}")
        if steps > 0 and last_step is not None:
            left = max(last_step - step, 0) * seconds / steps
            parts.append(f"{timedelta(seconds=round(left))} left")
        return " · ".join(parts)

    def close(self) -> None:
        """Leaves the last line as it is."""
        if self.on_terminal and self._text:
            self._output.write("\n")
            self._output.flush()


class ProgressHook(SessionRunHook):
    """Shows step, rate, loss and time left while a monitored session trains.

    ``loss`` is a tensor; it is fetched only with the steps after which it is shown. ``last_step``
    is where training ends, or a function that knows it once the session has begun. ``output`` is a
    text file, by default the standard error output.

    Example:
        >>> hooks = [tf.train.ProgressHook(loss, last_step=10_000)]
        >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        ...     while not sess.should_stop():
        ...         sess.run(train_op)
    """

    def __init__(self, loss: Any = None, last_step: Any = None, output: Any = None) -> None:
        self._loss = loss
        self._last_step = last_step
        self._output = output

    def begin(self) -> None:
        self._global_step = require_global_step("ProgressHook")
        self._line = ProgressLine(self._output)

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
        self._line.show(int(session.run(self._global_step)), self._end())
        self._line.close()
