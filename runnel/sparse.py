"""``tf.sparse``: sparse tensors."""

from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.queues.accumulators import SparseConditionalAccumulator
from runnel.ops.sparse.arithmetic import sparse_add as add
from runnel.ops.sparse.arithmetic import sparse_maximum as maximum
from runnel.ops.sparse.arithmetic import sparse_minimum as minimum
from runnel.ops.sparse.arranging import sparse_expand_dims as expand_dims
from runnel.ops.sparse.arranging import sparse_eye as eye
from runnel.ops.sparse.arranging import sparse_reorder as reorder
from runnel.ops.sparse.arranging import sparse_reset_shape as reset_shape
from runnel.ops.sparse.arranging import sparse_reshape as reshape
from runnel.ops.sparse.arranging import sparse_retain as retain
from runnel.ops.sparse.arranging import sparse_transpose as transpose
from runnel.ops.sparse.dense import from_dense
from runnel.ops.sparse.dense import sparse_tensor_to_dense as to_dense
from runnel.ops.sparse.dense import sparse_to_indicator as to_indicator
from runnel.ops.sparse.masking import sparse_mask as mask
from runnel.ops.sparse.matmul import sparse_tensor_dense_matmul as matmul
from runnel.ops.sparse.matmul import sparse_tensor_dense_matmul as sparse_dense_matmul
from runnel.ops.sparse.merging import sparse_merge as merge
from runnel.ops.sparse.pieces import sparse_concat as concat
from runnel.ops.sparse.pieces import sparse_fill_empty_rows as fill_empty_rows
from runnel.ops.sparse.pieces import sparse_slice as slice  # noqa: A004 (TensorFlow's name)
from runnel.ops.sparse.pieces import sparse_split as split
from runnel.ops.sparse.placeholder import sparse_placeholder as placeholder
from runnel.ops.sparse.reducing import sparse_reduce_max as reduce_max
from runnel.ops.sparse.reducing import sparse_reduce_max_sparse as reduce_max_sparse
from runnel.ops.sparse.reducing import sparse_reduce_sum as reduce_sum
from runnel.ops.sparse.reducing import sparse_reduce_sum_sparse as reduce_sum_sparse
from runnel.ops.sparse.reducing import sparse_softmax as softmax
from runnel.ops.sparse_segments import sparse_segment_mean as segment_mean
from runnel.ops.sparse_segments import sparse_segment_sqrt_n as segment_sqrt_n
from runnel.ops.sparse_segments import sparse_segment_sum as segment_sum
from runnel.ops.strings.feature_crosses import sparse_cross as cross
from runnel.ops.strings.feature_crosses import sparse_cross_hashed as cross_hashed

__all__ = [
    "SparseConditionalAccumulator",
    "SparseTensor",
    "add",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "mask",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]


def __dir__() -> list[str]:
    return __all__
