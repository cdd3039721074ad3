"""How often each variable scope's name was opened, from which default names become unique."""

from __future__ import annotations

from collections.abc import Callable


class _Name:
    """A part of a scope's name: how often the scope was opened, and the names inside it."""

    __slots__ = ("count", "inside")

    def __init__(self) -> None:
        self.count = 0
        self.inside: dict[str, _Name] = {}


class OpenedScopes:
    """Counts openings; forgetting and restoring cost what they change, not what is there."""

    def __init__(self) -> None:
        self._root = _Name()
        self._undo: list[Callable[[], None]] = []
        self._to_restore = 0

    def count(self, name: str) -> int:
        """How often the scope ``name`` was opened."""
        found: _Name | None = self._root
        for part in name.split("/"):
            found = found.inside.get(part) if found is not None else None
        return 0 if found is None else found.count

    def note(self, name: str) -> None:
        """Counts an opening of ``name``."""
        found = self._find(name)
        count, found.count = found.count, found.count + 1
        self._log(lambda: setattr(found, "count", count))

    def forget_inside(self, name: str) -> None:
        """Forgets every scope inside ``name``."""
        found = self._find(name)
        if found.inside:
            inside, found.inside = found.inside, {}
            self._log(lambda: setattr(found, "inside", inside))

    def begin(self) -> int:
        """Begins a block whose openings do not count after it; :meth:`restore` ends it."""
        self._to_restore += 1
        return len(self._undo)

    def restore(self, begun: int) -> None:
        """Makes the counts what they were when ``begin`` gave ``begun``."""
        self._to_restore -= 1
        while len(self._undo) > begun:
            self._undo.pop()()

    def _find(self, name: str) -> _Name:
        found = self._root
        for part in name.split("/"):
            inside = found.inside.get(part)
            if inside is None:
                inside = found.inside[part] = _Name()
            found = inside
        return found

    def _log(self, undo: Callable[[], None]) -> None:
        if self._to_restore:
            self._undo.append(undo)
