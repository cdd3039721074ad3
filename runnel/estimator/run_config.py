"""How an Estimator runs: where it saves, how often, what it logs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from runnel.distributed.cluster_spec import ClusterSpec
from runnel.estimator.cluster_task import ClusterTask

_DEFAULT: Any = object()
_DEFAULT_SAVE_SECS = 600


class RunConfig:
    """How an Estimator runs, on one machine or as the task of a cluster that ``TF_CONFIG`` says.

    A checkpoint is saved every ``save_checkpoints_steps`` steps or ``save_checkpoints_secs``
    seconds (600 by default; only one may be given, None for both has none saved). Summaries are
    written every ``save_summary_steps``; the loss and the speed are logged every
    ``log_step_count_steps``. ``device_fn`` places operations; by default variables are on parameter
    servers, if there are any. ``protocol`` is the server's. Workers begin five seconds after one
    another, ``experimental_max_worker_delay_secs`` (60) after the chief at the latest.

    Example:
        >>> config = tf.estimator.RunConfig(model_dir="/tmp/model", save_checkpoints_steps=500)
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = _DEFAULT,
        save_checkpoints_secs: Any = _DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Any], str] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: float | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if train_distribute or eval_distribute or experimental_distribute:
            raise ValueError(
                "There are no distribution strategies here: an Estimator trains over the cluster "
                "that TF_CONFIG says"
            )
        self._task = ClusterTask.from_environment()
        if save_checkpoints_steps is _DEFAULT and save_checkpoints_secs is _DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, _DEFAULT_SAVE_SECS
        steps = None if save_checkpoints_steps is _DEFAULT else save_checkpoints_steps
        secs = None if save_checkpoints_secs is _DEFAULT else save_checkpoints_secs
        if steps is not None and secs is not None:
            raise ValueError(
                "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
            )
        for name, number in (
            ("save_summary_steps", save_summary_steps),
            ("save_checkpoints_steps", steps),
            ("save_checkpoints_secs", secs),
            ("keep_checkpoint_max", keep_checkpoint_max),
            ("log_step_count_steps", log_step_count_steps),
        ):
            if number is not None and number < 0:
                raise ValueError(f"{name} should be >= 0, but is {number}")
        self.model_dir = _one_folder(model_dir, self._task.model_dir)
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = steps
        self.save_checkpoints_secs = secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.device_fn = device_fn
        self.protocol = protocol
        self.experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self.session_creation_timeout_secs = session_creation_timeout_secs

    train_distribute = None
    eval_distribute = None

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the cluster; none on one machine."""
        return self._task.cluster_spec

    @property
    def is_chief(self) -> bool:
        """True for the task that initialises, saves and summarizes."""
        return self._task.is_chief

    @property
    def master(self) -> str:
        """The target of sessions that train."""
        return self._task.master

    @property
    def evaluation_master(self) -> str:
        """The target of sessions that evaluate."""
        return self._task.evaluation_master

    @property
    def task_type(self) -> str:
        """The job of this task."""
        return self._task.task_type

    @property
    def task_id(self) -> int:
        """The number of this task in its job."""
        return self._task.task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """The number of this task among all: the chief, workers, parameter servers."""
        return self._task.global_id_in_cluster

    @property
    def num_ps_replicas(self) -> int:
        """How many parameter servers there are."""
        return self._task.num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """How many tasks train, the chief among them."""
        return self._task.num_worker_replicas

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with some of the values others.

        Example:
            >>> config.replace(save_summary_steps=10)
        """
        given = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        unknown = kwargs.keys() - given.keys()
        if unknown:
            raise ValueError(f"Replacing {', '.join(sorted(unknown))} is not supported")
        arguments = {**given, **kwargs}
        if "save_checkpoints_steps" in kwargs and "save_checkpoints_secs" not in kwargs:
            arguments["save_checkpoints_secs"] = None
        elif "save_checkpoints_secs" in kwargs and "save_checkpoints_steps" not in kwargs:
            arguments["save_checkpoints_steps"] = None
        return type(self)(**arguments)


def _one_folder(given: Any, environment: str | None) -> str | None:
    """The folder of checkpoints that the program gives, or the environment; not two."""
    folder = None if given is None else os.fsdecode(os.fspath(given))
    if folder and environment and folder != environment:
        raise ValueError(
            f"model_dir is {folder!r} in RunConfig, but {environment!r} in TF_CONFIG: give one"
        )
    return folder or environment
