"""A disk that loses what was not synced, seen from one process.

What a program does to files under a folder is recorded. :meth:`PowerCuts.left` then says what a
power cut at that moment may leave, by POSIX alone: a file has the bytes that it had when it was
last synced (none, if it never was), and of the changes to a folder since that was synced (files
that are made, renamed, removed) any may have reached the disk and any not, in whatever order.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Left = dict[str, bytes]
"""The files that are left, by their names in the folder."""


@dataclass(eq=False)
class _Stored:
    """A file, whatever it is called: the bytes of it that are on the disk."""

    content: bytes = b""


@dataclass(frozen=True)
class _Change:
    """What a folder has under a name from now on: a file, a folder, or nothing."""

    path: str
    now: _Stored | None
    is_folder: bool = False
    before: str | None = None
    """The name that it had."""


@dataclass
class PowerCuts:
    """The files under ``folder``; ``moment`` is called after each change and each sync.

    Syncs of what ``forgets`` says, "files" or "folders", do nothing.
    """

    folder: Path
    moment: Callable[[], None]
    forgets: str = ""
    _live: dict[str, _Stored] = field(default_factory=dict)
    _on_disk: dict[str, _Stored | None] = field(default_factory=dict)
    _pending: list[_Change] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def __enter__(self) -> PowerCuts:
        self._root = os.path.realpath(self.folder)
        for folder, _, _ in os.walk(self._root):
            self._on_disk[folder] = None
        self._open = io.open
        self._real = {
            name: getattr(os, name) for name in ("replace", "rename", "unlink", "mkdir", "fsync")
        }
        builtins.open = io.open = self._opened  # type: ignore[assignment]
        for name in self._real:
            setattr(os, name, getattr(self, f"_{name}"))
        return self

    def __exit__(self, *exception: object) -> None:
        builtins.open = io.open = self._open
        for name, real in self._real.items():
            setattr(os, name, real)

    # What the program does ------------------------------------------------------------------

    def _inside(self, path: Any) -> str | None:
        if not isinstance(path, str | os.PathLike):
            return None
        full = os.path.realpath(os.fspath(path))
        return full if full.startswith(self._root) else None

    def _note(self, event: str, *changes: _Change) -> None:
        self._pending += changes
        self.events.append(event)
        self.moment()

    def _opened(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        opened = self._open(file, mode, *args, **options)
        path = self._inside(file) if set(mode) & set("wax") else None
        if path is not None:
            self._live[path] = _Stored()
            self._note("open", _Change(path, self._live[path]))
        return opened

    def _replace(self, source: Any, target: Any, **options: Any) -> None:
        self._real["replace"](source, target, **options)
        before, after = self._inside(source), self._inside(target)
        if before is not None and after is not None:
            self._live[after] = self._live.pop(before)
            self._note("replace", _Change(after, self._live[after], before=before))

    _rename = _replace

    def _unlink(self, path: Any, **options: Any) -> None:
        self._real["unlink"](path, **options)
        full = self._inside(path)
        if full is not None and self._live.pop(full, None) is not None:
            self._note("unlink", _Change(full, None))

    def _mkdir(self, path: Any, *args: Any, **options: Any) -> None:
        self._real["mkdir"](path, *args, **options)
        full = self._inside(path)
        if full is not None:
            self._note("mkdir", _Change(full, None, is_folder=True))

    def _fsync(self, descriptor: int) -> None:
        path = self._inside(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path is None or self.forgets == ("folders" if os.path.isdir(path) else "files"):
            return
        if os.path.isdir(path):
            kept = [c for c in self._pending if os.path.dirname(c.path) != path]
            for change in self._pending:
                if change not in kept:
                    _apply(change, self._on_disk)
            self._pending = kept
        else:
            self._live[path].content = Path(path).read_bytes()
        self._note("sync")

    # What is left ---------------------------------------------------------------------------

    def left(self) -> Iterator[Left]:
        """What a power cut at this moment may leave: of the changes all, none, one, all but one."""
        seen = set()
        every = set(range(len(self._pending)))
        for some in (every, set(), *({n} for n in every), *(every - {n} for n in every)):
            names = dict(self._on_disk)
            for number, change in enumerate(self._pending):
                if number in some:
                    _apply(change, names)
            found = {
                os.path.relpath(path, self._root): stored.content
                for path, stored in names.items()
                if stored is not None and os.path.dirname(path) in names
            }
            key = frozenset(found.items())
            if key not in seen:
                seen.add(key)
                yield found


def _apply(change: _Change, names: dict[str, _Stored | None]) -> None:
    if change.before is not None:
        names.pop(change.before, None)
    if change.now is None and not change.is_folder:
        names.pop(change.path, None)
    else:
        names[change.path] = change.now
