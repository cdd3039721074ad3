"""Blocks of memory that two processes of one machine share: one copy in, a view out.

The sender owns the blocks and fills one for each large value. The receiver looks at the value where
it is, and gives the block back when nothing refers to it any more; then it is filled again. A fresh
block for each value would be twenty times slower: the operating system has to clear its pages. The
blocks have no names, so nothing is left behind when a process is killed.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from typing import Any, cast

import numpy as np

from runnel.distributed.wire import Malformed
from runnel.queues.own_memory import OwnMemory

LEAST_BYTES = 1 << 17
"""Smaller values go through the socket."""
_SMALLEST = 1 << 20
MOST_BYTES = 1 << 32
"""What the blocks of one connection may take; beyond that values go through the socket."""

_ADD_SEALS, _GET_SEALS, _SEAL_SHRINK = 1033, 1034, 2


def is_available() -> bool:
    """True where the operating system has memory files."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "fcntl")


class SentBlock:
    """A block of the sender's."""

    __slots__ = ("number", "memory", "descriptor", "is_known")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.descriptor = os.memfd_create("runnel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            # The receiver must be sure that the memory stays.
            fcntl.fcntl(self.descriptor, _ADD_SEALS, _SEAL_SHRINK)
            self.memory = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)
        except BaseException:
            os.close(self.descriptor)
            raise
        self.is_known = False
        """True when the other side has been given its file."""


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

    def take(self, size: int) -> SentBlock | None:
        """A free block of at least ``size`` bytes; None when there is no more memory for it."""
        capacity = max(_SMALLEST, 1 << (size - 1).bit_length())
        if capacity - size > capacity // 4 and capacity > 16 * _SMALLEST:
            capacity = -(-size // (capacity // 8)) * (capacity // 8)
        with self._lock:
            free = self._free.get(capacity)
            if free:
                return free.pop()
            if self._closed or self._bytes + capacity > self._limit:
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
                    self._free.setdefault(block.memory.nbytes, []).append(block)

    def close(self) -> None:
        """Gives the memory back; the other side keeps what it looks at."""
        with self._lock:
            self._closed = True
            for block in self._blocks.values():
                os.close(block.descriptor)
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
            if not descriptors:
                raise Malformed("a block of shared memory was named that was never given")
            memory = self._memory[number] = _mapped(descriptors.popleft())
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
