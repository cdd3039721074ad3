"""``Experiment``: a model with its input for training and for evaluation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from runnel.contrib.learn.estimator import Estimator
from runnel.contrib.learn.monitors import ValidationMonitor, replace_monitors_with_hooks
from runnel.estimator import estimator as core
from runnel.estimator.train_and_evaluate import train_and_evaluate
from runnel.estimator.train_spec import EvalSpec, TrainSpec

logger = logging.getLogger("runnel")


class ExportStrategy(NamedTuple):
    """How a model is exported: ``export_fn`` takes the estimator and the folder."""

    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: bool | None = None

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        """Exports a checkpoint of the model."""
        try:
            return self.export_fn(estimator, export_path, checkpoint_path, eval_result)
        except TypeError:
            return self.export_fn(estimator, export_path)


class Experiment:
    """A model with its input: trained, evaluated, or both in turn.

    ``estimator`` is one of ``tf.contrib.learn`` or of ``tf.estimator``.

    Example:
        >>> experiment = tf.contrib.learn.Experiment(
        ...     estimator, train_input_fn, eval_input_fn, train_steps=1000, eval_steps=10)
        >>> metrics, _ = experiment.train_and_evaluate()
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
    ) -> None:
        if isinstance(estimator, core.Estimator):
            if eval_metrics is not None:
                raise ValueError(
                    "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use "
                    "`eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
                )
        elif not isinstance(estimator, Estimator):
            raise ValueError(
                "`estimator` must be an estimator of tf.contrib.learn or of tf.estimator, not "
                f"{estimator!r}"
            )
        self._estimator = estimator
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._eval_metrics = eval_metrics
        self._train_steps = train_steps
        self._eval_steps = eval_steps
        self._train_monitors = list(train_monitors or ())
        self._eval_hooks = list(eval_hooks or ())
        self._local_eval_frequency = local_eval_frequency
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._throttle_secs = continuous_eval_throttle_secs
        self._steps_per_iteration = train_steps_per_iteration
        self._export_strategies = _strategies(export_strategies)

    @property
    def estimator(self) -> Any:
        """The model."""
        return self._estimator

    @property
    def eval_metrics(self) -> Any:
        """The metrics beyond the model's own."""
        return self._eval_metrics

    @property
    def train_steps(self) -> int | None:
        """The step at which training ends."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """How many batches an evaluation takes."""
        return self._eval_steps

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks to training."""
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> tuple[Any, ...]:
        """Exports in another way; returns how it was."""
        old = self._export_strategies
        self._export_strategies = _strategies(new_export_strategies)
        return old

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains until the step ``train_steps``; returns the estimator."""
        return self._train(self._train_steps)

    def _train(self, max_steps: int | None, monitors: Any = ()) -> Any:
        given = [*self._train_monitors, *monitors]
        if isinstance(self._estimator, core.Estimator):
            hooks = replace_monitors_with_hooks(given, self._estimator)
            return self._estimator.train(self._train_input_fn, hooks=hooks, max_steps=max_steps)
        return self._estimator.fit(
            input_fn=self._train_input_fn, max_steps=max_steps, monitors=given
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict[str, Any]:
        """The metrics of the newest checkpoint."""
        return self._evaluate(self._eval_input_fn, name)

    def _evaluate(self, input_fn: Callable[..., Any], name: str | None) -> dict[str, Any]:
        steps, hooks = self._eval_steps, self._eval_hooks
        if isinstance(self._estimator, core.Estimator):
            return self._estimator.evaluate(input_fn, steps, hooks, name=name)
        found = self._estimator.evaluate(
            input_fn=input_fn, steps=steps, metrics=self._eval_metrics, name=name, hooks=hooks
        )
        return dict(found)

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains, and evaluates at checkpoints and at the end: the metrics, and what was exported.

        Checkpoints are looked for every ``min_eval_frequency`` steps; 0 evaluates at the end only.
        """
        monitors = []
        if self._min_eval_frequency:
            of_core = isinstance(self._estimator, core.Estimator)
            monitors.append(
                ValidationMonitor(
                    input_fn=self._eval_input_fn,
                    eval_steps=self._eval_steps,
                    metrics=None if of_core else self._eval_metrics,
                    every_n_steps=self._min_eval_frequency,
                    hooks=self._eval_hooks,
                )
            )
        self._train(self._train_steps, monitors)
        found = self._evaluate(self._eval_input_fn, None)
        return found, self._export(found)

    def local_run(self) -> tuple[Any, list[Any]]:
        """Trains, and evaluates every ``local_eval_frequency`` steps and at the end."""
        self._min_eval_frequency = self._local_eval_frequency or 0
        return self.train_and_evaluate()

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Callable[[Any], bool] | None = None
    ) -> tuple[Any, list[Any]]:
        """Trains for some steps and evaluates, in turn, until the step ``train_steps``.

        ``continuous_eval_predicate_fn`` gets the metrics; False ends it.
        """
        size = self._steps_per_iteration
        if size is None:
            size = 1000 if self._train_steps is None else min(1000, max(self._train_steps // 10, 1))
        found: Any = None
        while continuous_eval_predicate_fn is None or continuous_eval_predicate_fn(found):
            before = 0 if found is None else int(found["global_step"])
            until = before + size
            if self._train_steps is not None:
                until = min(until, self._train_steps)
            self._train(until)
            found = self._evaluate(self._eval_input_fn, None)
            done = int(found["global_step"])
            if done == before or (self._train_steps is not None and done >= self._train_steps):
                break
        return found, self._export(found)

    def test(self) -> tuple[Any, list[Any]]:
        """One step of training and one evaluation, to see whether the program is right."""
        self._train(1)
        found = self._evaluate(self._eval_input_fn, None)
        return found, self._export(found)

    def run_in_cluster(self) -> tuple[Any, list[Any]]:
        """Does the part of this task of the cluster that ``TF_CONFIG`` says."""
        estimator = self._estimator
        if isinstance(estimator, Estimator):
            estimator = estimator._core(self._eval_metrics)
        hooks = replace_monitors_with_hooks(self._train_monitors, self._estimator)
        found, exports = train_and_evaluate(
            estimator,
            TrainSpec(self._train_input_fn, self._train_steps, hooks),
            EvalSpec(
                self._eval_input_fn,
                steps=self._eval_steps,
                hooks=self._eval_hooks,
                throttle_secs=int(self._throttle_secs),
            ),
        )
        return found, [*exports, *(self._export(found) if found else [])]

    def _export(self, found: Any) -> list[Any]:
        base = f"{self._estimator.model_dir}/export"
        return [
            strategy.export(self._estimator, f"{base}/{strategy.name}", None, found)
            for strategy in self._export_strategies
        ]


def _strategies(given: Any) -> tuple[ExportStrategy, ...]:
    every = [given] if isinstance(given, ExportStrategy) else list(given or ())
    for strategy in every:
        if not isinstance(strategy, ExportStrategy):
            raise ValueError(f"`export_strategies` must be ExportStrategy, not {strategy!r}")
    return tuple(every)
