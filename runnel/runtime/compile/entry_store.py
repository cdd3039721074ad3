"""A folder of entries that processes share: named, checked, bounded in size.

It writes an entry beside its place and puts it there by one rename, so a reader sees all of it or
nothing. An entry begins with a mark, the version of this form, and the checksum of the rest with
its name; an entry that does not agree counts as absent. Nothing here raises an error: without a
folder nothing is kept. When the entries exceed the limit, the least recently used go.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
import time
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from runnel.native.cache_folder import UnusableFolder, cache_folder, cache_path

SIZE_VARIABLE = "RUNNEL_CACHE_SIZE"
DEFAULT_LIMIT = 1 << 30
RECORD = "segment-"
"""How the names of entries begin that are no executables, but tell how to find one."""
_MARK = b"runnel entry 1\n"
_SUFFIX, _UNFINISHED = ".entry", ".part"
_ABANDONED_SECONDS = 3600.0
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
logger = logging.getLogger("runnel")


class KeptEntry(NamedTuple):
    """A file of the folder; sorted, those that were used longest ago come first."""

    used: int
    size: int
    path: Path


def executables_path() -> Path:
    """Where executables are kept."""
    return cache_path() / "executables"


def size_limit() -> int:
    """How many bytes may be kept, as the environment says (``500M``, ``2G``; 0: none).

    Raises:
        ValueError: it says something else.
    """
    setting = os.environ.get(SIZE_VARIABLE, "").strip()
    if not setting:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", setting, re.IGNORECASE)
    if found is None:
        raise ValueError(f"{SIZE_VARIABLE}={setting} is not a size, such as 500M, 2G or 0 for none")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def executables() -> EntryStore | None:
    """The store of compiled programs; None where nothing can or shall be kept."""
    try:
        limit = size_limit()
    except ValueError as error:
        warnings.warn(f"{error}; the default is used", RuntimeWarning, stacklevel=2)
        limit = DEFAULT_LIMIT
    if not limit:
        return None
    try:
        folder = cache_folder() / "executables"
        folder.mkdir(mode=0o700, exist_ok=True)
    except (UnusableFolder, OSError) as error:
        logger.info("What is compiled is not kept: %s", error)
        return None
    return EntryStore(folder, limit)


class EntryStore:
    """Entries in ``folder``, of ``limit`` bytes together."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def read(self, name: str) -> bytes | None:
        """The content of an entry, which is then the last to go; None where there is none."""
        path = self._path(name)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        start = len(_MARK) + hashlib.sha256().digest_size
        packed = data[start:]
        if data[:start] != _head(name, packed):
            return None
        with suppress(OSError):
            os.utime(path)
        return zlib.decompress(packed)

    def write(self, name: str, content: bytes) -> None:
        """Keeps ``content``, in the place of an entry of that name; the oldest make room."""
        packed = zlib.compress(content, 1)
        data = _head(name, packed) + packed
        if len(data) > self.limit:
            return
        try:
            handle, written = tempfile.mkstemp(_UNFINISHED, dir=self.folder)
            try:
                with open(handle, "wb") as file:
                    file.write(data)
                os.replace(written, self._path(name))
            finally:
                Path(written).unlink(missing_ok=True)
        except OSError as error:
            logger.info("What was compiled is not kept: %s", error)
        self._make_room()

    def entries(self) -> list[KeptEntry]:
        """All entries, those that were used longest ago first."""
        return sorted(self._files(_SUFFIX))

    def clear(self) -> None:
        """Removes every entry.

        Raises:
            OSError: one cannot be removed.
        """
        for entry in self._files(_SUFFIX) + self._files(_UNFINISHED):
            entry.path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{_SUFFIX}"

    def _files(self, suffix: str) -> list[KeptEntry]:
        found = []
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith(suffix):
                    with suppress(OSError):  # another process has removed it
                        status = file.stat()
                        found.append(KeptEntry(status.st_mtime_ns, status.st_size, Path(file.path)))
        return found

    def _make_room(self) -> None:
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.limit
        abandoned = time.time_ns() - int(_ABANDONED_SECONDS * 1e9)
        going = [entry for entry in self._files(_UNFINISHED) if entry.used < abandoned]
        for entry in entries:
            if excess > 0:
                going.append(entry)
                excess -= entry.size
        for entry in going:
            with suppress(OSError):
                entry.path.unlink(missing_ok=True)


def _head(name: str, packed: bytes) -> bytes:
    return _MARK + hashlib.sha256(b"\0".join((name.encode(), packed))).digest()
