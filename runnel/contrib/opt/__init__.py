"""``tf.contrib.opt``: contributed optimizers."""

from runnel.contrib.opt.adamax import AdaMaxOptimizer
from runnel.contrib.opt.drop_stale_gradient import DropStaleGradientOptimizer
from runnel.contrib.opt.elastic_average import (
    ElasticAverageCustomGetter,
    ElasticAverageOptimizer,
)
from runnel.contrib.opt.external_optimizer import (
    ExternalOptimizerInterface,
    ScipyOptimizerInterface,
)
from runnel.contrib.opt.lars import LARSOptimizer
from runnel.contrib.opt.lazy_adam import LazyAdamOptimizer
from runnel.contrib.opt.model_average import ModelAverageCustomGetter, ModelAverageOptimizer
from runnel.contrib.opt.moving_average import MovingAverageOptimizer
from runnel.contrib.opt.multitask import MultitaskOptimizerWrapper, clip_gradients_by_global_norm
from runnel.contrib.opt.nadam import NadamOptimizer
from runnel.contrib.opt.sign import AddSignOptimizer, PowerSignOptimizer
from runnel.contrib.opt.variable_clipping import VariableClippingOptimizer
from runnel.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)

__all__ = [
    "AdaMaxOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
    "ExternalOptimizerInterface",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "ScipyOptimizerInterface",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]


def __dir__() -> list[str]:
    return __all__
