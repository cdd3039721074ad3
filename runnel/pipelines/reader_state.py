"""Readers at run time: they take names of files out of a queue, and give what is in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runnel.gfile import open_binary
from runnel.graph.errors import DataLossError, InvalidArgumentError, UnimplementedError
from runnel.graph.message_types import BYTES, INT64, MessageTypes, one
from runnel.pipelines.files import Lines, Pieces
from runnel.pipelines.mapping import LOOK_SECONDS
from runnel.pipelines.watching import INPUT_TIMES
from runnel.queues.queue import Queue
from runnel.queues.waiter import WAITING, Outputs, Waiter
from runnel.records.record_reader import RecordReader

Record = tuple[bytes, bytes]
"""A key, which says where the record stands, and the record."""
Open = Callable[[bytes], Iterator[Record]]


class _Arrival(Waiter):
    """Waits for an element of a queue on behalf of a reader."""

    __slots__ = ("_event", "_made", "_error")

    def __init__(self) -> None:
        super().__init__()
        self._event = threading.Event()
        self._made: Callable[[], Outputs] | None = None
        self._error: Exception | None = None

    def complete(self, make: Callable[[], Outputs]) -> None:
        self._made = make
        self._event.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._event.set()

    def outputs(self, check: Callable[[], None]) -> Outputs:
        """What arrives; ``check`` raises an error when the step has to stop."""
        while not self._event.wait(LOOK_SECONDS):
            try:
                check()
            except BaseException:
                if self.place is None or self.place.cancel(self):
                    raise
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made()


class ReaderState:
    """A reader that steps share."""

    def __init__(self, name: str, open_work: Open, is_single: bool) -> None:
        self.name = name
        self._open = open_work
        self._is_single = is_single
        """Whether a file is one record: then its end is known, and the state can be saved."""
        # Held while a record is read, and while the queue is waited for.
        self._lock = threading.Lock()
        self._gone: Exception | None = None
        self._clear()

    def _clear(self) -> None:
        self._records: Iterator[Record] | None = None
        self._work = b""
        self._given = 0
        """How many records of this file it has given."""
        self._started = 0
        self.finished = 0
        """How many files it has read to their end."""
        self.produced = 0
        """How many records it has given."""

    def read(self, queue: Queue, check: Callable[[], None], most: int = 1) -> list[Record]:
        """The next record, or up to ``most`` of the same file."""
        if most < 1:
            raise InvalidArgumentError(None, None, f"num_records must be positive, not {most}")
        start = time.perf_counter()
        self._acquire(check)
        try:
            found: list[Record] = []
            while not found:
                if self._records is None:
                    self._begin(queue, check)
                assert self._records is not None
                while len(found) < most and self._records is not None:
                    record = next(self._records, None)
                    if record is not None:
                        found.append(record)
                        self._given += 1
                    if record is None or self._is_single:
                        self._records = None
                        self.finished += 1
            self.produced += len(found)
            return found
        finally:
            self._lock.release()
            INPUT_TIMES.add_wait(time.perf_counter() - start, f"reader {self.name}")

    def _begin(self, queue: Queue, check: Callable[[], None]) -> None:
        """Takes the next name out of the queue."""
        arrival = _Arrival()
        taken = queue.dequeue(arrival)
        outputs = arrival.outputs(check) if taken is WAITING else taken
        if len(outputs) != 1:
            raise InvalidArgumentError(
                None, None, f"The elements of the queue must be single strings, not {outputs!r}"
            )
        self._work, self._given = np.asarray(outputs[0]).item(), 0
        self._started += 1
        try:
            self._records = self._open(self._work)
        except BaseException:
            self.finished += 1
            raise

    def _acquire(self, check: Callable[[], None]) -> None:
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            check()
        if self._gone is not None:
            self._lock.release()
            raise self._gone

    def reset(self, check: Callable[[], None]) -> None:
        """Begins anew."""
        self._acquire(check)
        try:
            self._clear()
        finally:
            self._lock.release()

    def serialized(self, check: Callable[[], None]) -> bytes:
        """Where it stands, as TensorFlow writes it."""
        self._require_state("SerializeState")
        self._acquire(check)
        try:
            return _MESSAGES["ReaderBaseState"](
                work_started=self._started,
                work_finished=self.finished,
                num_records_produced=self.produced,
                current_work=self._work if self._records is not None else b"",
            ).SerializeToString()
        finally:
            self._lock.release()

    def restore(self, state: bytes, check: Callable[[], None]) -> None:
        """Goes on where another stood."""
        from google.protobuf.message import DecodeError

        self._require_state("RestoreState")
        try:
            found = _MESSAGES["ReaderBaseState"].FromString(state)
        except DecodeError:
            raise InvalidArgumentError(
                None, None, f"Could not parse state for {self.name}: {state[:60]!r}"
            ) from None
        if min(found.work_started, found.work_finished, found.num_records_produced) < 0:
            raise InvalidArgumentError(None, None, f"Unexpected negative value in {found}")
        self._acquire(check)
        try:
            self._clear()
            self._started, self.finished = found.work_started, found.work_finished
            self.produced, self._work = found.num_records_produced, found.current_work
            if self._started != self.finished:
                self._records = self._open(self._work)
        finally:
            self._lock.release()

    def position(self, check: Callable[[], None]) -> list[Any]:
        """Where it stands, whatever it reads: :meth:`serialized` is what TensorFlow can say."""
        self._acquire(check)
        try:
            is_open = self._records is not None
            return [self._started, self.finished, self.produced, self._work, is_open, self._given]
        finally:
            self._lock.release()

    def move_to(self, position: list[Any], check: Callable[[], None]) -> None:
        """Goes on where another stood; the file that it was in is read up to there."""
        self._acquire(check)
        try:
            self._clear()
            self._started, self.finished, self.produced, self._work, is_open, given = position
            if not is_open:
                return
            records, self._given = self._open(self._work), given
            for number in range(given):
                if next(records, None) is None:
                    raise DataLossError(
                        None,
                        None,
                        f"{self._work!r} has {number} records now; {given} had been read "
                        "of it when the checkpoint was saved: it is another file",
                    )
            self._records = records
        finally:
            self._lock.release()

    def _require_state(self, what: str) -> None:
        if not self._is_single:
            raise UnimplementedError(
                None, None, f"Reader {what}: only those of whole files and of names have a state."
            )

    def abandon(self, error: Exception) -> None:
        """It is gone with its session."""
        self._gone = error


_MESSAGES = MessageTypes(
    "reader",
    {
        "ReaderBaseState": [
            one("work_started", 1, INT64),
            one("work_finished", 2, INT64),
            one("num_records_produced", 3, INT64),
            one("current_work", 4, BYTES),
        ]
    },
)


# What is in a file ------------------------------------------------------------------------------


def identity(work: bytes) -> Iterator[Record]:
    """The name itself."""
    yield work, work


def whole_file(work: bytes) -> Iterator[Record]:
    """All of the file."""
    with open_binary(work) as file:
        content = file.read()
    return iter([(work, content)])


def lines(skipped: int) -> Open:
    """The lines of a file, after its first ``skipped``."""

    def opened(work: bytes) -> Iterator[Record]:
        found = Lines([], "").open(work.decode())
        numbered = enumerate(found, 1)
        return ((work + b":%d" % number, line) for number, line in numbered if number > skipped)

    return opened


def records(compression: str) -> Open:
    """The records of a record file."""

    def opened(work: bytes) -> Iterator[Record]:
        return _records(RecordReader(work.decode(), compression), work)

    return opened


def _records(reader: RecordReader, work: bytes) -> Iterator[Record]:
    with reader:
        while True:
            offset = reader.offset
            record = next(reader, None)
            if record is None:
                return
            yield work + b":%d" % offset, record


def pieces(header: int, length: int, footer: int, hop: int, compression: str) -> Open:
    """Pieces of a fixed length, each ``hop`` bytes after the one before (0: its length)."""
    if hop < 0:
        raise InvalidArgumentError(None, None, f"hop_bytes must be >= 0 not {hop}")
    described = Pieces([], header, length, footer, compression, hop or length)

    def opened(work: bytes) -> Iterator[Record]:
        found = described.open(work.decode())
        return ((work + b":%d" % number, piece) for number, piece in enumerate(found))

    return opened
