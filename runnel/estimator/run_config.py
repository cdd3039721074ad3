"""How an Estimator runs: where it saves, how often, what it logs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

_DEFAULT: Any = object()
_DEFAULT_SAVE_SECS = 600


class RunConfig:
    """How an Estimator runs, on one machine.

    A checkpoint is saved every ``save_checkpoints_steps`` steps or ``save_checkpoints_secs``
    seconds (600 by default; only one may be given, None for both has none saved). Summaries are
    written every ``save_summary_steps``; the loss and the speed are logged every
    ``log_step_count_steps``.

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
            raise ValueError("An Estimator runs on one machine here: no distribution strategies")
        if json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster"):
            raise ValueError("TF_CONFIG names a cluster, but an Estimator runs on one machine here")
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
        self.model_dir = None if model_dir is None else os.fsdecode(os.fspath(model_dir))
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = steps
        self.save_checkpoints_secs = secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.device_fn = device_fn
        self.session_creation_timeout_secs = session_creation_timeout_secs

    # One machine: what programs ask of the cluster.
    is_chief = True
    master = ""
    evaluation_master = ""
    task_type = "worker"
    task_id = 0
    global_id_in_cluster = 0
    num_ps_replicas = 0
    num_worker_replicas = 1

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with some of the values others.

        Example:
            >>> config.replace(save_summary_steps=10)
        """
        unknown = kwargs.keys() - vars(self).keys()
        if unknown:
            raise ValueError(f"Replacing {', '.join(sorted(unknown))} is not supported")
        arguments = {**vars(self), **kwargs}
        if "save_checkpoints_steps" in kwargs and "save_checkpoints_secs" not in kwargs:
            arguments["save_checkpoints_secs"] = None
        elif "save_checkpoints_secs" in kwargs and "save_checkpoints_steps" not in kwargs:
            arguments["save_checkpoints_steps"] = None
        return type(self)(**arguments)
