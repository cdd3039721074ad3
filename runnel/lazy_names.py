"""Public names whose modules are loaded when one of them is used.

``import runnel`` would otherwise take longer with every operation. A graph that names an operation
of theirs has them loaded, too (``graph.registry.declare_families``).
"""

from __future__ import annotations

# Modules that are TensorFlow's namespaces, or ours for users.
NAMESPACES = (
    "app",
    "collectives",
    "compat",
    "config",
    "contrib",
    "data",
    "datasets",
    "debug",
    "distribute",
    "distributions",
    "dtypes",
    "estimator",
    "examples",
    "feature_column",
    "flags",
    "gfile",
    "graph_util",
    "image",
    "io",
    "launch",
    "layers",
    "linalg",
    "logging",
    "lookup",
    "losses",
    "metrics",
    "nest",
    "nn",
    "profiler",
    "python",
    "python_io",
    "saved_model",
    "sets",
    "signal",
    "sparse",
    "spectral",
    "strings",
    "summary",
    "test",
    "timeline",
    "train",
)

# Functions and classes, by the module that has them.
NAMES = {
    "runnel.data.element_structure": ("RaggedTensorSpec",),
    "runnel.logging": ("get_logger",),
    "runnel.ops.data.readers": (
        "FixedLengthRecordReader",
        "IdentityReader",
        "ReaderBase",
        "TFRecordReader",
        "TextLineReader",
        "WholeFileReader",
    ),
    "runnel.ops.decompositions": (
        "self_adjoint_eig",
        "self_adjoint_eigvals",
        "svd",
    ),
    "runnel.ops.files": (
        "matching_files",
        "read_file",
        "write_file",
    ),
    "runnel.ops.histogram": (
        "confusion_matrix",
        "histogram_fixed_width",
        "histogram_fixed_width_bins",
        "unravel_index",
    ),
    "runnel.ops.image.patches": (
        "extract_image_patches",
        "extract_volume_patches",
    ),
    "runnel.ops.linear_algebra": (
        "cholesky",
        "matrix_determinant",
        "matrix_inverse",
        "matrix_solve",
        "matrix_triangular_solve",
    ),
    "runnel.ops.lookup.tables": (
        "initialize_all_tables",
        "tables_initializer",
    ),
    "runnel.ops.matrix_functions": (
        "cholesky_solve",
        "matrix_solve_ls",
    ),
    "runnel.ops.parsing.decode_csv": ("decode_csv",),
    "runnel.ops.parsing.decode_raw": (
        "decode_compressed",
        "decode_raw",
    ),
    "runnel.ops.parsing.feature_kinds": (
        "FixedLenFeature",
        "FixedLenSequenceFeature",
        "SparseFeature",
        "VarLenFeature",
    ),
    "runnel.ops.parsing.parse_example": (
        "parse_example",
        "parse_single_example",
    ),
    "runnel.ops.parsing.parse_sequence_example": ("parse_single_sequence_example",),
    "runnel.ops.qr": ("qr",),
    "runnel.ops.queues.accumulators": (
        "ConditionalAccumulator",
        "ConditionalAccumulatorBase",
        "SparseConditionalAccumulator",
    ),
    "runnel.ops.sampling.random_gamma": ("random_gamma",),
    "runnel.ops.sampling.random_poisson": ("random_poisson",),
    "runnel.ops.serialized_tensor": (
        "decode_json_example",
        "parse_tensor",
        "serialize_tensor",
    ),
    "runnel.ops.space": (
        "batch_to_space",
        "batch_to_space_nd",
        "depth_to_space",
        "space_to_batch",
        "space_to_batch_nd",
        "space_to_depth",
    ),
    "runnel.ops.sparse.arithmetic": (
        "sparse_add",
        "sparse_maximum",
        "sparse_minimum",
    ),
    "runnel.ops.sparse.arranging": (
        "sparse_reorder",
        "sparse_reset_shape",
        "sparse_reshape",
        "sparse_retain",
        "sparse_transpose",
    ),
    "runnel.ops.sparse.dense": (
        "sparse_tensor_to_dense",
        "sparse_to_dense",
        "sparse_to_indicator",
    ),
    "runnel.ops.sparse.edit_distance": ("edit_distance",),
    "runnel.ops.sparse.masking": ("sparse_mask",),
    "runnel.ops.sparse.matmul": ("sparse_tensor_dense_matmul",),
    "runnel.ops.sparse.merging": ("sparse_merge",),
    "runnel.ops.sparse.pieces": (
        "sparse_concat",
        "sparse_fill_empty_rows",
        "sparse_slice",
        "sparse_split",
    ),
    "runnel.ops.sparse.placeholder": ("sparse_placeholder",),
    "runnel.ops.sparse.reducing": (
        "sparse_reduce_max",
        "sparse_reduce_max_sparse",
        "sparse_reduce_sum",
        "sparse_reduce_sum_sparse",
        "sparse_softmax",
    ),
    "runnel.ops.sparse.serialization": (
        "deserialize_many_sparse",
        "serialize_many_sparse",
        "serialize_sparse",
    ),
    "runnel.ops.sparse_segments": (
        "sparse_segment_mean",
        "sparse_segment_sqrt_n",
        "sparse_segment_sum",
    ),
    "runnel.ops.spectral.fourier": (
        "fft",
        "fft2d",
        "fft3d",
        "ifft",
        "ifft2d",
        "ifft3d",
    ),
    "runnel.runtime.explain.explain_placement": ("explain_placement",),
    "runnel.sessions": (
        "InteractiveSession",
        "Session",
        "register_session_run_conversion_functions",
    ),
    "tensorboard.compat.proto.attr_value_pb2": (
        "AttrValue",
        "NameAttrList",
    ),
    "tensorboard.compat.proto.config_pb2": (
        "ConfigProto",
        "GPUOptions",
        "GraphOptions",
        "OptimizerOptions",
        "RunMetadata",
        "RunOptions",
    ),
    "tensorboard.compat.proto.event_pb2": (
        "Event",
        "LogMessage",
        "SessionLog",
    ),
    "tensorboard.compat.proto.graph_pb2": ("GraphDef",),
    "tensorboard.compat.proto.histogram_pb2": ("HistogramProto",),
    "tensorboard.compat.proto.meta_graph_pb2": (
        "MetaGraphDef",
        "TensorInfo",
    ),
    "tensorboard.compat.proto.node_def_pb2": ("NodeDef",),
    "tensorboard.compat.proto.summary_pb2": (
        "Summary",
        "SummaryMetadata",
    ),
}

MODULES = {name: module for module, names in NAMES.items() for name in names}
"""The module of each name."""

FAMILIES = (
    "runnel.ops.send_recv",
    "runnel.ops.training_updates",
    "runnel.nn",
    "runnel.ops.checkpoints",
    "runnel.ops.summaries",
    "runnel.ops.gather_tree",
    "runnel.ops.ragged.ragged_variants",
    "runnel.ops.sparse.sets",
    "runnel.ops.strings.feature_crosses",
    "runnel.ops.strings.unicode",
    "runnel.ops.strings.unicode_characters",
    *(module for module in NAMES if module.startswith("runnel.ops.")),
    "runnel.ops.data.collecting_ops",
    "runnel.ops.data.input_state_ops",
    "runnel.ops.data.iterator_ops",
    "runnel.collectives",
    "runnel.layers",
    "runnel.linalg",
    "runnel.ops.image.projective_transform",
    "runnel.ops.image.scale_and_translate",
    "runnel.image",
)
"""The modules that register operations, in the order in which a missed one is looked for."""
