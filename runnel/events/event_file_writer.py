"""Writing event files, on a thread of their own."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import threading
import time
import weakref
from typing import Any

from runnel.records.framing import framed

logger = logging.getLogger("runnel")

_VERSION = "brain.Event:2"


def _open_file(logdir: str, suffix: str) -> Any:
    """A new event file, that begins with its version.

    The name is TensorFlow's; one that exists already, made in the same second, gets a number.
    """
    from tensorboard.compat.proto.event_pb2 import Event

    now = time.time()
    name = os.path.join(logdir, f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}")
    for number in itertools.count():
        try:
            file = open(f"{name}{f'.{number}' if number else ''}{suffix}", "xb")  # noqa: SIM115
            break
        except FileExistsError:
            continue
    file.write(framed(Event(wall_time=now, file_version=_VERSION).SerializeToString()))
    file.flush()
    return file


class _Channel:
    """What the caller and the writing thread share. The condition guards all that changes.

    The thread refers to this and not to the writer, so that a forgotten writer ends its thread.
    """

    def __init__(self, max_queue: int, flush_secs: float) -> None:
        self.changed = threading.Condition()
        self.limit = max_queue if max_queue > 0 else 1 << 62
        # A batch costs the training thread less than many switches to the writing one.
        self.batch = min(max(1, self.limit // 2), 64)
        self.flush_secs = flush_secs
        self.pending: list[bytes] = []
        self.flush_at = 0.0  # the first event is there at once
        self.flushes_wanted = 0
        self.flushes_done = 0
        self.closing = False
        self.failure: BaseException | None = None

    def put(self, event: bytes) -> None:
        """Hands over an event; waits while as many as the limit are pending."""
        with self.changed:
            while len(self.pending) >= self.limit and not self.closing and self.failure is None:
                self.changed.wait()
            if self.failure is not None:
                raise self.failure
            if self.closing:
                return
            self.pending.append(event)
            count = len(self.pending)
            if count == 1 or count == self.batch:
                self.changed.notify_all()

    def flush(self) -> None:
        """Waits until all that was handed over is in the file."""
        with self.changed:
            self.flushes_wanted += 1
            mine = self.flushes_wanted
            self.changed.notify_all()
            while self.flushes_done < mine and self.failure is None:
                self.changed.wait()
            if self.failure is not None:
                raise self.failure

    def close(self) -> None:
        """Lets the thread write what is pending and end."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()

    # The writing thread ----------------------------------------------------------------------

    def take(self) -> tuple[list[bytes], int, bool]:
        """The next batch, for how many wishes to flush it is, and whether it is the last."""
        with self.changed:
            while True:
                now = time.monotonic()
                wanted = self.flushes_wanted > self.flushes_done or self.closing
                due = bool(self.pending) and now >= self.flush_at
                if wanted or due or len(self.pending) >= self.batch:
                    break
                rest = min(self.flush_at - now, threading.TIMEOUT_MAX)
                self.changed.wait(rest if self.pending else None)
            batch, self.pending = self.pending, []
            self.flush_at = now + self.flush_secs
            self.changed.notify_all()
            return batch, self.flushes_wanted, self.closing

    def flushed(self, wishes: int) -> None:
        """Says that so many flushes are done."""
        with self.changed:
            self.flushes_done = wishes
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Says that nothing can be written any more."""
        with self.changed:
            self.failure = error
            self.changed.notify_all()


def _write(channel: _Channel, file: Any) -> None:
    """The thread: writes batches until it is told to end, or fails."""
    try:
        with file:
            ended = False
            while not ended:
                batch, wishes, ended = channel.take()
                file.write(b"".join(map(framed, batch)))
                file.flush()
                channel.flushed(wishes)
    except BaseException as error:  # noqa: BLE001 (raised where the events come from)
        logger.error("No more events are written to %s: %s", file.name, error)
        channel.fail(error)


def _end(channel: _Channel, thread: threading.Thread) -> None:
    channel.close()
    if thread is not threading.current_thread():
        thread.join()


class EventFileWriter:
    """Writes events to a new file in ``logdir``, on a thread of its own.

    Events are in the file at the latest ``flush_secs`` after they were added, when ``flush`` or
    ``close`` has returned, and when the program ends. Adding waits only while more than
    ``max_queue`` events are pending. An error of the file system is raised by the next call.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._logdir = os.fspath(logdir)
        os.makedirs(self._logdir, exist_ok=True)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix or ""
        self._open()

    def _open(self) -> None:
        file = _open_file(self._logdir, self._suffix)
        self.path: str = file.name
        self._channel = channel = _Channel(self._max_queue, self._flush_secs)
        self._thread = threading.Thread(
            target=_write, args=(channel, file), name="runnel-events", daemon=True
        )
        self._thread.start()
        # Also when the program ends: what was added is written.
        self._finish = weakref.finalize(self, _end, channel, self._thread)

    @property
    def closed(self) -> bool:
        return not self._finish.alive

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self._logdir

    def add_event(self, event: Any) -> None:
        """Adds an ``Event``; nothing happens when the writer is closed."""
        if not self.closed:
            self._channel.put(event.SerializeToString())  # now: the caller may change it later

    def flush(self) -> None:
        """Returns when all added events are in the file."""
        if not self.closed:
            self._channel.flush()

    def close(self) -> None:
        """Writes what is pending and closes the file."""
        if not self.closed:
            self._finish()
            if self._channel.failure is not None:
                raise self._channel.failure

    def reopen(self) -> None:
        """After ``close``: further events go to a new file in the same folder."""
        if self.closed:
            self._open()
