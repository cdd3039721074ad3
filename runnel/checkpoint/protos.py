"""The protocol buffers of checkpoints that TensorBoard does not carry.

Field numbers and types are those of TensorFlow's ``tensor_bundle.proto``, ``tensor_slice.proto``,
``saved_tensor_slice.proto`` and ``checkpoint_state.proto``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from runnel.graph.message_types import (
    DOUBLE,
    ENUM,
    FIXED32,
    INT32,
    INT64,
    MESSAGE,
    STRING,
    MessageTypes,
    many,
    one,
)

_SHAPE, _VERSIONS, _TENSOR = (
    ".tensorboard.TensorShapeProto",
    ".tensorboard.VersionDef",
    ".tensorboard.TensorProto",
)
_TYPE = ".tensorboard.DataType"

_TYPES = MessageTypes(
    "checkpoint",
    {
        "Extent": [one("start", 1, INT64), one("length", 2, INT64)],
        "TensorSliceProto": [many("extent", 1, MESSAGE, "Extent")],
        "BundleHeaderProto": [
            one("num_shards", 1, INT32),
            one("endianness", 2, INT32),
            one("version", 3, MESSAGE, _VERSIONS),
        ],
        "BundleEntryProto": [
            one("dtype", 1, ENUM, _TYPE),
            one("shape", 2, MESSAGE, _SHAPE),
            one("shard_id", 3, INT32),
            one("offset", 4, INT64),
            one("size", 5, INT64),
            one("crc32c", 6, FIXED32),
            many("slices", 7, MESSAGE, "TensorSliceProto"),
        ],
        "SavedSliceMeta": [
            one("name", 1, STRING),
            one("shape", 2, MESSAGE, _SHAPE),
            one("type", 3, ENUM, _TYPE),
            many("slice", 4, MESSAGE, "TensorSliceProto"),
        ],
        "SavedTensorSliceMeta": [
            many("tensor", 1, MESSAGE, "SavedSliceMeta"),
            one("versions", 2, MESSAGE, _VERSIONS),
        ],
        "SavedSlice": [
            one("name", 1, STRING),
            one("slice", 2, MESSAGE, "TensorSliceProto"),
            one("data", 3, MESSAGE, _TENSOR),
        ],
        "SavedTensorSlices": [
            one("meta", 1, MESSAGE, "SavedTensorSliceMeta"),
            one("data", 2, MESSAGE, "SavedSlice"),
        ],
        "CheckpointState": [
            one("model_checkpoint_path", 1, STRING),
            many("all_model_checkpoint_paths", 2, STRING),
            many("all_model_checkpoint_timestamps", 3, DOUBLE),
            one("last_preserved_timestamp", 4, DOUBLE),
        ],
    },
    uses=("tensor_pb2", "tensor_shape_pb2", "types_pb2", "versions_pb2"),
    present=[("Extent", "length")],  # one that is 0 is not one that is absent
)


@cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return _TYPES[name]
