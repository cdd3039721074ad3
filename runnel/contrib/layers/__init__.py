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
from runnel.contrib.layers.divisive_normalization import GDN, gdn
from runnel.contrib.layers.embeddings import (
    embed_sequence,
    embedding_lookup_unique,
)
from runnel.contrib.layers.feature_column_ops import (
    check_feature_columns,
    create_feature_spec_for_parsing,
    infer_real_valued_columns,
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    make_place_holder_tensors_for_base_features,
    parse_feature_columns_from_examples,
    transform_features,
    weighted_sum_from_feature_columns,
)
from runnel.contrib.layers.feature_columns import (
    bucketized_column,
    crossed_column,
    embedding_column,
    one_hot_column,
    real_valued_column,
    shared_embedding_columns,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
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
from runnel.contrib.layers.maps_of_features import (
    images_to_sequence,
    maxout,
    sequence_to_images,
    spatial_softmax,
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
from runnel.contrib.layers.reversible import (
    RevBlock,
    recompute_grad,
    rev_block,
    scale_gradient,
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
from runnel.ops.strings.feature_crosses import HASH_KEY as SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY

__all__ = [
    "GDN",
    "OPTIMIZER_CLS_NAMES",
    "OPTIMIZER_SUMMARIES",
    "RevBlock",
    "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY",
    "apply_regularization",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bias_add",
    "bucketized_column",
    "check_feature_columns",
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
    "create_feature_spec_for_parsing",
    "crossed_column",
    "dropout",
    "elu",
    "embed_sequence",
    "embedding_column",
    "embedding_lookup_unique",
    "flatten",
    "fully_connected",
    "gdn",
    "group_norm",
    "images_to_sequence",
    "infer_real_valued_columns",
    "input_from_feature_columns",
    "instance_norm",
    "joint_weighted_sum_from_feature_columns",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_norm",
    "linear",
    "make_place_holder_tensors_for_base_features",
    "max_pool2d",
    "max_pool3d",
    "maxout",
    "one_hot_column",
    "one_hot_encoding",
    "optimize_loss",
    "parse_feature_columns_from_examples",
    "pool",
    "real_valued_column",
    "recompute_grad",
    "relu",
    "relu6",
    "repeat",
    "rev_block",
    "safe_embedding_lookup_sparse",
    "scale_gradient",
    "separable_conv2d",
    "separable_convolution2d",
    "sequence_to_images",
    "shared_embedding_columns",
    "softmax",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "spatial_softmax",
    "stack",
    "sum_regularizer",
    "summarize_activation",
    "summarize_activations",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "summarize_variables",
    "transform_features",
    "unit_norm",
    "utils",
    "variance_scaling_initializer",
    "weighted_sparse_column",
    "weighted_sum_from_feature_columns",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]


def __dir__() -> list[str]:
    return __all__
