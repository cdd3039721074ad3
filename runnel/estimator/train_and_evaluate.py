"""Training and evaluation in turn: a model is evaluated at its checkpoints."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel.estimator.estimator import Estimator
from runnel.estimator.estimator_spec import checked_hooks
from runnel.estimator.exporter import Exporter
from runnel.train.checkpoint_hook import CheckpointSaverListener
from runnel.train.hooks import SecondOrStepTimer
from runnel.train.session_run_hook import SessionRunHook

logger = logging.getLogger("runnel")


def _require_function(what: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{what} must be callable, given: {value!r}")


class TrainSpec:
    """What :func:`train_and_evaluate` trains with, up to ``max_steps`` or the input's end."""

    def __init__(
        self,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        _require_function("input_fn", input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        self.input_fn = input_fn
        self.max_steps = max_steps
        self.hooks = checked_hooks(hooks)
        self.saving_listeners = tuple(saving_listeners or ())


class EvalSpec:
    """What :func:`train_and_evaluate` evaluates with, and which exporters it calls.

    ``steps`` batches are evaluated (None: all); ``throttle_secs`` lie between two evaluations at
    least.
    """

    def __init__(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> None:
        _require_function("input_fn", input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        self.input_fn = input_fn
        self.steps = steps
        self.name = name
        self.hooks = checked_hooks(hooks)
        self.exporters = _exporters(exporters)
        self.start_delay_secs = start_delay_secs
        self.throttle_secs = throttle_secs


def _exporters(exporters: Any) -> tuple[Exporter, ...]:
    found = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters or ())
    for exporter in found:
        if not isinstance(exporter, Exporter):
            raise TypeError(f"exporters must be Exporters, given: {exporter!r}")
    names = [exporter.name for exporter in found]
    if len(set(names)) != len(names):
        raise ValueError(f"`exporters` must have unique names. Such a name is missing: {names}")
    return found


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[Mapping[str, Any] | None, list[Any]]:
    """Trains a model, and evaluates and exports it at its checkpoints and at the end.

    Returns the metrics of the last evaluation, and what the exporters returned after it.

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
    evaluating = _Evaluating(estimator, eval_spec, train_spec.max_steps)
    logger.info("Start train and evaluate loop. The evaluate will happen after every checkpoint.")
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=[*train_spec.saving_listeners, evaluating],
    )
    return evaluating.metrics, evaluating.exports


class _Evaluating(CheckpointSaverListener):
    """Evaluates the checkpoints that training saves, but for the one that it began from."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator = estimator
        self._spec = spec
        self._max_steps = max_steps
        self._timer = SecondOrStepTimer(every_secs=spec.throttle_secs)
        self._has_begun = False
        self.metrics: Mapping[str, Any] | None = None
        self.exports: list[Any] = []

    def after_save(self, session: Any, global_step_value: int) -> None:
        if not self._has_begun:
            self._has_begun = True
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)

    def end(self, session: Any, global_step_value: int) -> None:
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        estimator, spec = self._estimator, self._spec
        path = estimator.latest_checkpoint()
        assert path is not None, "a checkpoint was just saved"
        self.metrics = estimator.evaluate(
            spec.input_fn, spec.steps, spec.hooks, checkpoint_path=path, name=spec.name
        )
        is_last = bool(self._max_steps and step >= self._max_steps)
        self.exports = []
        for exporter in spec.exporters:
            folder = os.path.join(estimator.model_dir, "export", exporter.name)
            self.exports.append(exporter.export(estimator, folder, path, self.metrics, is_last))
