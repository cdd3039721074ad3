"""Finds the checksum of runnel's own sources, and the versions of packages, fast.

Reading a thousand files takes longer than loading a small step. So the checksum is kept (in the
store of executables) together with the file system's record of the files: a file that was written
since has another time of its last change, which no program can set.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from runnel.runtime.compile.entry_store import RECORD, executables

PACKAGE = Path(__file__).parents[2]
_SETTLED_NS = 2_000_000_000
"""The age from which on a file's time tells it from one that is written later."""


@cache
def sources() -> str:
    """The checksum of every file of runnel that a segment may depend on."""
    files = sorted(_files(str(PACKAGE), ""))
    described = repr((str(PACKAGE), [(name, *told) for name, _, *told in files]))
    name = f"{RECORD}sources-{hashlib.sha256(described.encode()).hexdigest()}"
    store = executables()
    kept = None if store is None else store.read(name)
    if kept is not None:
        return kept.decode()
    newest = max((max(times) for _, _, _, _, *times in files), default=0)
    settled = newest < time.time_ns() - _SETTLED_NS  # asked before anything is read
    found = _checksum([(name, path) for name, path, *_ in files])
    if store is not None and settled:
        store.write(name, found.encode())
    return found


def _files(folder: str, inside: str) -> Iterator[tuple[str, str, int, int, int, int]]:
    """The files below ``folder``: their names, paths, sizes, numbers and times."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{inside}{entry.name}"
            if not entry.is_dir():
                status = entry.stat()
                times = status.st_mtime_ns, status.st_ctime_ns
                yield name, entry.path, status.st_size, status.st_ino, *times
            elif entry.name != "__pycache__":
                yield from _files(entry.path, f"{name}/")


def _checksum(files: list[tuple[str, str]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


@cache
def version_of(package: str) -> str:
    """The version of an installed package; "" where it is not.

    Only this line of its description is read: all of it takes milliseconds.
    """
    try:
        text = metadata.distribution(package).read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        return ""
    for line in text.splitlines():
        if line.startswith("Version:"):
            return line.removeprefix("Version:").strip()
    return metadata.version(package)


@cache
def packages_named(*prefixes: str) -> list[str]:
    """The installed packages whose names begin so, with their versions."""
    found: set[str] = set()
    for folder in sys.path:
        with suppress(OSError):
            names = [name for name in os.listdir(folder or ".") if name.endswith(".dist-info")]
            found.update(name for name in names if name.startswith(prefixes))
    return sorted(found)
