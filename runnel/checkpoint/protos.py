"""The protocol buffers of checkpoints that TensorBoard does not carry.

Field numbers and types are those of TensorFlow's ``tensor_bundle.proto``, ``tensor_slice.proto``,
``saved_tensor_slice.proto`` and ``checkpoint_state.proto``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

_SHAPE, _VERSIONS, _TENSOR = (
    ".tensorboard.TensorShapeProto",
    ".tensorboard.VersionDef",
    ".tensorboard.TensorProto",
)
_TYPE = ".tensorboard.DataType"
_OPTIONAL, _REPEATED = 1, 3
_DOUBLE, _INT64, _INT32, _FIXED32, _STRING, _MESSAGE, _ENUM = 1, 3, 5, 7, 9, 11, 14

_Field = tuple[str, int, int, str | None, int]


def _one(name: str, number: int, kind: int, of: str | None = None) -> _Field:
    return name, number, kind, of, _OPTIONAL


def _many(name: str, number: int, kind: int, of: str | None = None) -> _Field:
    return name, number, kind, of, _REPEATED


_MESSAGES: dict[str, list[_Field]] = {
    "Extent": [_one("start", 1, _INT64), _one("length", 2, _INT64)],
    "TensorSliceProto": [_many("extent", 1, _MESSAGE, "Extent")],
    "BundleHeaderProto": [
        _one("num_shards", 1, _INT32),
        _one("endianness", 2, _INT32),
        _one("version", 3, _MESSAGE, _VERSIONS),
    ],
    "BundleEntryProto": [
        _one("dtype", 1, _ENUM, _TYPE),
        _one("shape", 2, _MESSAGE, _SHAPE),
        _one("shard_id", 3, _INT32),
        _one("offset", 4, _INT64),
        _one("size", 5, _INT64),
        _one("crc32c", 6, _FIXED32),
        _many("slices", 7, _MESSAGE, "TensorSliceProto"),
    ],
    "SavedSliceMeta": [
        _one("name", 1, _STRING),
        _one("shape", 2, _MESSAGE, _SHAPE),
        _one("type", 3, _ENUM, _TYPE),
        _many("slice", 4, _MESSAGE, "TensorSliceProto"),
    ],
    "SavedTensorSliceMeta": [
        _many("tensor", 1, _MESSAGE, "SavedSliceMeta"),
        _one("versions", 2, _MESSAGE, _VERSIONS),
    ],
    "SavedSlice": [
        _one("name", 1, _STRING),
        _one("slice", 2, _MESSAGE, "TensorSliceProto"),
        _one("data", 3, _MESSAGE, _TENSOR),
    ],
    "SavedTensorSlices": [
        _one("meta", 1, _MESSAGE, "SavedTensorSliceMeta"),
        _one("data", 2, _MESSAGE, "SavedSlice"),
    ],
    "CheckpointState": [
        _one("model_checkpoint_path", 1, _STRING),
        _many("all_model_checkpoint_paths", 2, _STRING),
        _many("all_model_checkpoint_timestamps", 3, _DOUBLE),
        _one("last_preserved_timestamp", 4, _DOUBLE),
    ],
}


@cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_file().message_types_by_name[name])


@cache
def _file() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2, versions_pb2

    used = [m.DESCRIPTOR for m in (tensor_pb2, tensor_shape_pb2, types_pb2, versions_pb2)]
    file = descriptor_pb2.FileDescriptorProto(
        name="runnel/checkpoint.proto",
        package="runnel.checkpoint",
        syntax="proto3",
        dependency=[found.name for found in used],
    )
    for title, fields in _MESSAGES.items():
        described = file.message_type.add(name=title)
        for name, number, kind, of, label in fields:
            field = described.field.add(name=name, number=number, type=kind, label=label)
            if of is not None:
                field.type_name = of if of.startswith(".") else f".runnel.checkpoint.{of}"
            elif title == "Extent" and name == "length":  # one that is 0 is not one that is absent
                field.proto3_optional = True
                field.oneof_index = 0
                described.oneof_decl.add(name="has_length")
    return descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
