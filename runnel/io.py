"""``tf.io``: files, records, and what stands in them."""

from runnel import gfile
from runnel.graph_io import write_graph
from runnel.ops.queues.queues import PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
from runnel.records.compression import TFRecordCompressionType, TFRecordOptions
from runnel.records.record_reader import tf_record_iterator
from runnel.records.record_writer import TFRecordWriter

__all__ = [
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "gfile",
    "tf_record_iterator",
    "write_graph",
]


def __dir__() -> list[str]:
    return __all__
