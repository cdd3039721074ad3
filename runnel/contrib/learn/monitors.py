"""``tf.contrib.learn.monitors``: what watched training before there were hooks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.estimator import estimator as core
from runnel.graph.graph import get_default_graph
from runnel.train.checkpoint_state import latest_checkpoint
from runnel.train.global_step import get_global_step
from runnel.train.hooks import NanLossDuringTrainingError, StepCounterHook, SummarySaverHook
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

logger = logging.getLogger("runnel")

__all__ = [
    "BaseMonitor",
    "CaptureVariable",
    "CheckpointSaver",
    "EveryN",
    "LoggingTrainable",
    "NanLoss",
    "NanLossDuringTrainingError",
    "PrintTensor",
    "RunHookAdapterForMonitors",
    "StepCounter",
    "StopAtStep",
    "SummarySaver",
    "ValidationMonitor",
    "replace_monitors_with_hooks",
]


class BaseMonitor:
    """Something that is told of each step of training; subclasses say what it does."""

    def __init__(self) -> None:
        self._begun = False
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether each worker of a cluster runs it, or the chief alone."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Says which model is trained."""
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Training begins; the model's graph is the default one."""
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: Any = None) -> None:
        """Training has ended."""
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def step_begin(self, step: int) -> list[Any]:
        """The tensors that it wants of this step."""
        self._current_step = step
        return []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        """True ends training; ``output`` has the values of the tensors, by name."""
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """After the step, with the session that ran it."""


