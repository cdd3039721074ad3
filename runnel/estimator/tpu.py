"""``tf.estimator.tpu``: estimators of programs for TPUs, run as programs run them without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runnel.estimator.estimator import Estimator
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.mode_keys import ModeKeys
from runnel.estimator.run_config import RunConfig as _RunConfig
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = [
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
]


class InputPipelineConfig:
    """Where the input of each part of a TPU is made; here all of it is made once."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


@dataclass(frozen=True)
class TPUConfig:
    """How a TPU runs steps. All of it is accepted; nothing of it matters without a TPU."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class TPURunConfig(_RunConfig):
    """``tf.estimator.RunConfig`` with a :class:`TPUConfig`.

    Example:
        >>> config = tf.estimator.tpu.RunConfig(model_dir="/tmp/model", save_checkpoints_steps=500)
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        if master or evaluation_master or cluster is not None:
            raise ValueError(
                "A TPUEstimator runs on this machine here: leave master, evaluation_master and "
                f"cluster None, not {master!r}, {evaluation_master!r} and {cluster!r}"
            )
        super().__init__(**kwargs)
        self.tpu_config = tpu_config or TPUConfig()


RunConfig = TPURunConfig


class _EveryStep(SessionRunHook):
    """Runs some tensors with each step."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = tensors

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._tensors)


def _called(call: tuple[Callable[..., Any], Any] | None, what: str) -> Any:
    """What a function makes of its tensors, which are a list or a dictionary."""
    if call is None:
        return None
    if not isinstance(call, tuple | list) or len(call) != 2 or not callable(call[0]):
        raise TypeError(f"{what} should be a tuple of a function and its tensors, not {call!r}")
    function, tensors = call
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class TPUEstimatorSpec(EstimatorSpec):
    """An ``EstimatorSpec`` whose metrics and scaffold are functions, called at once.

    ``eval_metrics`` is a function and its tensors, a list or a dictionary: it returns what
    ``eval_metric_ops`` would be. What ``host_call`` returns is run with each step.

    Example:
        >>> return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
    """

    def __init__(
        self,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: tuple[Callable[..., Any], Any] | None = None,
        export_outputs: Any = None,
        scaffold_fn: Callable[[], Any] | None = None,
        host_call: tuple[Callable[..., Any], Any] | None = None,
        training_hooks: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> None:
        called = _called(host_call, "host_call")
        hooks = () if called is None else (_EveryStep(called),)
        super().__init__(
            mode,
            predictions,
            loss,
            train_op,
            _called(eval_metrics, "eval_metrics"),
            export_outputs,
            training_hooks=(*(training_hooks or ()), *hooks),
            scaffold=None if scaffold_fn is None else scaffold_fn(),
            evaluation_hooks=(*(evaluation_hooks or ()), *hooks),
            prediction_hooks=(*(prediction_hooks or ()), *hooks),
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """Itself."""
        return self


class TPUEstimator(Estimator):
    """An Estimator whose functions find the size of a batch in ``params["batch_size"]``.

    Without a TPU (``use_tpu=False``) it is an Estimator in all else.

    Example:
        >>> estimator = tf.estimator.tpu.TPUEstimator(
        ...     model_fn, config=tf.estimator.tpu.RunConfig(), use_tpu=False, train_batch_size=32
        ... )
    """

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        **kwargs: Any,
    ) -> None:
        if use_tpu:
            raise ValueError(
                "A TPUEstimator runs with use_tpu=False here: what computes is JAX's device, which "
                "may be a TPU all the same"
            )
        if params is not None and "batch_size" in params:
            raise ValueError(f"batch_size is a reserved key of params, but is in {params}")
        super().__init__(model_fn, model_dir, config, None, warm_start_from)
        # A model_fn need not take what every TPUEstimator offers.
        self._params = dict(params) if params is not None else {}
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }

    def _params_for(self, mode: str) -> Any:
        size = self._batch_sizes.get(mode)
        sized = {} if size is None else {"batch_size": size}
        return {**super()._params_for(mode), **sized, "use_tpu": False}


def __dir__() -> list[str]:
    return __all__
