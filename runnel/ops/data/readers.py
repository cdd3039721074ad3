"""Readers: records of the files whose names come out of a queue."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import UnimplementedError
from runnel.graph.operation import Operation, Tensor
from runnel.ops.data import reader_ops
from runnel.ops.queues.queues import QueueBase
from runnel.records.compression import TFRecordOptions


def _queue_ref(queue: Any) -> Tensor:
    return queue.queue_ref if isinstance(queue, QueueBase) else queue


class ReaderBase:
    """Gives records, one each time; takes the next name out of the queue when a file ends."""

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record, and before it a key that says where it stands.

        Example:
            >>> names = tf.train.string_input_producer(["a.csv", "b.csv"])
            >>> key, line = tf.TextLineReader().read(names)
        """
        key, value = reader_ops.read_op(self._reader_ref, _queue_ref(queue), name=name)
        return key, value

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Up to ``num_records`` records of one file, and their keys."""
        count = convert_to_tensor(num_records, dtypes.int64)
        keys, values = reader_ops.read_up_to_op(
            self._reader_ref, _queue_ref(queue), count, name=name
        )
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records it has given."""
        return reader_ops.produced_op(self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files it has read to their end."""
        return reader_ops.completed_op(self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """A string that says where it stands."""
        return reader_ops.serialize_op(self._reader_ref, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Has it go on where ``state`` says."""
        return reader_ops.restore_op(self._reader_ref, state, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """Has it begin anew."""
        return reader_ops.reset_op(self._reader_ref, name=name)


class WholeFileReader(ReaderBase):
    """Whole files: the key is the name, the value what is in it."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(reader_ops.whole_file_op(name=name), supports_serialize=True)


class IdentityReader(ReaderBase):
    """The names themselves, as keys and values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(reader_ops.identity_op(name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """The lines of text files, without their ends."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        made = reader_ops.text_line_op(skip_header_lines=skip_header_lines or 0, name=name)
        super().__init__(made)


class FixedLengthRecordReader(ReaderBase):
    """Pieces of a fixed length, between a header and a footer that are left out."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        made = reader_ops.fixed_length_op(
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0,
            encoding=encoding or "",
            name=name,
        )
        super().__init__(made)


class TFRecordReader(ReaderBase):
    """The records of record files."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(reader_ops.tf_record_op(compression_type=kind, name=name))


class LMDBReader(ReaderBase):
    """Records of an LMDB database: not available; it says what to do instead."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        raise UnimplementedError(
            None,
            None,
            "tf.LMDBReader: LMDB databases are not read here. The package lmdb reads one; write "
            "its values with tf.python_io.TFRecordWriter and read those with tf.TFRecordReader.",
        )
