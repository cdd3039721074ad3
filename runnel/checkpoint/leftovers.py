"""Temporary files of processes that were killed: which they are, and their removal.

A temporary file's name says which process writes it. Where process numbers mean nothing, on another
machine or in another container, nothing is removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets

_NAME = re.compile(r"\.tempstate([0-9a-f]{16})-(\d+)-\d+$")


@functools.cache
def _process_space() -> str | None:
    """Names the processes among which numbers are unique: a boot and a namespace; None: unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read()
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None
    return hashlib.sha256(boot + str(space).encode()).hexdigest()[:16]


def temporary_name(path: str) -> str:
    """A new name beside ``path`` for a file that this process writes."""
    space = _process_space() or "0" * 16
    return f"{path}.tempstate{space}-{os.getpid()}-{secrets.randbits(63)}"


def sweep(folder: str) -> None:
    """Removes the temporary files of a folder whose process is dead."""
    space = _process_space()
    if space is None:
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            found = _NAME.search(name)
            if found and found[1] == space and not _is_alive(int(found[2])):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # someone else's
        return True
    return True
