"""``tf.train``: optimizers, learning rates, the global step, coordinated threads, input queues."""

from runnel.graph_io import write_graph
from runnel.train import experimental
from runnel.train.adadelta import AdadeltaOptimizer
from runnel.train.adagrad import AdagradDAOptimizer, AdagradOptimizer, ProximalAdagradOptimizer
from runnel.train.adam import AdamOptimizer
from runnel.train.coordinator import Coordinator, LooperThread
from runnel.train.ftrl import FtrlOptimizer
from runnel.train.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from runnel.train.gradient_descent import (
    GradientDescentOptimizer,
    ProximalGradientDescentOptimizer,
)
from runnel.train.input_batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from runnel.train.input_producers import (
    input_producer,
    limit_epochs,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from runnel.train.lbfgs import LBFGSOptimizer, LBFGSResult
from runnel.train.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from runnel.train.momentum import MomentumOptimizer
from runnel.train.moving_averages import ExponentialMovingAverage
from runnel.train.optimizer import Optimizer
from runnel.train.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from runnel.train.rmsprop import RMSPropOptimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "Coordinator",
    "ExponentialMovingAverage",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "LBFGSOptimizer",
    "LBFGSResult",
    "LooperThread",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "add_queue_runner",
    "assert_global_step",
    "batch",
    "batch_join",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "experimental",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "input_producer",
    "inverse_time_decay",
    "limit_epochs",
    "linear_cosine_decay",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "range_input_producer",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "write_graph",
]


def __dir__() -> list[str]:
    return __all__
