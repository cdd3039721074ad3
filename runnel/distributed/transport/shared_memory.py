"""Blocks of memory that two processes of one machine share: one copy in, a view out.

The sender owns the blocks and fills one for each large value. The receiver looks at the value where
it is, and gives the block back when nothing refers to it any more; then it is filled again. A fresh
block for each value would be twenty times slower: the operating system has to clear its pages. The
blocks have no names, so nothing is left behind when a process is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from runnel import memory
from runnel.distributed.wire import Malformed
from runnel.queues.own_memory import OwnMemory

LEAST_BYTES = 1 << 17
"""Smaller values go through the socket."""
_SMALLEST = 1 << 20
MOST_BYTES = 1 << 32
"""What the blocks of one connection may take; beyond that values go through the socket."""
MOST_BLOCKS = 256
"""How many blocks a connection may have: either side has a file open for each."""
MOST_NEW = 128
"""How many blocks a message may give to the other side, which has two files open for each
until it has read the message's head; other values of that message go through the socket."""
MOST_UNTOLD = 4
"""How many blocks may wait for a message that gives them back; then there is one for them alone."""

_GIVE_BACK = getattr(mmap, "MADV_REMOVE", None)

_ADD_SEALS, _GET_SEALS, _SEAL_SHRINK = 1033, 1034, 2


def is_available() -> bool:
    """True where the operating system has memory files."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "fcntl")


class MemoryFile:
    """An open file of memory; it is closed when nothing refers to it any more."""

    __slots__ = ("_descriptor",)

    def __init__(self, size: int) -> None:
        self._descriptor = os.memfd_create("runnel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._descriptor, size)
        # The receiver must be sure that the memory stays.
        fcntl.fcntl(self._descriptor, _ADD_SEALS, _SEAL_SHRINK)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._descriptor

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if hasattr(self, "_descriptor"):  # it could be opened
            close(self._descriptor)


class SentBlock:
    """A block of the sender's."""

    __slots__ = ("number", "memory", "free_since", "_file", "_map")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self._file: MemoryFile | None = MemoryFile(size)
        self._map = mmap.mmap(self._file.fileno(), size)
        self.memory = np.frombuffer(self._map, np.uint8)
        self.free_since: float | None = None
        """When it was given back, while it is free and still has memory."""

    def empty(self) -> None:
        """Gives its memory back to the system, on both sides; it has new memory when it is used."""
        self.free_since = None
        if _GIVE_BACK is not None:
            with contextlib.suppress(OSError):
                self._map.madvise(_GIVE_BACK)

    def take_file(self) -> MemoryFile | None:
        """The file, for the other side; None when it has been taken before."""
        file, self._file = self._file, None
        return file


class SentBlocks:
    """The blocks that a connection has for what it sends."""

    def __init__(self, limit: int = MOST_BYTES) -> None:
        # Guards the tables; not held while a block is filled.
        self._lock = threading.Lock()
        self._blocks: dict[int, SentBlock] = {}
        self._free: dict[int, list[SentBlock]] = {}
        self._bytes = 0
        self._limit = limit
        self._closed = False

    def take(self, size: int, may_add: bool = True) -> SentBlock | None:
        """A free block of at least ``size`` bytes, or else, if it may be added, a new one.

        None when there is no memory for it.
        """
        capacity = max(_SMALLEST, 1 << (size - 1).bit_length())
        if capacity - size > capacity // 4 and capacity > 16 * _SMALLEST:
            capacity = -(-size // (capacity // 8)) * (capacity // 8)
        with self._lock:
            free = self._free.get(capacity)
            if free:
                block = free.pop()  # the one that was used last
                block.free_since = None
                return block
            if not may_add or self._closed or len(self._blocks) >= MOST_BLOCKS:
                return None
            if self._bytes + capacity > self._limit:
                return None
            self._bytes += capacity
            number = len(self._blocks) + 1
            try:
                block = self._blocks[number] = SentBlock(number, capacity)
            except OSError:  # out of memory or of open files
                self._bytes -= capacity
                return None
            return block

    def freed(self, numbers: Any) -> None:
        """Notes that the other side has given blocks back."""
        with self._lock:
            for number in numbers:
                block = self._blocks.get(number)
                if block is not None:
                    block.free_since = time.monotonic()
                    self._free.setdefault(block.memory.nbytes, []).append(block)

    def give_back_idle(self, now: float) -> None:
        """Gives back the memory of blocks that have been free for a while."""
        with self._lock:
            for free in self._free.values():
                for block in free:
                    since = block.free_since
                    if since is not None and now - since >= memory.IDLE_SECONDS:
                        block.empty()

    def close(self) -> None:
        """Gives the memory back; the other side keeps what it looks at."""
        with self._lock:
            self._closed = True
            self._blocks.clear()
            self._free.clear()


class ReceivedBlocks:
    """The blocks of the other side, as the receiver sees them."""

    def __init__(self) -> None:
        self._memory: dict[int, OwnMemory] = {}
        self.freed: list[int] = []
        """Blocks that nothing refers to any more, and the other side has not been told of.
        Changed by single operations of a list only: arrays die on any thread, at any time."""

    def memory(self, number: int, size: int, descriptors: Any) -> OwnMemory:
        """The first ``size`` bytes of a block; a new one comes in ``descriptors``."""
        memory = self._memory.get(number)
        if memory is None:
            try:  # who ends the connection empties the list at any moment
                descriptor = descriptors.popleft()
            except IndexError:
                raise Malformed("a block of shared memory was named that was never given") from None
            memory = self._memory[number] = _mapped(descriptor)
        if size > memory.nbytes:
            raise Malformed("a value is larger than its block of shared memory")
        return cast(OwnMemory, memory[:size])

    def taken(self) -> list[int]:
        """What is to be told to the other side, once."""
        found = []
        while self.freed:
            found.append(self.freed.pop())
        return found


def _mapped(descriptor: int) -> OwnMemory:
    try:
        if not fcntl.fcntl(descriptor, _GET_SEALS) & _SEAL_SHRINK:
            raise Malformed("a block of shared memory could be made smaller while it is in use")
        size = os.fstat(descriptor).st_size
        return np.frombuffer(mmap.mmap(descriptor, size), np.uint8).view(OwnMemory)
    except (OSError, ValueError) as error:
        raise Malformed(f"a block of shared memory cannot be used: {error}") from None
    finally:
        os.close(descriptor)
