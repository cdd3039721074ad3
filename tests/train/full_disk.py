"""A disk that is full from some moment on, or fails once, seen from one process.

Everything that changes files is counted: opening one for writing, each write, closing, renaming,
making folders, syncing. The n-th fails as a full disk does, some of its bytes being written.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class FullDisk:
    """Files under ``folder``, of whose changes the one numbered ``fails_at`` fails (from 0).

    With ``stays_full`` all later ones fail too, but those that remove or rename: these need no
    room. Other files are not touched.
    """

    def __init__(self, folder: Path, fails_at: int | None, stays_full: bool) -> None:
        self._folder = os.path.abspath(folder)
        self._fails_at = fails_at
        self._stays_full = stays_full
        self.changes: list[str] = []

    def __enter__(self) -> FullDisk:
        self._real_open = io.open
        self._patched = {name: getattr(os, name) for name in ("replace", "rename", "mkdir")}
        self._patched["fsync"] = os.fsync
        builtins.open = io.open = self._open  # type: ignore[assignment]
        for name, real in self._patched.items():
            setattr(os, name, self._counted(name, real))
        os.fsync = self._sync
        return self

    def __exit__(self, *exception: object) -> None:
        builtins.open = io.open = self._real_open
        for name, real in self._patched.items():
            setattr(os, name, real)

    def _counted(self, what: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self._inside(args[-1] if what in ("replace", "rename") else args[0]):
                self.change(what)
            return real(*args, **options)

        return call

    def _sync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if self._inside(path) and os.path.isfile(path):
            self.change("sync")  # a system that has put writing off finds no room only here

    def _inside(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(
            self._folder
        )

    def _open(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not self._inside(file):
            return self._real_open(file, mode, *args, **options)
        self.change("open")
        return _FailingFile(self._real_open(file, mode, *args, **options), self)

    def change(self, what: str) -> None:
        """Notes a change; raises if it is the one that fails."""
        number = len(self.changes)
        self.changes.append(what)
        if self._fails_at is None or number < self._fails_at:
            return
        if number == self._fails_at or (self._stays_full and what not in ("replace", "rename")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _FailingFile:
    """A file of which a write that fails writes half."""

    def __init__(self, file: Any, disk: FullDisk) -> None:
        self._file = file
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        try:
            self._disk.change("write")
        except OSError:
            self._file.write(data[: len(data) // 2])
            raise
        return self._file.write(data)

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._disk.change("close")  # what is buffered has to go somewhere
        except OSError:
            self._file.truncate(self._file.tell() // 2)
            self._file.close()
            raise
        self._file.close()

    def __enter__(self) -> _FailingFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
