"""``tf.train.experimental``: mixed precision and loss scales."""

from runnel.train.loss_scale import DynamicLossScale, FixedLossScale, LossScale
from runnel.train.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from runnel.train.mixed_precision import (
    disable_mixed_precision_graph_rewrite,
    enable_mixed_precision_graph_rewrite,
)

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]