class EveryN(BaseMonitor):
    """Something that is told of every n-th step, and of each of the first few."""

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._is_active = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """The tensors that it wants of this step."""
        return []

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        """True ends training."""
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """After the step, and after the last one."""

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        self._is_active = (
            step <= self._first_n_steps
            or step >= self._every_n_steps + self._last_active_step
            or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._is_active else []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._is_active else False

    def post_step(self, step: int, session: Any) -> None:
        super().post_step(step, session)
        if self._is_active:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        super().end(session)
        if self._last_successful_step not in (None, self._last_active_step):
            assert self._last_successful_step is not None, "it is not None here"
            self.every_n_post_step(self._last_successful_step, session)


class StopAtStep(BaseMonitor):
    """Ends training after ``num_steps`` steps, or at the step ``last_step``."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if (num_steps is None) == (last_step is None):
            raise ValueError("Exactly one of num_steps and last_step must be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    @property
    def run_on_all_workers(self) -> bool:
        return True

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        if self._last_step is None:
            assert self._num_steps is not None, "one of them is given"
            self._last_step = step + self._num_steps - 1
        return []

    def step_end(self, step: int, output: dict[str, Any]) -> bool:
        super().step_end(step, output)
        assert self._last_step is not None, "step_begin set it"
        return step >= self._last_step


class PrintTensor(EveryN):
    """Logs tensors: a list of names, or names of tensors by what they are called in the log."""

    def __init__(self, tensor_names: Any, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        if not isinstance(tensor_names, dict):
            tensor_names = {name: name for name in tensor_names}
        self._tensors = tensor_names

    def every_n_step_begin(self, step: int) -> list[Any]:
        return list(self._tensors.values())

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        shown = ", ".join(
            f"{tag} = {outputs[_name(tensor)]}" for tag, tensor in self._tensors.items()
        )
        logger.info("Step %d: %s", step, shown)
        return False


class LoggingTrainable(EveryN):
    """Logs the trainable variables of a scope."""

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope
        self._variables: list[Any] = []

    def every_n_step_begin(self, step: int) -> list[Any]:
        from runnel.variables.initialization import trainable_variables

        self._variables = list(trainable_variables(self._scope))
        return [variable.name for variable in self._variables]

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        shown = ", ".join(f"{v.name} = {outputs[v.name]}" for v in self._variables)
        logger.info("Logging Trainable: Step %d: %s", step, shown)
        return False


class CaptureVariable(EveryN):
    """Keeps the values of a variable: ``values`` has them by step."""

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """The values so far."""
        return self._values

    def every_n_step_begin(self, step: int) -> list[Any]:
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        self._values[step] = outputs[_name(self._var_name)]
        return False


class NanLoss(EveryN):
    """Ends training when the loss is no number: with an error, or quietly."""

    def __init__(
        self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True
    ) -> None:
        super().__init__(every_n_steps)
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        return [self._loss]

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        if not np.isnan(outputs[_name(self._loss)]).any():
            return False
        if self._fails:
            raise NanLossDuringTrainingError
        logger.warning("Model diverged with loss = NaN: training ends.")
        return True


class ValidationMonitor(EveryN):
    """Evaluates each new checkpoint while a model trains, and can end training early.

    It looks for a checkpoint every ``every_n_steps``; how often there are new ones is up to the
    estimator's configuration. Training ends where the metric ``early_stopping_metric`` was no
    better for ``early_stopping_rounds`` steps.

    Example:
        >>> monitor = tf.contrib.learn.monitors.ValidationMonitor(
        ...     x_val, y_val, every_n_steps=50, early_stopping_rounds=200)
        >>> classifier.fit(x, y, steps=2000, monitors=[monitor])
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self.x, self.y, self.input_fn, self.batch_size = x, y, input_fn, batch_size
        self.eval_steps, self.metrics, self.hooks, self.name = eval_steps, metrics, hooks, name
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self._best_step: int | None = None
        self._best_value: Any = None
        self._best_metrics: dict[str, Any] | None = None
        self._early_stopped = False
        self._evaluated: str | None = None

    @property
    def early_stopped(self) -> bool:
        """Whether it has ended training."""
        return self._early_stopped

    @property
    def best_step(self) -> int | None:
        """The step of the best value."""
        return self._best_step

    @property
    def best_value(self) -> Any:
        """The best value of the metric so far."""
        return self._best_value

    @property
    def best_metrics(self) -> dict[str, Any] | None:
        """All metrics of the evaluation that gave the best value."""
        return self._best_metrics

    def _evaluate(self) -> dict[str, Any]:
        if not isinstance(self._estimator, core.Estimator):
            found = self._estimator.evaluate(
                x=self.x,
                y=self.y,
                input_fn=self.input_fn,
                batch_size=self.batch_size,
                steps=self.eval_steps,
                metrics=self.metrics,
                hooks=self.hooks,
                name=self.name,
            )
            return dict(found)
        given = (self.x, self.y, self.batch_size, self.metrics)
        if any(value is not None for value in given):
            raise ValueError(
                "tf.estimator.Estimator does not support x, y, batch_size and metrics of a "
                "ValidationMonitor: give input_fn"
            )
        return self._estimator.evaluate(self.input_fn, self.eval_steps, self.hooks, name=self.name)

    def every_n_step_end(self, step: int, outputs: dict[str, Any]) -> bool:
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        checkpoint = latest_checkpoint(self._estimator.model_dir)
        if checkpoint is None or checkpoint == self._evaluated:
            return False
        self._evaluated = checkpoint
        found = self._evaluate()
        shown = ", ".join(f"{name} = {value}" for name, value in found.items())
        logger.info("Validation (step %d): %s", step, shown)
        return self.early_stopping_rounds is not None and self._stops(step, found)

    def _stops(self, step: int, found: dict[str, Any]) -> bool:
        assert self.early_stopping_rounds is not None, "the caller has looked"
        if self.early_stopping_metric not in found:
            raise ValueError(
                f"Metric {self.early_stopping_metric} missing from outputs {sorted(found)}."
            )
        value = found[self.early_stopping_metric]
        if self._best_step is None or (
            value < self._best_value
            if self.early_stopping_metric_minimize
            else value > self._best_value
        ):
            self._best_step, self._best_value, self._best_metrics = step, value, dict(found)
        assert self._best_step is not None, "a first value is the best one"
        if step - self._best_step < self.early_stopping_rounds:
            return False
        logger.info(
            "Stopping. Best step: %d with %s = %s.",
            *(self._best_step, self.early_stopping_metric, self._best_value),
        )
        self._early_stopped = True
        return True


class CheckpointSaver(BaseMonitor):
    """Saves a checkpoint every few seconds or steps."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: int | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ) -> None:
        super().__init__()
        from runnel.train.checkpoint_hook import CheckpointSaverHook

        self.hook = CheckpointSaverHook(
            checkpoint_dir, save_secs, save_steps, saver, checkpoint_basename, scaffold
        )


def SummarySaver(  # noqa: N802 - a class in TensorFlow
    summary_op: Any,
    save_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: Any = None,
    scaffold: Any = None,
) -> SummarySaverHook:
    """The hook that saves summaries every ``save_steps``."""
    return SummarySaverHook(
        save_steps=save_steps,
        output_dir=output_dir,
        summary_writer=summary_writer,
        scaffold=scaffold,
        summary_op=summary_op,
    )


def StepCounter(  # noqa: N802 - a class in TensorFlow
    every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None
) -> StepCounterHook:
    """The hook that counts steps per second."""
    return StepCounterHook(
        every_n_steps=every_n_steps, output_dir=output_dir, summary_writer=summary_writer
    )


def _name(tensor: Any) -> str:
    name = getattr(tensor, "name", tensor)
    return str(get_default_graph().as_graph_element(name).name)


class RunHookAdapterForMonitors(SessionRunHook):
    """Monitors as a hook."""

    def __init__(self, monitors: Sequence[BaseMonitor]) -> None:
        self._monitors = list(monitors)
        self._step: int | None = None

    def begin(self) -> None:
        self._step = None
        self._graph = get_default_graph()
        self._global_step = get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        if self._step is None:
            self._step = int(run_context.session.run(self._global_step)) + 1
        wanted: dict[str, Any] = {}
        with self._graph.as_default():
            for monitor in self._monitors:
                for tensor in monitor.step_begin(self._step):
                    wanted[_name(tensor)] = getattr(tensor, "name", tensor)
        return SessionRunArgs({"step": self._global_step, "wanted": wanted})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        assert self._step is not None, "before_run set it"
        found = run_values.results["wanted"]
        with self._graph.as_default():
            ends = [monitor.step_end(self._step, found) for monitor in self._monitors]
            for monitor in self._monitors:
                monitor.post_step(self._step, run_context.session)
        if any(ends):
            run_context.request_stop()
        self._step = int(run_values.results["step"]) + 1

    def end(self, session: Any) -> None:
        self._step = None
        for monitor in self._monitors:
            monitor.end(session=session)


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[SessionRunHook]:
    """Hooks for a list of monitors and hooks."""
    hooks, monitors = [], []
    for given in monitors_or_hooks or ():
        if isinstance(given, SessionRunHook):
            hooks.append(given)
        elif isinstance(given, CheckpointSaver):
            hooks.append(given.hook)
        elif isinstance(given, BaseMonitor):
            monitors.append(given)
            if estimator is not None:
                given.set_estimator(estimator)
        else:
            raise ValueError(f"{given!r} is neither a monitor nor a hook")
    if estimator is not None and not estimator.config.is_chief:
        monitors = [monitor for monitor in monitors if monitor.run_on_all_workers]
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks


def __dir__() -> list[str]:
    return __all__
