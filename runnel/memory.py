"""How this process's allocator treats memory that a step has freed.

A compiled step on a CPU takes one large buffer for its temporary values and gives it back at its
end. The C library returns it to the system, which must clear and map every page of it again in the
next step: for a convolutional network that is half of the time. `keep_freed_memory` tells the C
library to keep what was freed for the next step. The price is that the process stays as large as
it was at its largest, so it is an option: call it at the start of a program, or set
``RUNNEL_KEEP_FREED_MEMORY=1`` in the environment.

An interpreted step over many rows of tables, or with a loop that keeps values of its iterations,
a pipeline of input and a task of a cluster have the C library keep a little, so that some megabytes
need not be mapped anew in each step either.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from functools import cache
from typing import Any

VARIABLE = "RUNNEL_KEEP_FREED_MEMORY"

# From glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -2, -3, -4, -8
_NEVER = -1
IDLE_SECONDS = 30.0
"""For how long a task keeps memory for steps that do not come."""
_SOME = 128 << 20
_LARGEST_FROM_HEAP = 32 << 20
"""More the C library does not take from its heap."""
_asked = False


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory; before JAX is imported, for it starts threads.

    It holds for the whole process and cannot be taken back. Returns whether the C library can do
    it: GNU's can.

    Example:
        >>> import runnel as tf
        >>> from runnel.memory import keep_freed_memory
        >>> keep_freed_memory()  # doctest: +SKIP
        True
    """
    global _asked
    _asked = True
    # Large blocks come from the heap, of which there is one, and whose end is never given back.
    return _tell({_MMAP_MAX: 0, _TRIM_THRESHOLD: _NEVER, _TOP_PAD: 64 << 20, _ARENA_MAX: 1})


@cache
def keep_some_freed_memory() -> None:
    """Let the C library keep 128 MiB of freed memory, unless someone has told it what to keep."""
    told = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if not _asked and not told:
        _tell({_TRIM_THRESHOLD: _SOME, _MMAP_THRESHOLD: _LARGEST_FROM_HEAP})


def give_back_freed_memory() -> None:
    """Has the C library give to the system what was freed, unless it was asked to keep that."""
    if not _asked and sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # it is not GNU's
            ctypes.CDLL(None).malloc_trim(0)


def _tell(settings: dict[int, int]) -> bool:
    """Gives the C library its options; whether it has taken all of them."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt: Any = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(option, value) == 1 for option, value in settings.items())


def keep_freed_memory_if_asked() -> None:
    """Act on ``RUNNEL_KEEP_FREED_MEMORY``."""
    if os.environ.get(VARIABLE, "0") not in ("", "0"):
        keep_freed_memory()
