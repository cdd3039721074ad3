"""``RunConfig`` with the arguments that it had in ``tf.contrib.learn``."""

from __future__ import annotations

from typing import Any

from runnel.estimator import run_config

_DEFAULT: Any = object()


class RunConfig(run_config.RunConfig):
    """How an Estimator runs; see :class:`tf.estimator.RunConfig`.

    ``master`` and ``evaluation_master`` are the targets of sessions; by default ``TF_CONFIG`` says
    them. ``log_device_placement`` and ``gpu_memory_fraction`` are settings of the sessions, unless
    ``session_config`` has them. ``num_cores`` limits their threads.

    Example:
        >>> tf.contrib.learn.RunConfig(save_checkpoints_secs=1)
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: Any = _DEFAULT,
        save_checkpoints_steps: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: Any = None,
        session_config: Any = None,
        **others: Any,
    ) -> None:
        if session_config is None:
            session_config = _session_config(num_cores, log_device_placement, gpu_memory_fraction)
        saving = {"save_checkpoints_steps": save_checkpoints_steps}
        if save_checkpoints_secs is not _DEFAULT:
            saving["save_checkpoints_secs"] = save_checkpoints_secs
        elif save_checkpoints_steps is None:
            saving = {}
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_config=session_config,
            **saving,
            **others,
        )
        self._master = master
        self._evaluation_master = evaluation_master

    @property
    def master(self) -> str:
        return super().master if self._master is None else self._master

    @property
    def evaluation_master(self) -> str:
        return self._evaluation_master or super().evaluation_master

    @property
    def tf_config(self) -> Any:
        """The settings of sessions."""
        return self.session_config

    def replace(self, **kwargs: Any) -> run_config.RunConfig:
        made = super().replace(**kwargs)
        assert isinstance(made, RunConfig), "replace makes what it is called on"
        made._master, made._evaluation_master = self._master, self._evaluation_master
        return made


def _session_config(num_cores: int, log_placement: bool, memory_fraction: float) -> Any:
    if not (num_cores or log_placement or memory_fraction != 1):
        return None
    from tensorboard.compat.proto.config_pb2 import ConfigProto, GPUOptions

    return ConfigProto(
        allow_soft_placement=True,
        log_device_placement=log_placement,
        inter_op_parallelism_threads=num_cores,
        intra_op_parallelism_threads=num_cores,
        gpu_options=GPUOptions(per_process_gpu_memory_fraction=memory_fraction),
    )
