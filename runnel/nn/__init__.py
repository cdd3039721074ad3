"""``tf.nn``: the operations that neural networks are made of."""

from runnel.nn import rnn_cell
from runnel.nn.attention import multi_head_attention, scaled_dot_product_attention
from runnel.nn.average_loss import compute_average_loss, scale_regularization_loss
from runnel.nn.ctc import ctc_greedy_decoder, ctc_loss, ctc_loss_v2
from runnel.nn.ctc_labels import collapse_repeated, ctc_unique_labels
from runnel.nn.rnn.bidirectional import bidirectional_dynamic_rnn, static_bidirectional_rnn
from runnel.nn.rnn.dynamic import dynamic_rnn
from runnel.nn.rnn.raw import raw_rnn
from runnel.nn.rnn.static import static_rnn, static_state_saving_rnn
from runnel.nn.sampled_losses import nce_loss, sampled_softmax_loss
from runnel.ops.activations import (
    crelu,
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softsign,
    swish,
)
from runnel.ops.batch_norm import batch_norm_with_global_normalization, batch_normalization
from runnel.ops.bias import bias_add, relu_layer, xw_plus_b
from runnel.ops.convolution.atrous_convolution import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    convolution,
)
from runnel.ops.convolution.convolution import (
    conv1d,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv3d,
    conv3d_backprop_filter,
    conv3d_backprop_filter_v2,
)
from runnel.ops.convolution.depthwise_convolution import (
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input,
    separable_conv2d,
)
from runnel.ops.convolution.dilated_windows import with_space_to_batch
from runnel.ops.convolution.max_pool_with_argmax import max_pool_with_argmax
from runnel.ops.convolution.morphology import dilation2d, erosion2d
from runnel.ops.convolution.pool_functions import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    avg_pool_v2,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_v2,
    pool,
)
from runnel.ops.convolution.transposed_convolution import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
    conv_transpose,
)
from runnel.ops.cross_entropy import (
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from runnel.ops.ctc_beam_search import ctc_beam_search_decoder, ctc_beam_search_decoder_v2
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fused_batch_norm import fused_batch_norm
from runnel.ops.l2 import l2_loss, l2_normalize
from runnel.ops.local_response_normalization import local_response_normalization, lrn
from runnel.ops.moments import (
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
    zero_fraction,
)
from runnel.ops.ragged.ragged_operators import make_aware as _make_aware
from runnel.ops.sampling.candidate_samplers import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from runnel.ops.sampling.dropout import dropout
from runnel.ops.sampling.likelihood import (
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from runnel.ops.softmax import log_softmax, softmax
from runnel.ops.space import depth_to_space, space_to_batch, space_to_depth
from runnel.ops.sparse.embedding import embedding_lookup_sparse, safe_embedding_lookup_sparse
from runnel.ops.top_k import in_top_k, top_k

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "bidirectional_dynamic_rnn",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dilation2d",
    "dropout",
    "dynamic_rnn",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fused_batch_norm",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "moments",
    "multi_head_attention",
    "nce_loss",
    "normalize_moments",
    "pool",
    "raw_rnn",
    "relu",
    "relu6",
    "relu_layer",
    "rnn_cell",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "scaled_dot_product_attention",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]


def __dir__() -> list[str]:
    return __all__


_make_aware(globals())
