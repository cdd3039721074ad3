"""Training and evaluation in turn: a model is evaluated at its checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from runnel.estimator.cluster_task import CHIEF, EVALUATOR, MASTER, SERVER, WORKER
from runnel.estimator.continuous_evaluation import ContinuousEvaluation, evaluate_and_export
from runnel.estimator.estimator import Estimator
from runnel.estimator.task_server import await_turn, start_server
from runnel.estimator.train_spec import EvalSpec, TrainSpec
from runnel.train.checkpoint_hook import CheckpointSaverListener
from runnel.train.hooks import SecondOrStepTimer

logger = logging.getLogger("runnel")


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[Mapping[str, Any] | None, list[Any]]:
    """Trains a model, and evaluates and exports it at its checkpoints and at the end.

    Returns the metrics of the last evaluation, and what the exporters returned after it.

    Where ``TF_CONFIG`` has a cluster, each task does its part: a parameter server (``ps``) serves
    until it is ended, the ``chief`` and ``worker``s train and return no metrics, the ``evaluator``
    evaluates checkpoints as they come. A ``master`` is a chief that evaluates, too.

    Example:
        >>> tf.estimator.train_and_evaluate(
        ...     estimator,
        ...     tf.estimator.TrainSpec(train_input_fn, max_steps=1000),
        ...     tf.estimator.EvalSpec(eval_input_fn, throttle_secs=60),
        ... )
    """
    for name, value, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"`{name}` must have type `{kind.__name__}`, given {type(value)}")
    role = estimator.config.task_type
    if role == EVALUATOR:
        evaluator = ContinuousEvaluation(estimator, eval_spec, train_spec.max_steps)
        return evaluator.run()
    if estimator.config.cluster_spec.jobs:
        server = start_server(estimator.config)
        if role == SERVER:
            server.join()
            return None, []
        if role == WORKER:
            await_turn(estimator.config)
        if role != MASTER:  # another task evaluates
            estimator.train(
                train_spec.input_fn,
                hooks=train_spec.hooks,
                max_steps=train_spec.max_steps,
                saving_listeners=train_spec.saving_listeners if role == CHIEF else None,
            )
            return None, []
    evaluating = _Evaluating(estimator, eval_spec, train_spec.max_steps)
    logger.info("Start train and evaluate loop. The evaluate will happen after every checkpoint.")
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=[*train_spec.saving_listeners, evaluating],
    )
    evaluating.finish()
    return evaluating.metrics, evaluating.exports


class _Evaluating(CheckpointSaverListener):
    """Evaluates the checkpoints that training saves, but for the one that it began from."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator = estimator
        self._spec = spec
        self._max_steps = max_steps
        self._timer = SecondOrStepTimer(every_secs=spec.throttle_secs)
        self._has_begun = False
        self._last_step: int | None = None
        self.metrics: Mapping[str, Any] | None = None
        self.exports: list[Any] = []

    def after_save(self, session: Any, global_step_value: int) -> None:
        if not self._has_begun:
            self._has_begun = True
        elif self._may_evaluate() and self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)

    def _may_evaluate(self) -> bool:
        return not self._estimator._training.is_leaving

    def end(self, session: Any, global_step_value: int) -> None:
        self._last_step = global_step_value

    def finish(self) -> None:
        """Evaluates what training ended with, if there was any and it was not evaluated yet."""
        step = self._last_step
        if not self._may_evaluate():
            logger.warning("The program is asked to leave: its last checkpoint is not evaluated")
        elif step is not None and step != self._timer.last_triggered_step():
            self._evaluate(step)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        estimator, spec = self._estimator, self._spec
        path = estimator.latest_checkpoint()
        assert path is not None, "a checkpoint was just saved"
        is_last = bool(self._max_steps and step >= self._max_steps)
        self.metrics, self.exports = evaluate_and_export(estimator, spec, path, is_last)
