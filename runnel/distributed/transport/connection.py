"""A connection: messages with values, in order, both ways.

One thread reads, and hands each message to ``receive``. Whoever sends writes as much as the network
takes at once; the rest is written by the sender itself, which waits, or, where it must not wait, by
a thread that the connection has for that. So two sides that send much to each other cannot block
each other, and a slow reader holds up who sends to it.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runnel.distributed import wire
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.transport.shared_memory import (
    LEAST_BYTES,
    ReceivedBlocks,
    SentBlocks,
    is_available,
)
from runnel.distributed.transport.stream import Stream
from runnel.distributed.wire import ALIGNMENT, Malformed
from runnel.graph.errors import UnavailableError

MAGIC = b"RNL1"
HEADER = struct.Struct("<4sIQ")
MOST_ENVELOPE = 1 << 31
_BUFFER = 1 << 16
_ZEROS = bytes(ALIGNMENT)

Received = Callable[[Any, Envelope, list[Any]], None]


class Channel(Protocol):
    """A way to another task."""

    task: str
    incarnation: int

    def send(self, envelope: Envelope, values: Sequence[Any] = (), wait: bool = True) -> None:
        """Sends a message; ``wait`` says whether the caller may be held up by a slow reader."""

    def close(self, why: str) -> None:
        """Ends the connection; both sides are told."""


class Connection:
    """A channel over a stream.

    ``receive(connection, envelope, values)`` is called for each message, on the thread that reads;
    ``lost(connection, error)`` once, when the connection has ended.
    """

    def __init__(
        self, stream: Stream, receive: Received, lost: Callable[[Any, Exception], None], most: int
    ) -> None:
        """``most``: the bytes that a message's body may have."""
        self.task = ""
        self.incarnation = 0
        self._stream = stream
        self._receive = receive
        self._lost = lost
        self._most = most
        self.heard = False
        """True when something has come since it was last set to False."""
        self.is_receiving = False
        """True while what has come is being dealt with: nothing else is read meanwhile."""
        self.error: Exception | None = None
        self.sent_bytes = self.received_bytes = 0
        """What has gone through it, shared memory included: counted by who writes, under the lock
        of writing, and by the thread that reads."""
        # Held while a message is written, as far as that needs no waiting, or put at the end of
        # those that wait to be written. One thread may take it again, to end the connection.
        self._writing = threading.RLock()
        self._waiting: deque[tuple[deque[memoryview], list[int]]] = deque()
        self._written = 0
        """How many of those that had to wait have been written."""
        self._writer: threading.Thread | None = None
        self._may_write = threading.Condition(self._writing)
        self._ended = threading.Lock()  # taken once, by who ends the connection
        self._sent_blocks: SentBlocks | None = None
        self._received_blocks = ReceivedBlocks()
        if getattr(stream, "is_local", False) and is_available():
            self._sent_blocks = SentBlocks()
        self._buffer = bytearray(_BUFFER)
        self._begin = self._end = 0
        self._is_started = False

    def start(self) -> None:
        """Begins to read."""
        self._stream.limit(None)
        self._is_started = True
        threading.Thread(
            target=self._read_all, name=f"runnel-reader-{self.task}", daemon=True
        ).start()

    # Sending --------------------------------------------------------------------------------

    def send(self, envelope: Envelope, values: Sequence[Any] = (), wait: bool = True) -> None:
        contents, blocks = self._described(envelope, values) if values else ((), ())
        with self._writing:
            if self.error is not None:
                raise self.error
            if self._received_blocks.freed:
                envelope.freed.extend(self._received_blocks.taken())
            descriptors = [block.descriptor for block in blocks if not block.is_known]
            for block in blocks:
                block.is_known = True
            buffers = _framed(envelope, contents)
            self.sent_bytes += sum(map(len, buffers))
            if blocks:
                self.sent_bytes += sum(t.size for t in wire.tensors_of(envelope) if t.block)
            self._write(buffers, descriptors, wait)

    def _described(self, envelope: Envelope, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Fills in the tensors of ``envelope``; what goes into the body, and the blocks used."""
        contents, blocks = [], []
        for tensor, value in zip(wire.tensors_of(envelope), values, strict=True):
            content = wire.describe(tensor, value)
            if content is None:
                continue
            block = None
            if self._sent_blocks is not None and tensor.size >= LEAST_BYTES:
                block = self._sent_blocks.take(tensor.size)
            if block is None:
                contents.append(content)
                continue
            if isinstance(content, bytes):
                content = np.frombuffer(content, np.uint8)
            np.copyto(block.memory[: tensor.size], content)
            tensor.block = block.number
            blocks.append(block)
        return contents, blocks

    def _write(self, buffers: deque[memoryview], descriptors: list[int], wait: bool) -> None:
        try:
            if not self._waiting:
                self._stream.send(buffers, descriptors, wait=False)
                if not buffers and not getattr(self._stream, "has_unsent", False):
                    return
                descriptors = []
        except OSError as error:
            if not self._is_started:
                raise
            self._end_writing(error)
            raise self.error from error  # type: ignore[misc]
        except BaseException:  # interrupted: the other side must see whole messages
            self._write_later(deque(map(_copied, buffers)), [])
            raise
        if not wait:  # the arrays may change when the caller has gone on
            buffers = deque(map(_copied, buffers))
        last = self._write_later(buffers, descriptors)
        while wait and self._written < last:
            if self.error is not None:
                raise self.error
            self._may_write.wait()

    def _write_later(self, buffers: deque[memoryview], descriptors: list[int]) -> int:
        """Has a thread write what is left of a message; returns its number among those."""
        self._waiting.append((buffers, descriptors))
        if self._writer is None:
            self._writer = threading.Thread(
                target=self._write_waiting, name=f"runnel-writer-{self.task}", daemon=True
            )
            self._writer.start()
        self._may_write.notify_all()
        return self._written + len(self._waiting)

    def _write_waiting(self) -> None:
        while True:
            with self._writing:
                while not self._waiting and self.error is None:
                    self._may_write.wait()
                if self.error is not None:
                    return
                buffers, descriptors = self._waiting[0]
            # While something waits nobody else writes to the stream.
            try:
                self._stream.send(buffers, descriptors, wait=True)
            except OSError as error:
                self._end_writing(error)
                return
            with self._writing:
                self._waiting.popleft()
                self._written += 1
                self._may_write.notify_all()

    # Receiving ------------------------------------------------------------------------------

    def _read_all(self) -> None:
        try:
            while True:
                envelope, values = self._read()
                self.heard = True
                if envelope.freed and self._sent_blocks is not None:
                    self._sent_blocks.freed(envelope.freed)
                self.is_receiving = True
                self._receive(self, envelope, values)
                self.is_receiving = False
        except EOFError:
            self._end_with(ConnectionResetError("the other side has closed the connection"))
        except Malformed as error:
            self._end_with(ConnectionError(f"what came is not a message of runnel's: {error}"))
        except OSError as error:
            self._end_with(error)
        except BaseException as error:
            self._end_with(ConnectionError(f"{type(error).__name__}: {error}"))
            raise

    def read_first(self) -> Envelope:
        """The first message of the other side, before the connection has a thread."""
        return self._read()[0]

    def _read(self) -> tuple[Envelope, list[Any]]:
        self._fill(HEADER.size)
        magic, envelope_size, body_size = HEADER.unpack_from(self._buffer, self._begin)
        if magic != MAGIC:
            raise Malformed(f"it begins with {bytes(magic)!r}")
        if envelope_size > MOST_ENVELOPE or body_size > self._most:
            raise Malformed(f"it is too long ({envelope_size} and {body_size} bytes)")
        self._begin += HEADER.size
        self.received_bytes += HEADER.size + envelope_size + body_size
        try:
            envelope = Envelope.FromString(self._taken(envelope_size))
        except Exception as error:
            raise Malformed(str(error)) from None
        tensors = wire.tensors_of(envelope)
        if not tensors:
            if body_size:
                raise Malformed("it has a body that nothing describes")
            return envelope, []
        return envelope, self._values(tensors, body_size)

    def _values(self, tensors: Sequence[Any], body_size: int) -> list[Any]:
        position, places = 0, []
        for tensor in tensors:
            wire.check(tensor)
            places.append(position)
            if tensor.block == 0 and not tensor.dead:
                position += tensor.size + -tensor.size % ALIGNMENT
        if position != body_size:
            raise Malformed("its body is not as long as its values")
        body: Any = b""
        if body_size:
            body = self._taken(body_size) if body_size <= _BUFFER // 2 else self._large(body_size)
        return [
            self._value(tensor, body, place) for tensor, place in zip(tensors, places, strict=True)
        ]

    def _value(self, tensor: Any, body: Any, place: int) -> Any:
        if not tensor.block or tensor.dead:
            return wire.rebuild(tensor, body[place : place + tensor.size])
        self.received_bytes += tensor.size
        blocks, number = self._received_blocks, tensor.block
        memory = blocks.memory(number, tensor.size, self._stream.descriptors)
        value = wire.rebuild(tensor, memory, lambda: blocks.freed.append(number))
        if tensor.dtype == wire.STRING:  # it was copied
            blocks.freed.append(number)
        return value

    def _fill(self, count: int) -> None:
        """Reads until ``count`` bytes are in the buffer, which has room for them."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin + count > len(self._buffer):
            left = self._end - self._begin
            self._buffer[:left] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, left
        while self._end - self._begin < count:
            received = self._stream.receive(memoryview(self._buffer)[self._end :])
            if not received:
                raise EOFError
            self._end += received

    def _taken(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if count > len(self._buffer):
            return self._large(count).tobytes()
        self._fill(count)
        begin = self._begin
        self._begin += count
        return bytes(memoryview(self._buffer)[begin : begin + count])

    def _large(self, count: int) -> np.ndarray:
        """The next ``count`` bytes, read to where they stay."""
        memory = np.empty(count + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        memory = memory[start : start + count]
        have = min(self._end - self._begin, count)
        view = memoryview(memory)  # type: ignore[arg-type]
        view[:have] = memoryview(self._buffer)[self._begin : self._begin + have]
        self._begin += have
        while have < count:
            received = self._stream.receive(view[have:])
            if not received:
                raise EOFError
            have += received
        return memory

    # The end --------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Ends the connection."""
        self._end_with(ConnectionError(why))

    def discard(self) -> None:
        """Ends a connection that has not been started, without telling anyone."""
        self._ended.acquire(blocking=False)
        self._stream.close()
        if self._sent_blocks is not None:
            self._sent_blocks.close()

    def _end_writing(self, error: OSError) -> None:
        """Nothing more can be sent: the other side has gone.

        What it has sent before is yet to be read, and comes before its end: so who reads ends the
        connection, when there is nothing more.
        """
        self._note(error)
        self._stream.end()
        with self._may_write:
            self._may_write.notify_all()

    def _end_with(self, error: Exception) -> None:
        if not self._ended.acquire(blocking=False):
            return
        ended = self._note(error)
        self._stream.close()
        if self._sent_blocks is not None:
            self._sent_blocks.close()
        # Whoever holds the lock is about to get an error from the stream.
        with self._may_write:
            self._may_write.notify_all()
        self._lost(self, ended)

    def _note(self, error: Exception) -> Exception:
        """Has everybody fail who sends from now on; the first error is what they are told."""
        if self.error is None:
            ended = UnavailableError(None, None, f"The connection to {self.task} is lost: {error}")
            ended.task = self.task  # type: ignore[attr-defined]
            self.error = ended
        return self.error


def _framed(envelope: Envelope, contents: Sequence[Any]) -> deque[memoryview]:
    header = envelope.SerializeToString()
    size = sum(len(content) + -len(content) % ALIGNMENT for content in contents)
    buffers = [HEADER.pack(MAGIC, len(header), size) + header]
    for content in contents:
        if isinstance(content, bytes) and len(content) <= 1 << 12:
            buffers[-1] += content + _ZEROS[: -len(content) % ALIGNMENT]
        else:
            buffers += [content, _ZEROS[: -len(content) % ALIGNMENT]]
    return deque(memoryview(buffer) for buffer in buffers if len(buffer))  # type: ignore[arg-type]


def _copied(buffer: memoryview) -> memoryview:
    return memoryview(bytes(buffer))
