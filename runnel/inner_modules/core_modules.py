"""The modules inside ``tensorflow.core``: protocol buffers, by where TensorFlow has their files."""

from __future__ import annotations

_TENSORBOARD = {
    "framework": (
        "allocation_description attr_value cost_graph function graph node_def op_def "
        "resource_handle step_stats summary tensor tensor_description tensor_shape types variable "
        "versions"
    ),
    "profiler": "tfprof_log",
    "protobuf": "cluster config debug meta_graph rewriter_config saver struct",
    "util": "event",
}
"""The files that TensorBoard carries."""

MODULES: dict[str, tuple[str, ...]] = {
    **{
        f"{folder}.{file}_pb2": (f"tensorboard.compat.proto.{file}_pb2",)
        for folder, files in _TENSORBOARD.items()
        for file in files.split()
    },
    # Later versions of TensorFlow moved histograms out of the file of summaries.
    "framework.summary_pb2": (
        "tensorboard.compat.proto.summary_pb2",
        "tensorboard.compat.proto.histogram_pb2",
    ),
    "example.example_pb2": ("runnel.records.example_protos",),
    "example.feature_pb2": ("runnel.records.example_protos",),
}
"""The modules that have the messages of each."""
