"""A pipeline describes elements; a traversal over it makes them, one at a time.

An element is a list of arrays, one for each component. A pipeline can be iterated over any number
of times, by several traversals at once. A traversal is used by one thread at a time; after an
error it goes on with the element that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Element = list[Any]
Function = Callable[[Sequence[Any]], Element]
"""What the function of a transformation is at run time: of components, to components."""

END: Any = type("End", (), {"__repr__": lambda self: "END"})()
"""What a traversal gives when it has no more elements."""


class PipelineRun:
    """One use of a pipeline: what the traversals in it share."""

    def __init__(self, check: Callable[[], None] | None = None) -> None:
        self.check: Callable[[], None] = check or (lambda: None)
        """Raises an error when whoever asks for elements has to stop."""


class Traversal:
    """The elements of a pipeline, one after the other."""

    def next(self) -> Any:
        """The next element, or END."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends it: its threads stop, its files are closed."""


class Pipeline:
    """Elements that can be iterated over."""

    def iterate(self, run: PipelineRun) -> Traversal:
        """A traversal from the first element on."""
        raise NotImplementedError


class Stage(Traversal):
    """A traversal that takes elements from another one."""

    def __init__(self, source: Traversal) -> None:
        self.source = source

    def close(self) -> None:
        self.source.close()


class FromPython(Traversal):
    """The elements that a Python iterator gives, which never fails."""

    def __init__(self, elements: Any) -> None:
        self._elements = elements

    def next(self) -> Any:
        return next(self._elements, END)
