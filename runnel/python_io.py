"""``tf.python_io``: record files, written and read without a graph."""

from runnel.records.compression import TFRecordCompressionType, TFRecordOptions
from runnel.records.record_reader import tf_record_iterator, tf_record_random_reader
from runnel.records.record_writer import TFRecordWriter

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "tf_record_iterator",
    "tf_record_random_reader",
]


def __dir__() -> list[str]:
    return __all__
