"""Examples of operations that turn bytes into tensors, and of those on whole files."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import tensorflow.compat.v1 as reference
from google.protobuf import descriptor_pb2

from tests.conformance.exchange import Builder, Example, Inputs, Steps, call
from tests.conformance.op_examples.files import new_folder

FLOAT, INT32, STRING, INT64 = 1, 3, 7, 9
train = reference.train


def texts(*values: bytes) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def feature(*values) -> train.Feature:
    if values and isinstance(values[0], bytes):
        return train.Feature(bytes_list=train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def example(**features: train.Feature) -> train.Example:
    return train.Example(features=train.Features(feature=features))


def sequence(context: dict, **lists: list[train.Feature]) -> bytes:
    made = train.SequenceExample(context=train.Features(feature=context))
    for name, items in lists.items():
        made.feature_lists.feature_list[name].feature.extend(items)
    return made.SerializeToString()


LONG = [float(i) / 3 for i in range(100)]
MESSAGES = texts(
    example(
        a=feature(1.0, 2.5), b=feature(7, -8, 9), c=feature(b"x"), d=feature(1.0, 2.0, 3.0, 4.0)
    ).SerializeToString(),
    example(a=feature(-1.0, 0.5), c=feature(b"y", b""), d=feature(9.0, 8.0)).SerializeToString(),
    example(a=feature(*LONG[:2]), b=feature(), d=feature(*LONG)).SerializeToString(),
)
NONE = texts()
DENSE = {"dense_shapes": [[2], [2], [None, 2]]}
DEFAULTS = Inputs([np.zeros(0, np.float32), np.array([5, 6], np.int64), np.float32(-1)])


def whole(op_type: str) -> Example:
    def build(b: Builder) -> Steps:
        return [
            b.op(
                op_type,
                MESSAGES,
                NONE,
                Inputs([b"b", b"c"]),
                Inputs([b"a", b"missing", b"d"]),
                DEFAULTS,
                sparse_types=[INT64, STRING],
                **DENSE,
            )
        ]

    return build


def single(op_type: str) -> Example:
    def build(b: Builder) -> Steps:
        return [
            b.op(
                op_type,
                np.array(message, object),
                DEFAULTS,
                num_sparse=2,
                sparse_keys=["b", "c"],
                dense_keys=["a", "missing", "d"],
                sparse_types=[INT64, STRING],
                **DENSE,
            )
            for message in MESSAGES
        ]

    return build


SEQUENCES = texts(
    sequence(
        {"id": feature(3), "tags": feature(b"p", b"q")},
        words=[feature(1), feature(2, 3)],
        points=[feature(1.0, 2.0), feature(3.0, 4.0)],
    ),
    sequence({"id": feature(4)}, points=[feature(5.0, 6.0)]),
)
LISTS = {
    "context_sparse_types": [STRING],
    "context_dense_shapes": [[]],
    "feature_list_sparse_types": [INT64],
    "feature_list_dense_types": [FLOAT, INT64],
    "feature_list_dense_shapes": [[2], []],
}
NO_ID = Inputs([np.zeros(0, np.int64)])


def one_sequence(op_type: str) -> Example:
    def build(b: Builder) -> Steps:
        return [
            b.op(
                op_type,
                np.array(message, object),
                texts(b"absent"),
                Inputs([b"tags"]),
                Inputs([b"id"]),
                Inputs([b"words"]),
                Inputs([b"points", b"absent"]),
                NO_ID,
                b"",
                **LISTS,
            )
            for message in SEQUENCES
        ]

    return build


def sequences(op_type: str) -> Example:
    def build(b: Builder) -> Steps:
        return [
            b.op(
                op_type,
                SEQUENCES,
                NONE,
                NO_ID,
                feature_list_dense_missing_assumed_empty=["absent"],
                context_sparse_keys=["tags"],
                context_dense_keys=["id"],
                feature_list_sparse_keys=["words"],
                feature_list_dense_keys=["points", "absent"],
                Ncontext_sparse=1,
                Ncontext_dense=1,
                Nfeature_list_sparse=1,
                Nfeature_list_dense=2,
                **LISTS,
            )
        ]

    return build


def files(op_type: str) -> Example:
    def build(b: Builder) -> Steps:
        folder = new_folder()
        names = [f"{folder}/b.txt", f"{folder}/a.txt", f"{folder}/sub/c.bin"]
        writes = [b.op("WriteFile", name, name.encode() + b"\0\xff") for name in names]
        reads = [b.op("ReadFile", name) for name in names]
        found = b.op("MatchingFiles", f"{folder}/*.txt")
        several = b.op("MatchingFiles", texts(f"{folder}/*/c*".encode(), f"{folder}/b*".encode()))
        return [*writes, *reads, found, several]

    return build


CSV = texts(b'1,2.5,"a, ""b""",7', b",,c,", b"3,1e2,,-9")
CSV_DEFAULTS = Inputs(
    [np.array([9], np.int32), np.array([0.5], np.float32), texts(b"z"), np.array([4], np.int64)]
)
NUMBERS = np.arange(4, dtype=np.float32)
JSON = texts(b'{"features": {"feature": {"c": {"bytesList": {"value": ["YQ=="]}}}}}', b"{}")


