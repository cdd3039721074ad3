"""``tf.train.ServerDef``: TensorFlow's ``tensorflow_server.proto``, which TensorBoard lacks."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, message_factory
from tensorboard.compat.proto import cluster_pb2, config_pb2

_STRING, _INT32, _MESSAGE = 9, 5, 11


def _make() -> type:
    file = descriptor_pb2.FileDescriptorProto(
        name="runnel/tensorflow_server.proto",
        package="runnel",
        syntax="proto3",
        dependency=[cluster_pb2.DESCRIPTOR.name, config_pb2.DESCRIPTOR.name],
    )
    message = file.message_type.add(name="ServerDef")
    fields = [
        ("cluster", 1, _MESSAGE, ".tensorboard.ClusterDef"),
        ("job_name", 2, _STRING, None),
        ("task_index", 3, _INT32, None),
        ("default_session_config", 4, _MESSAGE, ".tensorboard.ConfigProto"),
        ("protocol", 5, _STRING, None),
        ("port", 6, _INT32, None),
    ]
    for name, number, kind, of in fields:
        message.field.add(name=name, number=number, type=kind, label=1, type_name=of)
    pool = cluster_pb2.DESCRIPTOR.pool
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("runnel.ServerDef"))


ServerDef = _make()
