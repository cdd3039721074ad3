"""Keeps what other packages know of a graph: one object of each type, which dies with the graph."""

from __future__ import annotations

import threading
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Attachments:
    """The part of a graph that keeps what others know of it.

    A table outside the graph would not do: what is known refers to operations, these to their
    graph, so even a weak table would keep every graph alive.
    """

    def __init__(self) -> None:
        super().__init__()
        self._attached: dict[type[Any], Any] = {}
        # Two threads that ask for the first time get the same object.
        self._attaching = threading.Lock()

    def attached(self, kind: type[T]) -> T:
        """The graph's one object of type ``kind``, made without arguments when first asked for.

        Example:
            >>> class Notes(list): ...
            >>> graph.attached(Notes).append("reviewed")
            >>> graph.attached(Notes)
            ['reviewed']
        """
        found = self._attached.get(kind)
        if found is None:
            with self._attaching:
                if kind not in self._attached:
                    self._attached[kind] = kind()
                found = self._attached[kind]
        return cast(T, found)
