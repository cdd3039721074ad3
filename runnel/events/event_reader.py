"""Reading event files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from runnel.graph import errors
from runnel.records.record_reader import RecordReader


class EventReader:
    """The events of a file, in the order in which they were written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._records = RecordReader(path)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        from tensorboard.compat.proto.event_pb2 import Event

        start = self._records.offset
        data = next(self._records)
        try:
            return Event.FromString(data)
        except Exception as error:
            raise errors.DataLossError(
                None, None, f"{self._path}: the record at {start} is no Event"
            ) from error


def summary_iterator(path: str | os.PathLike[str]) -> EventReader:
    """The events of the file ``path``, one after the other.

    The end of the file ends the iteration; the iterator can be asked again when the file has
    grown. Damage is a ``DataLossError``, after all the events before it.

    Example:
        >>> for event in tf.train.summary_iterator(path):
        ...     for value in event.summary.value:
        ...         print(event.step, value.tag, value.simple_value)
    """
    return EventReader(path)
