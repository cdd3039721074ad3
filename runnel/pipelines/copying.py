"""Elements that are sent to the device of those who use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.pipelines.pipeline import END, Pipeline, PipelineRun, SameNumber, Stage, Traversal


class CopyToDevice(SameNumber):
    """The same elements, each sent by whoever asks for it: a thread, where a prefetch follows."""

    def __init__(self, source: Pipeline, send: Callable[[Any], Any]) -> None:
        self._source, self._send = source, send
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Copying(self._source.iterate(run), self._send)


class _Copying(Stage):
    def __init__(self, source: Traversal, send: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self._send = send

    def next(self) -> Any:
        element = self.source.next()
        return END if element is END else [self._send(value) for value in element]
