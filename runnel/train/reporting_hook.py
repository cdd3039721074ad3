"""Tells whoever has started this task how far it has come."""

from __future__ import annotations

import re
import time
from typing import Any

from runnel.distributed.progress_record import ProgressFile, ProgressRecord
from runnel.train.checkpoint_state import latest_checkpoint
from runnel.train.global_step import get_global_step
from runnel.train.live_model import kept_live
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

_STEP_IN_NAME = re.compile(r"-(\d+)$")


class ReportingHook(SessionRunHook):
    """Writes the global step after every step into a file; a graph without one reports nothing.

    It has to come before hooks that save: what a chief's session begins with is then the newest
    checkpoint of ``folder``.
    """

    def __init__(self, path: str, chief: bool, folder: str | None) -> None:
        self._path = path
        self._chief = chief
        self._folder = folder
        self._file: ProgressFile | None = None
        self._record: ProgressRecord | None = None

    def begin(self) -> None:
        self._global_step = get_global_step()
        if self._global_step is not None:
            self._file = ProgressFile(self._path)

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._file is None:
            return
        began = int(session.run(self._global_step))
        if self._chief and self._folder is not None and not kept_live(session):
            # Other workers may have made steps since the chief has restored.
            found = _STEP_IN_NAME.search(latest_checkpoint(self._folder) or "")
            began = min(began, int(found[1])) if found else began
        now = time.time()
        if self._record is None:
            self._record = ProgressRecord(self._chief, began, now, began, now)
        else:
            self._record = self._record.anew(began, now)
        self._file.write(self._record)

    def before_run(self, run_context: Any) -> SessionRunArgs | None:
        return None if self._file is None else SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._file is not None and self._record is not None:
            self._record = self._record.after(int(run_values.results), time.time())
            self._file.write(self._record)

    def end(self, session: Any) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
