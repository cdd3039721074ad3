"""Datasets of what is in files."""

from __future__ import annotations

from typing import Any

from runnel.data.dataset import Dataset
from runnel.data.element_structure import TensorPlace
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.ops.data import dataset_ops

_STRING = TensorPlace(dtypes.string, ())


def _names(filenames: Any) -> Tensor:
    return convert_to_tensor(filenames, dtypes.string, name="filenames")


def _over_files(filenames: Any, make: Any) -> Dataset:
    """What ``make`` gives of names of files, or of each name that a dataset of them gives."""
    if isinstance(filenames, Dataset):
        return filenames.flat_map(lambda name: Dataset(make(name), _STRING))
    before = len(get_default_graph().get_operations())
    made = Dataset(make(_names(filenames)), _STRING)
    # TensorFlow has the names, flat, in a dataset, and takes the files of each: 5 operations.
    skip_op_ids(5 - (len(get_default_graph().get_operations()) - before))
    return made


class TextLineDataset(Dataset):
    """The lines of text files.

    Example:
        >>> tf.data.TextLineDataset(["a.txt", "b.txt"]).skip(1)
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None
    ) -> None:
        made = _over_files(
            filenames,
            lambda names: dataset_ops.lines_op(
                names,
                convert_to_tensor(compression_type or "", dtypes.string),
                convert_to_tensor(buffer_size or 256 * 1024, dtypes.int64),
            ),
        )
        super().__init__(made._variant_tensor, _STRING)


class TFRecordDataset(Dataset):
    """The records of record files.

    Example:
        >>> tf.data.TFRecordDataset("train.tfrecord").map(parse)
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        if num_parallel_reads is not None:  # prefetch reads ahead
            skip_op_ids(5)
        made = _over_files(
            filenames,
            lambda names: dataset_ops.records_op(
                names,
                convert_to_tensor(compression_type or "", dtypes.string),
                convert_to_tensor(buffer_size or 256 * 1024, dtypes.int64),
            ),
        )
        super().__init__(made._variant_tensor, _STRING)


class FixedLengthRecordDataset(Dataset):
    """Pieces of a fixed length of files, between a header and a footer that are left out."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
    ) -> None:
        sizes = [header_bytes or 0, record_bytes, footer_bytes or 0, buffer_size or 256 * 1024]
        made = _over_files(
            filenames,
            lambda names: dataset_ops.pieces_v2_op(
                names,
                *[convert_to_tensor(size, dtypes.int64) for size in sizes],
                convert_to_tensor(compression_type or "", dtypes.string),
            ),
        )
        super().__init__(made._variant_tensor, _STRING)
