"""Arrays in memory-mapped files: values that may be larger than a process's memory.

The file of such an array has no name: it is gone when the array is, and when the process ends,
however it ends. Its space is reserved when it is made, so that a full disk is an error there and
not a signal (SIGBUS) where an element is set; what nobody has written reads as zero.
The kernel keeps as many of its pages in memory as it likes.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from runnel.graph.errors import ResourceExhaustedError
from runnel.graph.permitted_files import permitted

BLOCK_BYTES = 1 << 24
"""How much of an array is made, copied or read at a time; a few such blocks may be in memory."""
ROWS_TOGETHER = 4
"""Blocks begin at rows that this divides, so that random numbers come in whole groups."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class MappedMemory(mmap.mmap):
    """The memory of one mapped array."""

    folder: str
    """Where its file is."""


def mapped_zeros(folder: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros in a file of their own in ``folder``; an error when the disk has no room for them."""
    where, dtype = permitted(folder), np.dtype(dtype)
    size = max(1, prod(shape) * dtype.itemsize)
    os.makedirs(where, exist_ok=True)
    with tempfile.TemporaryFile(dir=where, buffering=0) as file:
        _reserve(file.fileno(), size, folder)
        memory = MappedMemory(file.fileno(), size)
    memory.folder = folder
    _advise(memory, "MADV_RANDOM", 0, size)  # rows are looked up here and there
    return np.ndarray(shape, dtype, memory)


def _reserve(file: int, size: int, folder: str) -> None:
    disk = os.fstatvfs(file)
    free = disk.f_bavail * disk.f_frsize
    try:
        # A look first: reserving what is not there would fill the disk before it fails.
        if size > free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise ResourceExhaustedError(
            None,
            None,
            f"A mapped array of {size:,} bytes does not fit into {folder!r}, where {free:,} bytes "
            f"are free ({error.strerror}). Map it in a folder on a larger disk, or in more shards "
            "on more tasks",
        ) from error


def memory_of(array: Any) -> MappedMemory | None:
    """The mapped memory that ``array`` is, or is a view of; None for any other array."""
    while type(array) is np.ndarray:
        array = array.base
    return array if type(array) is MappedMemory else None


def is_mapped(array: Any) -> bool:
    """True for an array in a mapped file, or a view of one."""
    return memory_of(array) is not None


def has_own_file(array: Any) -> bool:
    """True for an array that is all of a mapped file, and no view of another array."""
    base: Any = array.base if type(array) is np.ndarray else None
    return type(base) is MappedMemory


def row_blocks(shape: tuple[int, ...], dtype: Any) -> Iterator[slice]:
    """Slices of the rows of an array, each about a block."""
    row = prod(shape[1:]) * np.dtype(dtype).itemsize
    step = max(1, BLOCK_BYTES // max(1, row) // ROWS_TOGETHER) * ROWS_TOGETHER
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def set_rows(array: np.ndarray, rows: slice, block: Any) -> None:
    """Sets rows of a mapped array and lets go of them; zeros stay unwritten where there are some.

    The array must have been zeros there.
    """
    block = np.ascontiguousarray(block)
    if block.reshape(-1).view(np.uint8).any():
        array[rows] = block
        let_go(array[rows])


def no_look() -> None:
    """What is called between blocks where nobody wants to stop."""


def mapped_copy(folder: str, array: np.ndarray, look: Callable[[], None] = no_look) -> np.ndarray:
    """The elements of ``array`` in a file of their own in ``folder``, copied in blocks.

    ``look`` is called between them, and raises where there is to be no copy.
    """
    copy = mapped_zeros(folder, array.shape, array.dtype)
    if array.ndim == 0:
        copy[...] = array
        return copy
    for rows in row_blocks(array.shape, array.dtype):
        look()
        set_rows(copy, rows, array[rows])
        let_go(array[rows])
    return copy


def own_copy(array: np.ndarray, look: Callable[[], None] = no_look) -> np.ndarray:
    """A copy: of a mapped array a mapped one, in the same folder (see :func:`mapped_copy`)."""
    memory = memory_of(array)
    return np.array(array) if memory is None else mapped_copy(memory.folder, array, look)


def let_go(part: np.ndarray) -> None:
    """Says that a contiguous part of a mapped array is not needed soon: its pages may go.

    What was written stays: the kernel writes it to the disk when it wants the memory.
    """
    memory = memory_of(part)
    if memory is None or not part.size or not part.flags.c_contiguous:
        return
    whole = np.frombuffer(memory, np.uint8)
    start = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    # Whole pages only: another thread may use what is beside them.
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    end = start + part.nbytes
    if end < len(memory):
        end = end // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        _advise(memory, "MADV_DONTNEED", first, end - first)


def _advise(memory: MappedMemory, how: str, start: int, length: int) -> None:
    if hasattr(mmap, how):
        memory.madvise(getattr(mmap, how), start, length)


def available_memory() -> int:
    """The bytes that this process can still have in memory, as far as the system tells."""
    found = sys.maxsize
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as lines:
        line = next(line for line in lines if line.startswith("MemAvailable"))
        found = int(line.split()[1]) * 1024
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        found = min(found, int(file.read()))
    return found
