"""``tf.contrib.seq2seq``: attention, and decoders for sequence-to-sequence models."""

from runnel.contrib.seq2seq.attention_mechanism import AttentionMechanism
from runnel.contrib.seq2seq.attention_wrapper import AttentionWrapper
from runnel.contrib.seq2seq.attention_wrapper_state import AttentionWrapperState
from runnel.contrib.seq2seq.bahdanau_attention import BahdanauAttention
from runnel.contrib.seq2seq.basic_decoder import BasicDecoder, BasicDecoderOutput
from runnel.contrib.seq2seq.beam_layout import gather_tree_from_array
from runnel.contrib.seq2seq.beam_search_decoder import BeamSearchDecoder
from runnel.contrib.seq2seq.beam_search_state import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
)
from runnel.contrib.seq2seq.decoder import Decoder
from runnel.contrib.seq2seq.dynamic_decode import dynamic_decode
from runnel.contrib.seq2seq.embedding_helper import GreedyEmbeddingHelper, SampleEmbeddingHelper
from runnel.contrib.seq2seq.hardmax import hardmax
from runnel.contrib.seq2seq.helper import CustomHelper, Helper
from runnel.contrib.seq2seq.inference_helper import InferenceHelper
from runnel.contrib.seq2seq.loss import sequence_loss
from runnel.contrib.seq2seq.luong_attention import LuongAttention
from runnel.contrib.seq2seq.monotonic import monotonic_attention, safe_cumprod
from runnel.contrib.seq2seq.monotonic_mechanisms import (
    BahdanauMonotonicAttention,
    LuongMonotonicAttention,
)
from runnel.contrib.seq2seq.scheduled_helper import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)
from runnel.contrib.seq2seq.tile_batch import tile_batch
from runnel.contrib.seq2seq.training_helper import TrainingHelper
from runnel.ops.gather_tree import gather_tree

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "LuongMonotonicAttention",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "gather_tree_from_array",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
    "sequence_loss",
    "tile_batch",
]


def __dir__() -> list[str]:
    return __all__
