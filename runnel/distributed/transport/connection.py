"""A connection: messages with values, in order, both ways.

One thread reads, and hands each message to ``receive``. A sender writes as much as the network
takes at once. It writes the rest itself, and waits; or, if it must not wait, a thread of the
connection writes it. So two sides that send much to each other cannot block each other, and a slow
reader holds up its senders.
"""

from __future__ import annotations

import contextlib
import errno
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from runnel.distributed import wire
from runnel.distributed.clock_offset import ClockOffset
from runnel.distributed.messages import Message, pack, unpack
from runnel.distributed.protocol.worker_pb2 import Envelope, Hello
from runnel.distributed.transport.backlog import MOST_WAITING, Backlog
from runnel.distributed.transport.frame import HEADER, MAGIC, framed
from runnel.distributed.transport.shared_memory import (
    LEAST_BYTES,
    MOST_NEW,
    MOST_UNTOLD,
    ReceivedBlocks,
    SentBlock,
    SentBlocks,
    is_available,
)
from runnel.distributed.transport.stream import Buffers, Files, Stream
from runnel.distributed.wire import ALIGNMENT, Malformed
from runnel.graph.errors import UnavailableError
from runnel.queues.own_memory import OwnMemory

MOST_HEAD = 1 << 31
MOST_GREETING = 1 << 20
"""The bytes of a message of a side that has yet to prove who it is."""
_BUFFER = 1 << 16

_LOOK_SECONDS = 0.1
"""How often who waits for a slow reader looks whether anyone still wants what it sends."""

Received = Callable[[Any, Message, list[Any]], None]
GivenUp = Callable[[], Exception | None]
"""Why nobody wants any more what is being sent, once that is so."""


class Channel(Protocol):
    """A way to another task."""

    task: str
    incarnation: int

    def send(
        self,
        message: Message,
        values: Sequence[Any] = (),
        wait: bool = True,
        given_up: GivenUp | None = None,
    ) -> None:
        """Sends a message; ``wait`` says whether the caller may be held up by a slow reader.

        One that is held up raises what ``given_up`` says, once it does.
        """

    def give_back_idle(self, now: float) -> None:
        """Gives memory back that has not been used for a while."""

    def close(self, why: str) -> None:
        """Ends the connection; both sides are told."""


@dataclass(slots=True, eq=False)
class _Unwritten:
    """What is left of a message, which waits to be written."""

    buffers: Buffers
    files: Files
    freed: Sequence[int] = ()
    """The blocks that it gives back, while nothing of it has been written."""
    blocks: Sequence[int] = ()
    """The blocks that its values are in."""
    end: int = 0
    """Where it ends among the bytes of the stream."""
    size: int = 0
    is_written: bool = False


