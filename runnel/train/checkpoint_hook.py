"""Checkpoints of a monitored session, every so many steps or seconds."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph_io import write_graph
from runnel.summary.file_writer import FileWriterCache
from runnel.train.background_save import BackgroundSave
from runnel.train.hooks import SecondOrStepTimer, require_global_step
from runnel.train.meta_graph import export_meta_graph
from runnel.train.saver import Saver
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

logger = logging.getLogger("runnel")


class CheckpointSaverListener:
    """Something that is done around the saving of checkpoints; see :class:`CheckpointSaverHook`."""

    def begin(self) -> None:
        """Called once, when the graph can still be changed."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is saved."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint was saved; True asks that the session stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint when a session begins, every so many steps or seconds, and at its end.

    With ``save_in_background`` a thread writes it while steps go on. ``after_save`` of the
    listeners is then called when it is complete, before the next one begins.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_in_background: bool = False,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = os.fsdecode(os.fspath(checkpoint_dir))
        self._save_path = os.path.join(self._checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())
        self._in_background = save_in_background
        self._saving: tuple[BackgroundSave, int] | None = None

    def begin(self) -> None:
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step = require_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = int(session.run(self._global_step))
        graph = get_default_graph()
        write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        self._summary_writer.add_graph(graph)
        saver_def = self._get_saver().saver_def
        described = export_meta_graph(graph=graph, saver_def=saver_def, collection_list=())
        self._summary_writer.add_meta_graph(described)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        # What was read may be the step before the training operation incremented it.
        if self._timer.should_trigger_for_step(int(run_values.results) + 1):
            step = int(run_context.session.run(self._global_step))
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session: Any) -> None:
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        self._complete(session)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Saves a checkpoint; True if a listener asks for an end."""
        asked = self._complete(session)
        logger.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver = self._get_saver()
        if self._in_background:
            saving = saver.save_in_background(
                session, self._save_path, global_step=step, random_streams=True
            )
            self._saving = saving, step
            return asked
        saver.save(session, self._save_path, global_step=step, random_streams=True)
        return self._tell(session, step)

    def _complete(self, session: Any) -> bool:
        """Waits for the checkpoint that is being written; True if a listener asks for an end."""
        if self._saving is None:
            return False
        saving, step = self._saving
        self._saving = None
        saving.wait()
        return self._tell(session, step)

    def _tell(self, session: Any, step: int) -> bool:
        from tensorboard.compat.proto.event_pb2 import SessionLog

        log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        return any([bool(listener.after_save(session, step)) for listener in self._listeners])

    def _get_saver(self) -> Saver:
        if self._saver is None and self._scaffold is not None:
            self._saver = self._scaffold.saver
        if self._saver is None:
            savers = get_default_graph().get_collection(GraphKeys.SAVERS)
            if len(savers) != 1:
                raise RuntimeError(
                    f"CheckpointSaverHook needs a Saver: give saver= or scaffold= (the collection "
                    f"of savers has {len(savers)})"
                )
            self._saver = savers[0]
        return self._saver
