"""Hooks that end training when evaluation says that more is of no use."""

from __future__ import annotations

import glob
import logging
import operator
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from runnel.estimator.estimator import Estimator
from runnel.events.event_reader import summary_iterator
from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import bool_
from runnel.graph.operation import Operation
from runnel.ops.assign import assign
from runnel.train.global_step import get_global_step
from runnel.train.hooks import SecondOrStepTimer
from runnel.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant
from runnel.variables.variable_scope import AUTO_REUSE, variable_scope

logger = logging.getLogger("runnel")


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that ends training, on every worker, when ``should_stop_fn()`` is true.

    The chief asks every so many seconds or steps; the others see a variable that it sets.

    Example:
        >>> hook = tf.estimator.experimental.make_early_stopping_hook(estimator, lambda: done)
        >>> estimator.train(input_fn, hooks=[hook])
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopIfAsked(should_stop_fn, run_every_secs, run_every_steps)
    return _StopIfTold()


def stop_if_higher_hook(
    estimator: Estimator, metric_name: str, threshold: float, *args: Any, **kwargs: Any
) -> SessionRunHook:
    """Ends training when a metric of an evaluation is higher than ``threshold``.

    Takes ``eval_dir``, ``min_steps``, ``run_every_secs`` and ``run_every_steps`` too.
    """
    return _threshold_hook(operator.gt, estimator, metric_name, threshold, *args, **kwargs)


def stop_if_lower_hook(
    estimator: Estimator, metric_name: str, threshold: float, *args: Any, **kwargs: Any
) -> SessionRunHook:
    """Ends training when a metric of an evaluation is lower than ``threshold``.

    Takes ``eval_dir``, ``min_steps``, ``run_every_secs`` and ``run_every_steps`` too.
    """
    return _threshold_hook(operator.lt, estimator, metric_name, threshold, *args, **kwargs)


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    *args: Any,
    **kwargs: Any,
) -> SessionRunHook:
    """Ends training when a metric has not risen for so many steps.

    Takes ``eval_dir``, ``min_steps``, ``run_every_secs`` and ``run_every_steps`` too.
    """
    return _progress_hook(
        operator.gt, estimator, metric_name, max_steps_without_increase, *args, **kwargs
    )


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    *args: Any,
    **kwargs: Any,
) -> SessionRunHook:
    """Ends training when a metric has not fallen for so many steps.

    Takes ``eval_dir``, ``min_steps``, ``run_every_secs`` and ``run_every_steps`` too.

    Example:
        >>> hook = tf.estimator.experimental.stop_if_no_decrease_hook(estimator, "loss", 1000)
        >>> train = tf.estimator.TrainSpec(train_input, hooks=[hook])
        >>> tf.estimator.train_and_evaluate(estimator, train, evaluation)
    """
    return _progress_hook(
        operator.lt, estimator, metric_name, max_steps_without_decrease, *args, **kwargs
    )


def read_eval_metrics(eval_dir: str) -> OrderedDict[int, dict[str, float]]:
    """The numbers in the event files of a folder: by step, in order, and by name."""
    found: dict[int, dict[str, float]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(eval_dir), "*.tfevents.*"))):
        for event in summary_iterator(path):
            metrics = {
                value.tag: value.simple_value
                for value in event.summary.value
                if value.HasField("simple_value")
            }
            if metrics:
                found.setdefault(event.step, {}).update(metrics)
    return OrderedDict(sorted(found.items()))


def _threshold_hook(
    passes: Callable[[float, float], bool],
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    def should_stop() -> bool:
        for step, value in _values(estimator, metric_name, eval_dir, min_steps):
            if passes(value, threshold):
                logger.info(
                    "At step %s, metric %s has value %s, beyond the threshold %s.",
                    *(step, metric_name, value, threshold),
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def _progress_hook(
    is_better: Callable[[float, float], bool],
    estimator: Estimator,
    metric_name: str,
    patience: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    def should_stop() -> bool:
        best: tuple[int, float] | None = None
        for step, value in _values(estimator, metric_name, eval_dir, min_steps):
            if best is None or is_better(value, best[1]):
                best = step, value
            if step - best[0] >= patience:
                logger.info(
                    "No better %s in %s steps: at step %s it was %s.",
                    *(metric_name, step - best[0], *best),
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def _values(
    estimator: Estimator, metric_name: str, eval_dir: str | None, min_steps: int
) -> list[tuple[int, float]]:
    """The values of a metric by step."""
    metrics = read_eval_metrics(eval_dir or estimator.eval_dir())
    # Steps of other events, such as those of images, have none.
    return [
        (step, numbers[metric_name])
        for step, numbers in metrics.items()
        if step >= min_steps and metric_name in numbers
    ]


def _stop_variable() -> Any:
    with variable_scope("signal_early_stopping", values=[], reuse=AUTO_REUSE):
        return get_variable(
            "STOP",
            [],
            bool_,
            Constant(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopIfAsked(SessionRunHook):
    """The chief's: asks a function, and sets the variable."""

    def __init__(
        self, should_stop: Callable[[], bool], secs: float | None, steps: int | None
    ) -> None:
        self._should_stop = should_stop
        self._timer = SecondOrStepTimer(every_secs=secs, every_steps=steps)
        self._stop: Operation | None = None

    def begin(self) -> None:
        self._global_step = get_global_step()
        self._stop = assign(_stop_variable(), True)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                logger.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._stop)
                run_context.request_stop()


class _StopIfTold(SessionRunHook):
    """That of the other workers: looks at the variable."""

    def begin(self) -> None:
        self._variable = _stop_variable()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._variable)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results:
            logger.info("Early stopping requested, suspending run.")
            run_context.request_stop()
