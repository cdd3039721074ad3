"""``tf.io``: files, records, and what stands in them."""

from runnel import gfile
from runnel.graph_io import write_graph
from runnel.ops.files import matching_files, read_file, write_file
from runnel.ops.image.decode_image import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
)
from runnel.ops.image.jpeg import (
    decode_and_crop_jpeg,
    encode_jpeg,
    extract_jpeg_shape,
    is_jpeg,
)
from runnel.ops.parsing.decode_csv import decode_csv
from runnel.ops.parsing.decode_raw import decode_compressed, decode_raw
from runnel.ops.parsing.feature_kinds import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
)
from runnel.ops.parsing.parse_example import parse_example, parse_single_example
from runnel.ops.parsing.parse_sequence_example import (
    parse_sequence_example,
    parse_single_sequence_example,
)
from runnel.ops.parsing.protos import decode_proto, encode_proto
from runnel.ops.queues.queues import PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
from runnel.ops.serialized_tensor import decode_json_example, parse_tensor, serialize_tensor
from runnel.ops.sparse.serialization import (
    deserialize_many_sparse,
    serialize_many_sparse,
    serialize_sparse,
)
from runnel.ops.strings.conversions import decode_base64, encode_base64
from runnel.records.compression import TFRecordCompressionType, TFRecordOptions
from runnel.records.record_reader import tf_record_iterator, tf_record_random_reader
from runnel.records.record_writer import TFRecordWriter
from runnel.train.input_producers import match_filenames_once

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_proto",
    "decode_raw",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_proto",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "tf_record_iterator",
    "tf_record_random_reader",
    "write_file",
    "write_graph",
]


def __dir__() -> list[str]:
    return __all__
