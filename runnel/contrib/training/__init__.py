"""``tf.contrib.training``: batches of a kind, hyperparameters, training and evaluating."""

from runnel.contrib.slim.learning import (
    add_gradients_summaries,
    clip_gradient_norms,
    multiply_gradients,
)
from runnel.contrib.training.evaluation import (
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    evaluate_once,
    evaluate_repeatedly,
    get_or_create_eval_step,
)
from runnel.contrib.training.hyperparameters import HParams, parse_values
from runnel.contrib.training.load_balancing import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)
from runnel.contrib.training.resampling import resample_at_rate, weighted_resample
from runnel.contrib.training.training import clip_gradient_norms_fn, create_train_op, train
from runnel.train.checkpoint_waiting import checkpoints_iterator, wait_for_new_checkpoint
from runnel.train.input_buckets import (
    bucket,
    bucket_by_sequence_length,
    rejection_sample,
    stratified_sample,
)
from runnel.train.sequence_states import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
    batch_sequences_with_states,
)

__all__ = [
    "GreedyLoadBalancingStrategy",
    "HParams",
    "NextQueuedSequenceBatch",
    "RandomStrategy",
    "SequenceQueueingStateSaver",
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "add_gradients_summaries",
    "batch_sequences_with_states",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "checkpoints_iterator",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "multiply_gradients",
    "parse_values",
    "rejection_sample",
    "resample_at_rate",
    "stratified_sample",
    "train",
    "wait_for_new_checkpoint",
    "weighted_resample",
]


def __dir__() -> list[str]:
    return __all__
