"""``tf.contrib.tpu``: now in ``tf.tpu`` and ``tf.estimator.tpu``."""

from runnel.estimator.tpu import (
    InputPipelineConfig,
    RunConfig,
    TPUConfig,
    TPUEstimator,
    TPUEstimatorSpec,
)
from runnel.tpu import CrossShardOptimizer, bfloat16_scope

__all__ = [
    "CrossShardOptimizer",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "bfloat16_scope",
]


def __dir__() -> list[str]:
    return __all__