def serialized(value: np.ndarray, kind: int):
    def example_for(op_type: str) -> Example:
        def build(b: Builder) -> Steps:
            made = b.op("SerializeTensor", value)
            return [made, b.op("ParseTensor", made[0], out_type=kind)]

        return build

    return example_for


def from_json(op_type: str) -> Example:
    """One message may be written in several ways: what is parsed of it is compared."""

    def build(b: Builder) -> Steps:
        made = b.op(op_type, JSON)
        keys = {"sparse_types": [STRING], "dense_shapes": []}
        return [b.op("ParseExample", made[0], NONE, Inputs([b"c"]), Inputs(), Inputs(), **keys)]

    return build


def messages(op_type: str) -> Example:
    """Messages of a type that the attribute describes: written, and read."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto2")
    kind = file.message_type.add(name="Pair")
    for i, (name, of) in enumerate((("number", field.TYPE_INT32), ("text", field.TYPE_STRING))):
        kind.field.add(name=name, number=i + 1, type=of, label=field.LABEL_REPEATED)
    described = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    attrs: dict[str, Any] = {
        "message_type": "p.Pair",
        "field_names": ["number", "text"],
        "descriptor_source": b"bytes://" + described,
    }

    def example(b: Builder) -> Steps:
        values = Inputs([np.array([[5, -6], [7, 0]], np.int32), texts(b"a", b"b").reshape(2, 1)])
        made = b.op("EncodeProto", np.array([[2, 1], [1, 0]], np.int32), values, **attrs)
        return [made, b.op("DecodeProtoV2", made[0], output_types=[INT32, STRING], **attrs)]

    return example


EXAMPLES = {
    "ParseExample": whole,
    "ParseSingleExample": single,
    "ParseSingleSequenceExample": one_sequence,
    "ParseSequenceExample": sequences,
    "DecodeCSV": [
        call(CSV, CSV_DEFAULTS),
        call(texts(b"1;NA;x"), Inputs([[7.0], [8.0], texts(b"")]), field_delim=";", na_value="NA"),
        call(texts(b"1,2,3", b"4,5,6"), Inputs([[0.0], [0]]), select_cols=[0, 2]),
    ],
    "DecodeRaw": [
        call(texts(b"\1\0\2\0", b"\3\0\4\0"), out_type=5),
        call(texts(b"\1\0\2\0"), out_type=5, little_endian=False),
        call(np.array(np.arange(3, dtype=np.complex64).tobytes(), object), out_type=8),
        call(texts(b""), out_type=FLOAT),
    ],
    "DecodePaddedRaw": call(texts(b"\1\0\2\0", b"\3"), 6, out_type=5),
    "DecodeCompressed": [
        call(texts(zlib.compress(b"some"), zlib.compress(b"")), compression_type="ZLIB"),
        call(texts(gzip.compress(b"some")), compression_type="GZIP"),
        call(texts(b"some")),
    ],
    "DecodeJSONExample": from_json,
    "EncodeProto": messages,
    "DecodeProtoV2": messages,
    "SerializeTensor": [serialized(NUMBERS, FLOAT), serialized(texts(b"a", b"\xff"), STRING)],
    "ParseTensor": serialized(NUMBERS.reshape(2, 2), FLOAT),
    "ReadFile": files,
    "WriteFile": files,
    "MatchingFiles": files,
}
