"""``tf.nn``: the operations that neural networks are made of."""

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
from runnel.ops.cross_entropy import (
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from runnel.ops.dropout import dropout
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fused_batch_norm import fused_batch_norm
from runnel.ops.l2 import l2_loss, l2_normalize
from runnel.ops.likelihood import (
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from runnel.ops.local_response_normalization import local_response_normalization, lrn
from runnel.ops.moments import (
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
    zero_fraction,
)
from runnel.ops.softmax import log_softmax, softmax
from runnel.ops.space import depth_to_space, space_to_batch, space_to_depth
from runnel.ops.top_k import in_top_k, top_k

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "crelu",
    "depth_to_space",
    "dropout",
    "elu",
    "embedding_lookup",
    "fused_batch_norm",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "moments",
    "normalize_moments",
    "relu",
    "relu6",
    "relu_layer",
    "selu",
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
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "xw_plus_b",
    "zero_fraction",
]