class Connection:
    """A channel over a stream.

    ``receive(connection, message, values)`` is called for each message, on the thread that reads;
    ``lost(connection, error)`` once, when the connection has ended.
    """

    def __init__(
        self,
        stream: Stream,
        receive: Received,
        lost: Callable[[Any, Exception], None],
        most: int,
        backlog: Backlog | None = None,
    ) -> None:
        """``most``: the bytes that a message's body may have; ``backlog`` counts what waits."""
        self.task = ""
        self.incarnation = 0
        self._stream = stream
        self._receive = receive
        self._lost = lost
        self._most = most
        self._limits = MOST_GREETING, 0
        """What the head and the body of a message may take."""
        self.clock = ClockOffset()
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
        self._waiting: deque[_Unwritten] = deque()
        self._waiting_bytes = 0
        self._backlog = backlog or Backlog()
        self._stream_bytes = 0
        """How many bytes have been given to the stream, or wait to be."""
        self._unread: deque[tuple[int, int]] = deque()
        """Messages that the other side may not have read: where each ends among those bytes, and
        how much of its values is in shared memory."""
        self._unread_bytes = 0
        self._writer: threading.Thread | None = None
        self._may_write = threading.Condition(self._writing)
        self._ended = threading.Lock()  # taken once, by who ends the connection
        self._sent_blocks: SentBlocks | None = None
        self._received_blocks = ReceivedBlocks()
        if getattr(stream, "is_local", False) and is_available():
            self._sent_blocks = SentBlocks()
        self._buffer = memoryview(bytearray(_BUFFER))
        self._begin = self._end = 0
        self._is_started = False

    def start(self) -> None:
        """Begins to read."""
        self._stream.limit(None)
        self._is_started = True
        self._limits = MOST_HEAD, self._most
        threading.Thread(
            target=self._read_all, name=f"runnel-reader-{self.task}", daemon=True
        ).start()

    # Sending --------------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        values: Sequence[Any] = (),
        wait: bool = True,
        given_up: GivenUp | None = None,
    ) -> None:
        kind, packed = pack(message)
        head = [packed]
        contents, shared = [], 0
        blocks: list[int] = []
        new: Files = deque()
        # All are described first: where one has no bytes, no block is filled for another.
        described = [wire.describe(value) for value in values]
        shares = (
            self._sent_blocks is not None
            and any(len(content) >= LEAST_BYTES for _, content in described)
            and self._may_share()
        )
        for description, content in described:
            block = None
            if shares and len(content) >= LEAST_BYTES:
                block = self._filled_block(content, len(new) < MOST_NEW)
            if block is None:
                contents.append(content)
            else:
                description = wire.in_block(description, block.number)
                shared += len(content)
                blocks.append(block.number)
                file = block.take_file()
                if file is not None:
                    new.append(file)
            head.append(description)
        with self._writing:
            if self.error is not None:
                raise self.error
            freed = self._received_blocks.taken()
            if freed:
                head.append(struct.pack(f"<{len(freed)}I", *freed))
            buffers = framed(kind, len(values), len(freed), head, contents)
            size = sum(map(len, buffers))
            self.sent_bytes += size + shared
            self._stream_bytes += size
            if shared:
                self._unread.append((self._stream_bytes, shared))
                self._unread_bytes += shared
            left = _Unwritten(buffers, new, freed, blocks, self._stream_bytes)
            self._write(left, wait, given_up)

    def _may_share(self) -> bool:
        """Whether values may go through shared memory, which a reader that has stopped can fill.

        Through the stream they are held up.
        """
        with self._writing:
            if self._unread:
                # The system counts more than the bytes: as many at least have been read.
                read = self._stream_bytes - self._waiting_bytes - self._stream.unread()
                while self._unread and self._unread[0][0] <= read:
                    self._unread_bytes -= self._unread.popleft()[1]
            return self._unread_bytes <= MOST_WAITING

    def _filled_block(self, content: Any, may_add: bool) -> SentBlock | None:
        """A block of shared memory with ``content``, where there is one to be had."""
        size = len(content)
        block = None if self._sent_blocks is None else self._sent_blocks.take(size, may_add)
        if block is not None:
            if isinstance(content, bytes):
                content = np.frombuffer(content, np.uint8)
            np.copyto(block.memory[:size], content)
        return block

    def give_back_idle(self, now: float) -> None:
        if self._sent_blocks is not None:
            self._sent_blocks.give_back_idle(now)

    def _write(self, left: _Unwritten, wait: bool, given_up: GivenUp | None) -> None:
        try:
            if not self._waiting:
                self._stream.send(left.buffers, left.files, wait=False)
                if not left.buffers and not getattr(self._stream, "has_unsent", False):
                    return
        except OSError as error:
            if not self._is_started:
                raise
            self._end_writing(error)
            raise self.error from error  # type: ignore[misc]
        except BaseException:  # interrupted: the other side must see whole messages
            left.buffers = deque(map(bytes, left.buffers))
            self._write_later(left)
            raise
        if not wait:  # the arrays may change when the caller has gone on
            left.buffers = deque(map(bytes, left.buffers))
        is_whole = bool(self._waiting)
        self._write_later(left)
        while wait and not left.is_written:
            if self.error is not None:
                raise self.error
            why = given_up() if given_up is not None else None
            if why is not None:
                if is_whole:
                    self._withdraw(left)
                raise why
            self._may_write.wait(None if given_up is None else _LOOK_SECONDS)

    def _withdraw(self, left: _Unwritten) -> None:
        """Forgets a message that nobody wants, if nothing of it has been written.

        The files of blocks have to leave once. What is not withdrawn leaves as it is by then: who
        gets it wants it no more.
        """
        if left.files or left not in self._waiting or left is self._waiting[0]:
            return
        self._waiting.remove(left)
        self._count(-left.size)
        self._received_blocks.freed.extend(left.freed)
        if self._sent_blocks is not None:
            self._sent_blocks.freed(left.blocks)
        self._stream_bytes -= left.size
        for other in self._waiting:
            other.end -= left.size if other.end > left.end else 0
        shared = sum(size for end, size in self._unread if end == left.end)
        self._unread_bytes -= shared
        self.sent_bytes -= left.size + shared
        self._unread = deque(
            (end - left.size if end > left.end else end, size)
            for end, size in self._unread
            if end != left.end
        )

    def _write_later(self, left: _Unwritten) -> None:
        """Has a thread write what is left of a message."""
        left.size = sum(map(len, left.buffers))
        self._waiting.append(left)
        self._count(left.size)
        if self._writer is None:
            self._writer = threading.Thread(
                target=self._write_waiting, name=f"runnel-writer-{self.task}", daemon=True
            )
            self._writer.start()
        self._may_write.notify_all()

    def _write_waiting(self) -> None:
        while True:
            with self._writing:
                while not self._waiting and self.error is None:
                    self._may_write.wait()
                if self.error is not None:
                    return
                left = self._waiting[0]
            # While something waits nobody else writes to the stream.
            try:
                self._stream.send(left.buffers, left.files, wait=True)
            except OSError as error:
                self._end_writing(error)
                return
            with self._writing:
                left.is_written = True
                if self.error is None:  # else who ends the connection forgets all that is left
                    self._waiting.popleft()
                    self._count(-left.size)
                self._may_write.notify_all()
            del left  # nothing of it is kept while this waits

    def _count(self, change: int) -> None:
        """Notes that bytes wait, or wait no longer; under the lock of writing."""
        self._waiting_bytes += change
        self._backlog.add(change)

    # Receiving ------------------------------------------------------------------------------

    def _read_all(self) -> None:
        try:
            while True:
                message, values = self._read()
                self.heard = True
                if message is None:
                    continue
                if isinstance(message, Envelope) and message.hello.refused:
                    raise ConnectionResetError(f"{self.task} says: {message.hello.refused}")
                self.is_receiving = True
                self._receive(self, message, values)
                self.is_receiving = False
                del message, values  # nothing of them is kept while this waits
                if len(self._received_blocks.freed) >= MOST_UNTOLD:
                    self._tell_freed()
        except EOFError:
            self._end_with(ConnectionResetError("the other side has closed the connection"))
        except Malformed as error:
            self._end_with(ConnectionError(f"what came is not a message of runnel's: {error}"))
        except MemoryError as error:
            why = f"there is no memory for what comes: {error}"
            self._say_farewell(why)
            self._end_with(ConnectionError(why))
        except OSError as error:
            if error.errno == errno.EMFILE:
                self._say_farewell(error.strerror or str(error))
            self._end_with(error)
        except BaseException as error:
            self._end_with(ConnectionError(f"{type(error).__name__}: {error}"))
            raise

    def _say_farewell(self, why: str) -> None:
        """Tells the other side why this one ends the connection, if that can be told at once."""
        with contextlib.suppress(UnavailableError):
            self.send(Envelope(hello=Hello(refused=why)), wait=False)

    def _tell_freed(self) -> None:
        """Gives blocks back without anything else to say: the other side may hear nothing more."""
        with contextlib.suppress(UnavailableError), self._writing:  # else it is read to its end
            if self._received_blocks.freed:  # another message may just have told of them
                self.send(Envelope(), wait=False)

    def read_first(self) -> Message:
        """The first message of the other side, before the connection has a thread."""
        message, _ = self._read()
        assert message is not None, "a greeting gives nothing back"
        return message

    def _read(self) -> tuple[Message | None, list[Any]]:
        """The next message and its values; None when it does nothing but give blocks back."""
        self._fill(HEADER.size)
        magic, kind, count, freed, head_size, body_size = HEADER.unpack_from(
            self._buffer, self._begin
        )
        if magic != MAGIC:
            raise Malformed(f"it begins with {bytes(magic)!r}")
        most_head, most_body = self._limits
        if head_size > most_head or body_size > most_body:
            raise Malformed(f"it is too long ({head_size} and {body_size} bytes)")
        if not most_body and (count or freed):
            raise Malformed("it is to be a greeting, and has values")
        self._begin += HEADER.size
        self.received_bytes += HEADER.size + head_size + body_size
        head = self._taken(head_size)
        if freed:
            head = self._take_back(head, freed)
            if not head and not count:
                return None, []
        message, position = unpack(kind, head, count)
        found, place = [], 0
        for _ in range(count):
            described, position = wire.read_description(head, position)
            found.append((described, place))
            if not described.block:
                place += described.size + -described.size % ALIGNMENT
        if position != len(head):
            raise Malformed("it has a head that is not as long as it should be")
        if place != body_size:
            raise Malformed("its body is not as long as its values")
        if not found:
            return message, []
        body: Any = b""
        if body_size:
            body = self._taken(body_size) if body_size <= _BUFFER // 2 else self._large(body_size)
        return message, [self._value(described, body, place) for described, place in found]

    def _take_back(self, head: bytes, count: int) -> bytes:
        """Notes the blocks that the other side gives back; ``head`` without them."""
        begin = len(head) - 4 * count
        if begin < 0:
            raise Malformed("it gives back more blocks than it names")
        if self._sent_blocks is not None:
            self._sent_blocks.freed(struct.unpack_from(f"<{count}I", head, begin))
        return head[:begin]

    def _value(self, described: wire.Described, body: Any, place: int) -> Any:
        number, size = described.block, described.size
        if not number:
            return wire.rebuild(described, body[place : place + size])
        self.received_bytes += size
        blocks = self._received_blocks
        memory = blocks.memory(number, size, self._stream.descriptors)
        memory.release = lambda: blocks.freed.append(number)
        return wire.rebuild(described, memory)

    def _fill(self, count: int) -> None:
        """Reads until ``count`` bytes are in the buffer, which has room for them."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin + count > _BUFFER:
            left = self._end - self._begin
            self._buffer[:left] = bytes(self._buffer[self._begin : self._end])
            self._begin, self._end = 0, left
        while self._end - self._begin < count:
            received = self._stream.receive(self._buffer[self._end :])
            if not received:
                raise EOFError
            self._end += received

    def _taken(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if count > _BUFFER:
            return self._large(count).tobytes()
        if self._end - self._begin < count:
            self._fill(count)
        begin = self._begin
        self._begin += count
        return bytes(self._buffer[begin : begin + count])

    def _large(self, count: int) -> OwnMemory:
        """The next ``count`` bytes, read to where they stay."""
        room = OwnMemory((count + ALIGNMENT,), np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        memory: Any = room[start : start + count]
        have = min(self._end - self._begin, count)
        view = memoryview(memory)  # type: ignore[arg-type]
        view[:have] = self._buffer[self._begin : self._begin + have]
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
            self._waiting.clear()  # sessions may know the connection for long
            self._count(-self._waiting_bytes)
            self._may_write.notify_all()
        self._lost(self, ended)

    def _note(self, error: Exception) -> Exception:
        """Has everybody fail who sends from now on; the first error is what they are told."""
        if self.error is None:
            ended = UnavailableError(None, None, f"The connection to {self.task} is lost: {error}")
            ended.task = self.task  # type: ignore[attr-defined]
            self.error = ended
        return self.error
