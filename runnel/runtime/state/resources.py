"""Queues and other resources at run time: by container and name, made when they are first used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from runnel.graph.operation import Operation
from runnel.passes.program.state_access import variable_name
from runnel.queues.collective import Collectives


class Resource(Protocol):
    """Something that steps share."""

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits for it: it is gone."""


R = TypeVar("R", bound=Resource)


class Resources:
    """The resources of a session."""

    def __init__(self) -> None:
        # Guards both tables; held while a resource is looked up or made, not while it is used.
        self._lock = threading.RLock()
        self._containers: dict[str, dict[tuple[type, str], Resource]] = {}
        # What each operation has found, so that a step need not look at names.
        self._found: dict[Operation, Resource] = {}
        self._handles: dict[Operation, np.ndarray] = {}
        self.collectives = Collectives()
        """What devices of this task, and of others, make together."""

    def find(
        self,
        operation: Operation,
        kind: type[R],
        make: Callable[[str], R],
        check: Callable[[R], None] | None = None,
    ) -> R:
        """The resource that ``operation`` denotes; ``make(name)`` if there is none.

        ``check`` compares one that another operation has made with what this one says.
        """
        found: Any = self._found.get(operation)
        if found is not None:
            return found
        container, name = variable_name(operation)
        with self._lock:
            named = self._containers.setdefault(container, {})
            present: Any = named.get((kind, name))
            if present is None:
                present = named[kind, name] = make(name)
            elif check is not None:
                check(present)
            self._found[operation] = present
            return present

    def handle(
        self,
        operation: Operation,
        kind: type[R],
        make: Callable[[str], R],
        check: Callable[[R], None] | None = None,
    ) -> np.ndarray:
        """What :meth:`find` gives, as a tensor's value: a scalar array."""
        handle = self._handles.get(operation)
        if handle is None:
            handle = np.empty((), object)
            with self._lock:
                handle[()] = self.find(operation, kind, make, check)
                self._handles[operation] = handle
        return handle

    def named(self) -> list[tuple[str, Resource]]:
        """What there is now, by name."""
        with self._lock:
            return [
                (name, resource)
                for named in self._containers.values()
                for (_, name), resource in named.items()
            ]

    def clear(self, containers: Sequence[str] | None, error: Exception) -> None:
        """Forgets what is in the named containers, or in all; who waits for it fails."""
        gone: list[Resource] = []
        with self._lock:
            self._found.clear()
            self._handles.clear()
            for name, named in self._containers.items():
                if containers is None or name in containers:
                    gone += named.values()
                    named.clear()
        for resource in gone:
            resource.abandon(error)
        if containers is None:
            self.collectives.abandon(error)
