"""What the machine itself allows: the memory that is free, and a copy through shared memory."""

from __future__ import annotations

import mmap
import os
import time

import numpy as np

_ROUNDS = 7


def available_bytes() -> int:
    """The memory that programs can have now."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def copy_seconds(size: int) -> float:
    """The time of one copy of so many bytes into memory that processes share; the best of some."""
    source = np.ones(size, np.uint8)
    descriptor = os.memfd_create("copy")
    try:
        os.ftruncate(descriptor, size)
        shared = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        times = []
        for _ in range(_ROUNDS):
            begun = time.perf_counter()
            np.copyto(shared, source)
            times.append(time.perf_counter() - begun)
        return min(times)
    finally:
        os.close(descriptor)
