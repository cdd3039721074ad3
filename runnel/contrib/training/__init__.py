"""``tf.contrib.training``: hyperparameters, batches of a kind, variables on parameter servers."""

from runnel.contrib.slim.learning import create_train_op
from runnel.contrib.training.hyperparameters import HParams
from runnel.contrib.training.load_balancing import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)
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
    "batch_sequences_with_states",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "create_train_op",
    "rejection_sample",
    "stratified_sample",
]


def __dir__() -> list[str]:
    return __all__
