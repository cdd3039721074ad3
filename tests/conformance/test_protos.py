"""Fields of protocol buffers, read and written: the values of TensorFlow, and what both refuse."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "double": 1.5,
    "float": 0.25,
    "int64": -3,
    "uint64": 2**63 + 5,
    "int32": -3,
    "fixed64": 3,
    "fixed32": 3,
    "bool": True,
    "string": "text",
    "bytes": b"\xff\0",
    "uint32": 2**32 - 1,
    "sfixed32": -3,
    "sfixed64": -3,
    "sint32": -3,
    "sint64": -3,
}
DTYPES = ("float32", "float64", "int32", "int64", "uint32", "uint64", "bool", "string")


@functools.cache
def described():
    """A ``FileDescriptorSet`` with a message that has fields of every type."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto2")
    message = file.message_type.add(name="M")
    choice = message.enum_type.add(name="E")
    choice.value.add(name="A", number=0)
    choice.value.add(name="B", number=5)
    kinds = [*((name, None) for name in SCALARS), ("enum", ".t.M.E"), ("message", ".t.M")]
    for kind, of in kinds:
        for label in ("OPTIONAL", "REPEATED"):
            field = message.field.add(name=f"{label.lower()}_{kind}", type_name=of)
            field.number = len(message.field)
            field.type = getattr(Field, f"TYPE_{kind.upper()}")
            field.label = getattr(Field, f"LABEL_{label}")
    for name, kind, default in (("seven", "INT32", "7"), ("word", "STRING", "default")):
        field = message.field.add(name=name, label=Field.LABEL_OPTIONAL, default_value=default)
        field.type, field.number = getattr(Field, f"TYPE_{kind}"), len(message.field)
    packed = message.field.add(name="packed", type=Field.TYPE_INT32, label=Field.LABEL_REPEATED)
    packed.number = len(message.field)
    packed.options.packed = True
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


@functools.cache
def contents():
    """A full message, and an empty one."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described()).file:
        pool.AddSerializedFile(file.SerializeToString())
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))
    full = kind(packed=[1, 2, 3], optional_enum=5, repeated_enum=[0, 5])
    for name, value in SCALARS.items():
        setattr(full, f"optional_{name}", value)
        getattr(full, f"repeated_{name}").extend([value] * 2)
    full.optional_message.seven = 8
    full.repeated_message.add().word = "in"
    full.repeated_message.add()
    return full.SerializeToString(), kind().SerializeToString()


def decode(names, types, texts=None, **options):
    """Of a frontend, the fetches that decode messages."""
    given = {"message_type": "t.M", "descriptor_source": b"bytes://" + described()} | options

    def build(tf):
        return list(
            tf.io.decode_proto(
                list(contents()) if texts is None else texts,
                field_names=names,
                output_types=[getattr(tf, "bool" if t == "bool" else t) for t in types],
                **given,
            )
        )

    return build


def encode(sizes, values, names, **options):
    """Of a frontend, the fetch that encodes messages."""
    given = {"message_type": "t.M", "descriptor_source": b"bytes://" + described()} | options
    return lambda tf: tf.io.encode_proto(sizes, values, names, **given)


def outcome(tf, build):
    """What a step fetches, or the name of the error."""
    with tf.Graph().as_default(), tf.Session() as sess:
        try:
            return sess.run(build(tf))
        except tf.errors.OpError as error:
            return type(error).__name__


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [*SCALARS, "enum", "message"])
def test_every_type_of_field_is_read_as_types_of_tensors(kind, dtype):
    build = decode([f"optional_{kind}", f"repeated_{kind}"], [dtype, dtype])
    assert_same_values(*[outcome(tf, build) for tf in (runnel, reference)])


CASES = {
    "defaults": decode(["seven", "word"], ["int32", "string"]),
    "packed": decode(["packed"], ["int32"]),
    "a matrix of messages": decode(
        ["packed", "seven"], ["int32", "int64"], [list(contents()), [contents()[0]] * 2]
    ),
    "one message": decode(["packed", "seven"], ["int32", "int32"], contents()[0]),
    "no field": decode([], []),
    "text": decode(
        ["packed", "optional_int32"],
        ["int32", "int32"],
        ["optional_int32: 4 packed: [1, 2]", ""],
        message_format="text",
    ),
    "text that is none": decode(["packed"], ["int32"], ["packed: x"], message_format="text"),
    "another format": decode(["packed"], ["int32"], message_format="json"),
    "bytes that are none": decode(["packed"], ["int32"], [b"\xff\xff"]),
    "bytes that are cut": decode(["seven"], ["int32"], [contents()[0][:-1]]),
    "sanitized": decode(["packed", "seven"], ["int32", "int32"], sanitize=True),
    "an unknown field": decode(["nothing"], ["int32"]),
    "an unknown message": decode(["packed"], ["int32"], message_type="t.N"),
    "one type too many": decode(["packed"], ["int32", "int32"]),
    "no file": decode(["packed"], ["int32"], descriptor_source="/nowhere"),
    "TensorFlow's own": decode(
        ["features"],
        ["string"],
        [b"\n\x07\n\x05\n\x01a\x12\x00"],
        message_type="tensorflow.Example",
        descriptor_source="local://",
    ),
    "written": encode(
        [[3, 1], [0, 0]],
        [[[1, 2, 3], [4, 5, 6]], [[7], [8]]],
        ["packed", "optional_int32"],
    ),
    "written texts": encode([[2]], [[["x", "y"]]], ["repeated_string"]),
    "written, no valid text": encode([[1]], [[[b"\xff"]]], ["repeated_string"]),
    "written messages": encode([[1]], [[[contents()[0]]]], ["optional_message"]),
    "written twice": encode([[2]], [[[1, 2]]], ["optional_int32"]),
    "written numbers": encode(
        [[1, 1, 1]],
        [np.array([[1.5]]), np.array([[-2]]), np.array([[True]])],
        ["optional_double", "optional_sint64", "optional_bool"],
    ),
    "written as a wider type": encode([[1]], [np.array([[5]])], ["optional_int32"]),
    "more than there are": encode([[4]], [[[1, 2]]], ["packed"]),
    "an unknown field, written": encode([[1]], [[[1]]], ["nothing"]),
    "another type, written": encode([[1]], [[[1.0]]], ["packed"]),
    "another shape, written": encode([[1], [1]], [[[1]]], ["packed"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_is_the_same(name):
    assert_same_values(*[outcome(tf, CASES[name]) for tf in (runnel, reference)])


def test_a_file_of_descriptions_is_read(tmp_path):
    path = tmp_path / "descriptions"
    path.write_bytes(described())
    build = decode(["packed"], ["int32"], descriptor_source=str(path))
    assert_same_values(*[outcome(tf, build) for tf in (runnel, reference)])
