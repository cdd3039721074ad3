"""``MonitoredTrainingSession``: a session that saves, logs, and leaves cleanly when told to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from runnel.distributed.progress_record import VARIABLE
from runnel.train.checkpoint_hook import CheckpointSaverHook
from runnel.train.hooks import StepCounterHook, SummarySaverHook
from runnel.train.monitored_session import MonitoredSession
from runnel.train.reporting_hook import ReportingHook
from runnel.train.scaffold import Scaffold
from runnel.train.session_creators import ChiefSessionCreator, WorkerSessionCreator
from runnel.train.session_run_hook import SessionRunHook

_DEFAULT = object()


class _TrainingSession(MonitoredSession):
    """A monitored session that SIGTERM ends, also a worker's, which saves nothing itself."""

    def _leaves_on_sigterm(self) -> bool:
        return True


def MonitoredTrainingSession(  # noqa: N802 (TensorFlow's name)
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = _DEFAULT,
    save_summaries_steps: Any = _DEFAULT,
    save_summaries_secs: Any = _DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = _DEFAULT,
    summary_dir: Any = None,
) -> MonitoredSession:
    """A session for training: from the newest checkpoint of ``checkpoint_dir``, saved there again.

    The chief saves checkpoints (every 600 seconds by default, at the beginning and at the end) and
    summaries (every 100 steps); others wait for it. Ctrl-C and SIGTERM save and leave.

    Example:
        >>> with tf.train.MonitoredTrainingSession(checkpoint_dir="/tmp/model") as sess:
        ...     while not sess.should_stop():
        ...         sess.run(train_op)
    """
    if save_summaries_steps is _DEFAULT and save_summaries_secs is _DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    if save_checkpoint_secs is _DEFAULT and save_checkpoint_steps is _DEFAULT:
        save_checkpoint_secs, save_checkpoint_steps = 600, None
    summary_steps = None if save_summaries_steps is _DEFAULT else save_summaries_steps
    summary_secs = None if save_summaries_secs is _DEFAULT else save_summaries_secs
    checkpoint_secs = None if save_checkpoint_secs is _DEFAULT else save_checkpoint_secs
    checkpoint_steps = None if save_checkpoint_steps is _DEFAULT else save_checkpoint_steps
    scaffold = scaffold or Scaffold()
    all_hooks = list(hooks or ())
    folder = None if checkpoint_dir is None else os.fsdecode(os.fspath(checkpoint_dir))
    progress = os.environ.get(VARIABLE)
    if progress:
        all_hooks.insert(0, ReportingHook(progress, is_chief, folder))
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return _TrainingSession(worker, all_hooks, stop_grace_period_secs)
    all_hooks[:0] = list(chief_only_hooks or ())
    logdir = folder if summary_dir is None else os.fsdecode(os.fspath(summary_dir))
    if logdir:
        if log_step_count_steps:
            all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=logdir))
        if summary_steps or summary_secs:
            all_hooks.append(
                SummarySaverHook(summary_steps, summary_secs, output_dir=logdir, scaffold=scaffold)
            )
    if folder and (checkpoint_secs or checkpoint_steps):
        all_hooks.append(
            CheckpointSaverHook(folder, checkpoint_secs, checkpoint_steps, scaffold=scaffold)
        )
    chief = ChiefSessionCreator(scaffold, master, config, folder)
    return _TrainingSession(chief, all_hooks, stop_grace_period_secs)
