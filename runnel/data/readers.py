"""Datasets of what is in files."""

from __future__ import annotations

from typing import Any

from runnel.data.dataset import AUTOTUNE, Dataset
from runnel.data.element_structure import TensorSpec
from runnel.data.interleaving import parallel_interleave
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.ops.array_shape import reshape
from runnel.ops.data import dataset_ops

_STRING = TensorSpec((), dtypes.string)


def _names(filenames: Any) -> Tensor:
    return convert_to_tensor(filenames, dtypes.string, name="filenames")


def _over_files(filenames: Any, make: Any, parallel_reads: Any = None) -> Dataset:
    """What ``make`` gives of names of files, or of each name that a dataset of them gives.

    Of several files that are read in parallel the records come in turn.
    """
    if parallel_reads is not None:
        return _in_turn(filenames, make, parallel_reads)
    if isinstance(filenames, Dataset):
        return filenames.flat_map(lambda name: Dataset(make(name), _STRING))
    before = len(get_default_graph().get_operations())
    made = Dataset(make(_names(filenames)), _STRING)
    # TensorFlow has the names, flat, in a dataset, and takes the files of each: 5 operations.
    skip_op_ids(5 - (len(get_default_graph().get_operations()) - before))
    return made


def _in_turn(filenames: Any, make: Any, count: Any) -> Dataset:
    """The records of so many files at a time, one of each in turn, read by a thread for each."""
    if not isinstance(filenames, Dataset):
        filenames = Dataset.from_tensor_slices(reshape(_names(filenames), [-1]))
    if isinstance(count, int) and count == AUTOTUNE:
        return filenames.interleave(
            lambda name: Dataset(make(name), _STRING), num_parallel_calls=count
        )
    return filenames.apply(parallel_interleave(lambda name: Dataset(make(name), _STRING), count))


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
    """The records of record files: of one after the other, or of several in turn.

    Threads read ``num_parallel_reads`` files at a time, and one record of each is given in turn.

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
        made = _over_files(
            filenames,
            lambda names: dataset_ops.records_op(
                names,
                convert_to_tensor(compression_type or "", dtypes.string),
                convert_to_tensor(buffer_size or 256 * 1024, dtypes.int64),
            ),
            num_parallel_reads,
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
