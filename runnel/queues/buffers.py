"""Reuses the memory of elements that have left a queue.

A training program puts batches of the same size into a queue for hours. The operating system would
have to map and clear fresh memory for each, which takes longer than the copy itself.
"""

from __future__ import annotations

import sys
import threading
from collections import deque

import numpy as np

ALIGNMENT = 64
"""Where a compiled step can use an array as it is, without a copy of its own."""
_LARGE = 1 << 15
_MOST_BYTES = 1 << 28


def _references(blocks: deque[np.ndarray]) -> int:
    """How many references there are to the last block, those of this function included."""
    return sys.getrefcount(blocks[-1])


# Measured, because versions of Python differ in whether a variable's use is counted.
_UNUSED = _references(deque([np.empty(1)]))
"""The references to a buffer that nobody uses."""


class Buffers:
    """Blocks of memory by size; a block is free when nothing refers to it any more.

    Everything that shares the memory (a view, a compiled step's argument) refers to the block, so
    the number of references says when it may be used again.
    """

    def __init__(self) -> None:
        # Guards the table; held while a block is looked for, not while it is filled.
        self._lock = threading.Lock()
        self._blocks: dict[int, deque[np.ndarray]] = {}
        self._bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array with undefined contents, aligned, that nobody else uses."""
        size = dtype.itemsize
        for dimension in shape:
            size *= dimension
        if size < _LARGE:
            return np.empty(shape, dtype)
        block = self._block(size + ALIGNMENT)
        start = -block.__array_interface__["data"][0] % ALIGNMENT
        return block[start : start + size].view(dtype).reshape(shape)

    def _block(self, size: int) -> np.ndarray:
        with self._lock:
            blocks = self._blocks.get(size)
            if blocks is None:
                blocks = self._blocks[size] = deque()
            # The one that left the queue first is the first to be free.
            for _ in range(min(len(blocks), 4)):
                blocks.rotate(-1)
                if _references(blocks) <= _UNUSED:
                    return blocks[-1]
            block = np.empty(size, np.uint8)
            if self._bytes + size <= _MOST_BYTES:
                self._bytes += size
                blocks.append(block)
            elif not blocks:  # those of other sizes have had their time
                self._blocks.clear()
                self._bytes = 0
            return block
