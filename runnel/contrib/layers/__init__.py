"""``tf.contrib.layers``: layers as functions, with initializers, regularizers and summaries."""

from runnel.contrib.layers import utils
from runnel.contrib.layers.arrangements import (
    bias_add,
    dropout,
    flatten,
    one_hot_encoding,
    repeat,
    softmax,
    stack,
    unit_norm,
)
from runnel.contrib.layers.convolutions import (
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    convolution1d,
    convolution2d,
    convolution2d_transpose,
    convolution3d,
    convolution3d_transpose,
    separable_conv2d,
    separable_convolution2d,
)
from runnel.contrib.layers.embeddings import (
    embed_sequence,
    embedding_lookup_unique,
)
from runnel.contrib.layers.fully_connected import (
    elu,
    fully_connected,
    linear,
    relu,
    relu6,
)
from runnel.contrib.layers.in_plane import conv2d_in_plane, convolution2d_in_plane
from runnel.contrib.layers.initializers import (
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from runnel.contrib.layers.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
)
from runnel.contrib.layers.optimize_loss import (
    OPTIMIZER_CLS_NAMES,
    OPTIMIZER_SUMMARIES,
    optimize_loss,
)
from runnel.contrib.layers.pooling import (
    avg_pool2d,
    avg_pool3d,
    max_pool2d,
    max_pool3d,
    pool,
)
from runnel.contrib.layers.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from runnel.contrib.layers.summaries import (
    summarize_activation,
    summarize_activations,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    summarize_variables,
)
from runnel.ops.sparse.embedding import safe_embedding_lookup_sparse

__all__ = [
    "OPTIMIZER_CLS_NAMES",
    "OPTIMIZER_SUMMARIES",
    "apply_regularization",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bias_add",
    "conv1d",
    "conv2d",
    "conv2d_in_plane",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "convolution1d",
    "convolution2d",
    "convolution2d_in_plane",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "dropout",
    "elu",
    "embed_sequence",
    "embedding_lookup_unique",
    "flatten",
    "fully_connected",
    "group_norm",
    "instance_norm",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_norm",
    "linear",
    "max_pool2d",
    "max_pool3d",
    "one_hot_encoding",
    "optimize_loss",
    "pool",
    "relu",
    "relu6",
    "repeat",
    "safe_embedding_lookup_sparse",
    "separable_conv2d",
    "separable_convolution2d",
    "softmax",
    "stack",
    "sum_regularizer",
    "summarize_activation",
    "summarize_activations",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "summarize_variables",
    "unit_norm",
    "utils",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]


def __dir__() -> list[str]:
    return __all__
