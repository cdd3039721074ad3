"""Traces of some of the steps of a monitored session."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.summary.file_writer import FileWriterCache
from runnel.timeline import Timeline
from runnel.train.hooks import SecondOrStepTimer, require_global_step
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

logger = logging.getLogger("runnel")


class ProfilerHook(SessionRunHook):
    """Writes ``timeline-STEP.json``, for Chrome's tracing, every so many steps or seconds.

    TensorBoard shows the same under its graph. A step is traced as it runs: a compiled segment is
    one event. It is a little slower than others: each segment and transfer is waited for.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._folder = Path(os.fsdecode(os.fspath(output_dir)))
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._show = {"show_dataflow": show_dataflow, "show_memory": show_memory}

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step = require_global_step("ProfilerHook")
        self._writer = FileWriterCache.get(str(self._folder))

    def before_run(self, run_context: Any) -> SessionRunArgs:
        from tensorboard.compat.proto.config_pb2 import RunOptions

        following = self._next_step
        self._due = following is not None and self._timer.should_trigger_for_step(following)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._global_step, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        # Read before or after the step was counted, but always the same way.
        fetched = int(run_values.results)
        if self._next_step is None or self._due:
            self._timer.update_last_triggered_step(fetched)
        if self._due:
            step = int(run_context.session.run(self._global_step))
            path = self._folder / f"timeline-{step}.json"
            logger.info("Saving timeline for %d into '%s'.", step, path)
            trace = Timeline(run_values.run_metadata.step_stats)
            write_whole(path, trace.generate_chrome_trace_format(**self._show).encode())
            self._writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = fetched + 1

    def end(self, session: Any) -> None:
        self._writer.flush()
