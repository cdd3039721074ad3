"""Training a model: a monitored session that saves, logs and stops."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.run_config import RunConfig
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.summary.summaries import scalar
from runnel.train.checkpoint_hook import CheckpointSaverHook, CheckpointSaverListener
from runnel.train.global_step import get_global_step
from runnel.train.hooks import LoggingTensorHook, NanTensorHook, StopAtStepHook
from runnel.train.monitored_session import MonitoredSession
from runnel.train.progress_hook import ProgressHook
from runnel.train.saver import Saver
from runnel.train.session_run_hook import SessionRunHook
from runnel.train.training_session import MonitoredTrainingSession

logger = logging.getLogger("runnel")


class Training:
    """One call of ``train``, for who looks at it meanwhile or afterwards."""

    session: MonitoredSession | None = None

    @property
    def is_leaving(self) -> bool:
        """True once a signal asked the program to end."""
        return self.session is not None and self.session._is_leaving


def run_training(
    spec: EstimatorSpec,
    config: RunConfig,
    model_dir: str,
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
    training: Training,
) -> Any:
    """Runs the training step of ``spec`` until a hook or the input ends it; the last loss."""
    graph = get_default_graph()
    if not any(summary.op.name == "loss" for summary in graph.get_collection(GraphKeys.SUMMARIES)):
        scalar("loss", spec.loss)
    graph.add_to_collection(GraphKeys.LOSSES, spec.loss)
    worker_hooks = [*hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps:
        shown = {"loss": spec.loss, "step": get_global_step()}
        worker_hooks.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
        stops = [hook for hook in hooks if isinstance(hook, StopAtStepHook)]
        end = (lambda: stops[0].last_step) if stops else None
        worker_hooks.append(ProgressHook(spec.loss, end, unasked=True))
    worker_hooks += spec.training_hooks
    _add_saver(spec, config)
    chief_hooks = list(spec.training_chief_hooks)
    saves = [h for h in [*worker_hooks, *chief_hooks] if isinstance(h, CheckpointSaverHook)]
    if saves:
        saves[0]._listeners.extend(listeners)
    elif config.save_checkpoints_secs or config.save_checkpoints_steps:
        chief_hooks.append(
            CheckpointSaverHook(
                model_dir,
                config.save_checkpoints_secs,
                config.save_checkpoints_steps,
                scaffold=spec.scaffold,
                listeners=listeners,
            )
        )
    elif listeners:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    loss = None
    with MonitoredTrainingSession(
        config.master,
        config.is_chief,
        checkpoint_dir=model_dir,
        scaffold=spec.scaffold,
        hooks=worker_hooks,
        chief_only_hooks=chief_hooks,
        save_checkpoint_secs=None,
        save_summaries_steps=config.save_summary_steps,
        config=session_config_of(config),
        log_step_count_steps=config.log_step_count_steps,
        max_wait_secs=config.session_creation_timeout_secs,
    ) as sess:
        training.session = sess
        while not sess.should_stop():
            _, loss = sess.run([spec.train_op, spec.loss])
    if loss is None:
        logger.warning(
            "Training with estimator made no steps. Perhaps input is empty or misspecified."
        )
    return loss


def session_config_of(config: RunConfig) -> Any:
    """The settings of sessions that train: on a cluster, with the tasks that a session needs."""
    filters = config._task.device_filters()
    if config.session_config is not None or not filters:
        return config.session_config
    from tensorboard.compat.proto.config_pb2 import ConfigProto

    return ConfigProto(allow_soft_placement=True, device_filters=filters)


def _add_saver(spec: EstimatorSpec, config: RunConfig) -> None:
    """The Saver of the job, unless the model has one."""
    graph = get_default_graph()
    if spec.scaffold.saver is not None or graph.get_collection(GraphKeys.SAVERS):
        return
    saver = Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
    )
    graph.add_to_collection(GraphKeys.SAVERS, saver)
