"""Writing record files."""

from __future__ import annotations

import os
import zlib
from typing import Any

from runnel.gfile import open_binary
from runnel.graph import errors
from runnel.records.compression import TFRecordOptions
from runnel.records.framing import framed


class TFRecordWriter:
    """Writes records to a file, which it makes anew.

    Example:
        >>> with tf.python_io.TFRecordWriter("train.tfrecord") as writer:
        ...     writer.write(example.SerializeToString())
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(compression_type=options)
        self._path = os.fspath(path)
        self._compressor = options.compressor()
        self._file: Any = open_binary(self._path, "wb")

    def write(self, record: bytes) -> None:
        """Appends a record."""
        if isinstance(record, str):
            record = record.encode()
        self._append(framed(bytes(memoryview(record))))

    def flush(self) -> None:
        """Has what was written reach the file."""
        if self._compressor is not None:
            self._opened().write(self._compressor.flush(zlib.Z_PARTIAL_FLUSH))
        self._opened().flush()

    def _append(self, content: bytes) -> None:
        if self._compressor is not None:
            content = self._compressor.compress(content)
        self._opened().write(content)

    def _opened(self) -> Any:
        if self._file is None:
            raise errors.FailedPreconditionError(
                None, None, f"{self._path}: Writer is closed. Make another one to write more."
            )
        return self._file

    def close(self) -> None:
        """Completes the file; nothing can be written afterwards."""
        file = self._opened()
        if self._compressor is not None:
            file.write(self._compressor.flush())
        self._file = None
        file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
