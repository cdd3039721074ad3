"""runnel: TensorFlow's dataflow system, built anew on XLA. ``import runnel as tf``."""

import builtins as _builtins
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from runnel import (
    bitwise,
    debugging,
    initializers,
    manip,
    math,
    queue,
    ragged,
    random,
    version,
)
from runnel.autodiff.custom_gradient import custom_gradient, grad_pass_through
from runnel.autodiff.gradients import (
    AggregationMethod,
    UnconnectedGradients,
    gradients,
)
from runnel.autodiff.hessians import hessians
from runnel.behaviour import (
    control_flow_v2_enabled,
    disable_control_flow_v2,
    disable_eager_execution,
    disable_tensor_equality,
    disable_v2_behavior,
    disable_v2_tensorshape,
    enable_control_flow_v2,
    enable_eager_execution,
    enable_tensor_equality,
    enable_v2_behavior,
    enable_v2_tensorshape,
    executing_eagerly,
)
from runnel.control_flow.conditional import case, cond, switch_case
from runnel.control_flow.functional import foldl, foldr, map_fn, scan
from runnel.control_flow.loop import while_loop
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph import errors
from runnel.graph.apply import apply_op
from runnel.graph.collections import GraphKeys
from runnel.graph.constant_value import constant_value as get_static_value
from runnel.graph.conversion import (
    convert_n_to_tensor,
    convert_to_tensor,
    register_tensor_conversion_function,
)
from runnel.graph.default_collections import (
    add_to_collection,
    add_to_collections,
    get_collection,
    get_collection_ref,
)
from runnel.graph.default_session import get_default_session
from runnel.graph.device import DeviceSpec
from runnel.graph.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from runnel.graph.dtypes import bool_ as bool  # noqa: A004 (TensorFlow's name)
from runnel.graph.gradient_registry import NoGradient, NotDifferentiable, RegisterGradient
from runnel.graph.graph import (
    Graph,
    colocate_with,
    container,
    control_dependencies,
    device,
    get_default_graph,
    init_scope,
    name_scope,
    op_scope,
    reset_default_graph,
)
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.random_seed import get_seed, set_random_seed
from runnel.graph.registry import OpDef, get_op_def, register_op, registered_ops
from runnel.graph.registry import declare_families as _declare_families
from runnel.graph.shapes import Dimension, TensorShape, dimension_at_index, dimension_value
from runnel.graph.sparse_tensor import (
    SparseTensor,
    SparseTensorValue,
    convert_to_tensor_or_sparse_tensor,
)
from runnel.graph.tensor_proto import make_ndarray, make_tensor_proto
from runnel.lazy_names import FAMILIES as _FAMILIES
from runnel.lazy_names import MODULES as _LAZY_MODULES
from runnel.lazy_names import NAMESPACES as _LAZY_NAMESPACES
from runnel.memory import keep_freed_memory_if_asked as _keep_freed_memory_if_asked
from runnel.ops.activations import log_sigmoid
from runnel.ops.arg_extrema import arg_max, arg_min, argmax, argmin
from runnel.ops.arithmetic import (
    accumulate_n,
    add,
    add_n,
    atan2,
    maximum,
    minimum,
    multiply,
    pow,
    scalar_mul,
    squared_difference,
    subtract,
)
from runnel.ops.array_shape import (
    ensure_shape,
    expand_dims,
    rank,
    reshape,
    shape,
    shape_n,
    size,
    squeeze,
)
from runnel.ops.assertions import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_type,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from runnel.ops.assign import (
    assign,
    assign_add,
    assign_sub,
    batch_scatter_update,
    count_up_to,
    is_variable_initialized,
    scatter_add,
    scatter_div,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_nd_add,
    scatter_nd_sub,
    scatter_nd_update,
    scatter_sub,
    scatter_update,
)
from runnel.ops.band import diag, diag_part, matrix_band_part
from runnel.ops.broadcasting import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    meshgrid,
)
from runnel.ops.casting import (
    bitcast,
    cast,
    saturate_cast,
    to_bfloat16,
    to_complex64,
    to_complex128,
    to_double,
    to_float,
    to_int32,
    to_int64,
)
from runnel.ops.checks import (
    Assert,
    add_check_numerics_ops,
    check_numerics,
    verify_tensor_all_finite,
)
from runnel.ops.clipping import (
    clip_by_average_norm,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    global_norm,
)
from runnel.ops.clock import timestamp
from runnel.ops.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from runnel.ops.complex_numbers import angle, complex, conj, imag, real
from runnel.ops.constants import constant, placeholder, placeholder_with_default
from runnel.ops.control import (
    group,
    guarantee_const,
    identity,
    identity_n,
    no_op,
    stop_gradient,
    tuple,  # noqa: A004
)
from runnel.ops.convolution.dilated_windows import required_space_to_batch_paddings
from runnel.ops.cumulative import bincount, cumprod, cumsum
from runnel.ops.diagonal import eye, matrix_diag, matrix_diag_part, matrix_set_diag
from runnel.ops.division import (
    div,
    divide,
    floor_div,
    floordiv,
    floormod,
    mod,
    realdiv,
    truediv,
    truncatediv,
    truncatemod,
)
from runnel.ops.einsum import einsum
from runnel.ops.elementwise import (
    abs,
    exp,
    expm1,
    log,
    log1p,
    negative,
    reciprocal,
    rsqrt,
    sigmoid,
    sign,
    sqrt,
    square,
    tanh,
)
from runnel.ops.fill import fill, ones, ones_like, zeros, zeros_like
from runnel.ops.gather import batch_gather, gather, gather_nd
from runnel.ops.indexing import newaxis
from runnel.ops.joining import concat, parallel_stack, stack
from runnel.ops.masking import boolean_mask, sequence_mask
from runnel.ops.matmul import matmul
from runnel.ops.norms import cross, norm, trace
from runnel.ops.one_hot import one_hot
from runnel.ops.padding import pad, tile
from runnel.ops.partition import dynamic_partition, dynamic_stitch
from runnel.ops.printing import Print
from runnel.ops.printing import print_values as print  # noqa: A004 (TensorFlow's name)
from runnel.ops.py_function import numpy_function, py_func
from runnel.ops.queues.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)
from runnel.ops.ragged.ragged_operators import make_aware as _make_aware
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.ranges import lin_space, linspace, range
from runnel.ops.reduce_functions import (
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from runnel.ops.reversal import reverse, reverse_sequence, reverse_v2
from runnel.ops.rolling import roll
from runnel.ops.rounding import ceil, floor, is_finite, is_inf, is_nan, rint, round
from runnel.ops.sampling.random import (
    multinomial,
    random_normal,
    random_shuffle,
    random_uniform,
    truncated_normal,
)
from runnel.ops.sampling.random_crop import random_crop
from runnel.ops.scatter_nd import (
    scatter_nd,
    tensor_scatter_add,
    tensor_scatter_sub,
    tensor_scatter_update,
)
from runnel.ops.searching import repeat, searchsorted
from runnel.ops.segments import (
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from runnel.ops.selection import where, where_v2
from runnel.ops.slicing import slice
from runnel.ops.sorted_segments import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
)
from runnel.ops.sorting import argsort, sort
from runnel.ops.sparse.operators import add_operators as _add_operators
from runnel.ops.special_functions import digamma, erf, erfc, lbeta, lgamma, polygamma, zeta
from runnel.ops.splitting import split, unstack
from runnel.ops.strided_slice import strided_slice
from runnel.ops.string_join import string_join
from runnel.ops.strings.characters import string_strip, substr
from runnel.ops.strings.conversions import as_string, decode_base64, encode_base64, string_to_number
from runnel.ops.strings.hash_buckets import (
    string_to_hash_bucket,
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)
from runnel.ops.strings.regular_expressions import regex_replace
from runnel.ops.strings.splitting import reduce_join, string_split
from runnel.ops.tensordot import tensordot
from runnel.ops.transposition import invert_permutation, matrix_transpose, transpose
from runnel.ops.trigonometry import acos, acosh, asin, asinh, atan, atanh, cos, cosh, sin, sinh, tan
from runnel.ops.unique import listdiff, setdiff1d, unique, unique_with_counts
from runnel.ops.zero_safe import div_no_nan
from runnel.variables.creation import (
    disable_resource_variables,
    enable_resource_variables,
    resource_variables_enabled,
    variable_creator_scope,
)
from runnel.variables.get_variable import get_local_variable, get_variable
from runnel.variables.initialization import (
    all_variables,
    assert_variables_initialized,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    initialize_local_variables,
    initialize_variables,
    local_variables,
    local_variables_initializer,
    model_variables,
    moving_average_variables,
    report_uninitialized_variables,
    trainable_variables,
    variables_initializer,
)
from runnel.variables.initializers import Constant as constant_initializer
from runnel.variables.initializers import GlorotNormal as glorot_normal_initializer
from runnel.variables.initializers import GlorotUniform as glorot_uniform_initializer
from runnel.variables.initializers import Ones as ones_initializer
from runnel.variables.initializers import Orthogonal as orthogonal_initializer
from runnel.variables.initializers import RandomNormal as random_normal_initializer
from runnel.variables.initializers import RandomUniform as random_uniform_initializer
from runnel.variables.initializers import TruncatedNormal as truncated_normal_initializer
from runnel.variables.initializers import UniformUnitScaling as uniform_unit_scaling_initializer
from runnel.variables.initializers import VarianceScaling as variance_scaling_initializer
from runnel.variables.initializers import Zeros as zeros_initializer
from runnel.variables.mapped_variables import mapped_variables
from runnel.variables.partitioners import (
    create_partitioned_variables,
    fixed_size_partitioner,
    min_max_variable_partitioner,
    variable_axis_size_partitioner,
)
from runnel.variables.synchronization import VariableAggregation, VariableSynchronization
from runnel.variables.template import make_template
from runnel.variables.variable import Variable
from runnel.variables.variable_scope import (
    AUTO_REUSE,
    VariableScope,
    get_variable_scope,
    no_regularizer,
    variable_op_scope,
    variable_scope,
)
from runnel.version import (
    COMPILER_VERSION,
    GIT_VERSION,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    VERSION,
)

tensor_scatter_nd_add = tensor_scatter_add
tensor_scatter_nd_sub = tensor_scatter_sub
tensor_scatter_nd_update = tensor_scatter_update
no_gradient = NoGradient
OpError = errors.OpError


def is_tensor(x: _Any) -> _builtins.bool:
    """True for a tensor, a variable, or a sparse or ragged tensor."""
    kinds = (Tensor, Variable, SparseTensor, RaggedTensor, IndexedSlices)
    return isinstance(x, kinds) or hasattr(x, "_as_graph_element")


_make_aware(globals(), vars(math))
_add_operators()

# Programs ask which TensorFlow they have; importlib.metadata says which runnel it is.
__version__ = VERSION

_keep_freed_memory_if_asked()
_declare_families(*_FAMILIES)


def __getattr__(name: str) -> _Any:
    """Names whose modules are loaded only when used (``lazy_names``)."""
    if name in _LAZY_NAMESPACES:
        value: _Any = _import_module(f"runnel.{name}")
    elif name in _LAZY_MODULES:
        value = getattr(_import_module(_LAZY_MODULES[name]), name)
    else:
        hint = "docs/tensorflow-names.md lists the names of TensorFlow 1.15 that it has"
        raise AttributeError(f"module 'runnel' has no attribute {name!r} ({hint})")
    globals()[name] = value
    return value


# The modules that are TensorFlow's namespaces, and ours for users; the others are the inside.
_NAMESPACES = {
    "bitwise",
    "debugging",
    "errors",
    "initializers",
    "manip",
    "math",
    "queue",
    "ragged",
    "random",
    "version",
}


def __dir__() -> list[str]:
    """The names for users, those too that are loaded only when used."""
    public = {
        name
        for name, value in globals().items()
        if not name.startswith("_") and (name in _NAMESPACES or not isinstance(value, _ModuleType))
    }
    return sorted(
        {
            *(*public, *_LAZY_NAMESPACES, *_LAZY_MODULES),
            *("__doc__", "__file__", "__name__", "__path__", "__version__"),
        }
    )
