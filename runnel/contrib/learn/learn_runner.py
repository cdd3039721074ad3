"""``tf.contrib.learn.learn_runner``: runs an experiment as the task that ``TF_CONFIG`` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.learn.experiment import Experiment

__all__ = ["run"]


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Makes an experiment and calls its method ``schedule``; returns what that returns.

    ``experiment_fn`` takes ``output_dir``, or ``run_config`` and ``hparams``. By default it trains
    and evaluates; in a cluster each task does its part.

    Example:
        >>> tf.contrib.learn.learn_runner.run(make_experiment, "/tmp/model")
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError("Must set value for `output_dir` or `run_config`, and not for both")
    if not callable(experiment_fn):
        raise TypeError("Experiment builder `experiment_fn` is not callable.")
    if run_config is not None:
        if not run_config.model_dir:
            raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
        experiment = experiment_fn(run_config, hparams)
    else:
        if hparams is not None:
            raise ValueError("`hparams` need an `experiment_fn` of a `run_config`")
        experiment = experiment_fn(output_dir=output_dir)
    if not isinstance(experiment, Experiment):
        raise TypeError(f"Experiment builder did not return an Experiment, but {experiment!r}")
    if schedule is None:
        config = run_config or experiment.estimator.config
        schedule = "run_in_cluster" if config.cluster_spec.jobs else "train_and_evaluate"
    task = getattr(experiment, schedule, None)
    if not callable(task):
        names = [name for name in dir(Experiment) if not name.startswith("_")]
        raise ValueError(f"Schedule references non-existent task {schedule}; there are: {names}")
    return task()


def __dir__() -> list[str]:
    return __all__
