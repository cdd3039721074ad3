"""``tf.contrib.legacy_seq2seq``: sequence to sequence over lists of steps."""

from runnel.contrib.legacy_seq2seq.attention import (
    attention_decoder,
    embedding_attention_decoder,
    embedding_attention_seq2seq,
)
from runnel.contrib.legacy_seq2seq.buckets import model_with_buckets
from runnel.contrib.legacy_seq2seq.decoders import (
    basic_rnn_seq2seq,
    rnn_decoder,
    tied_rnn_seq2seq,
)
from runnel.contrib.legacy_seq2seq.embedded import (
    embedding_rnn_decoder,
    embedding_rnn_seq2seq,
    embedding_tied_rnn_seq2seq,
    one2many_rnn_seq2seq,
)
from runnel.contrib.legacy_seq2seq.losses import sequence_loss, sequence_loss_by_example
from runnel.contrib.legacy_seq2seq.previous import _extract_argmax_and_embed

__all__ = [
    "attention_decoder",
    "basic_rnn_seq2seq",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "model_with_buckets",
    "one2many_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]

_ = _extract_argmax_and_embed  # programs import it by its name in TensorFlow


def __dir__() -> list[str]:
    return __all__
