"""Elements that are made once and kept in a file, for this process and others."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from runnel.checkpoint.whole_file import appearing, sync_folder
from runnel.gfile import exists
from runnel.graph.errors import NotFoundError
from runnel.graph.permitted_files import permitted
from runnel.pipelines.pipeline import (
    END,
    Pipeline,
    PipelineRun,
    SameNumber,
    Traversal,
)
from runnel.pipelines.state_bytes import decoded, encoded
from runnel.records.framing import framed
from runnel.records.record_reader import RecordReader


class DiskCache(SameNumber):
    """Elements out of a file, which the first traversal that reaches the end writes.

    The file appears complete or not at all: a process that is killed leaves none, and the next one
    begins anew.
    """

    def __init__(self, source: Pipeline, filename: str) -> None:
        self.path = permitted(f"{filename}.cache")
        self.source = source
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _DiskCaching(self, run)


class _DiskCaching(Traversal):
    """Reads the file if there is one when the first element is asked for, or writes it."""

    def __init__(self, cache: DiskCache, run: PipelineRun) -> None:
        self._cache, self._run = cache, run
        self._reader: RecordReader | None = None
        self._source: Traversal | None = None
        self._writing: Any = None
        self._file: Any = None

    def next(self) -> Any:
        if self._reader is None and self._source is None:
            self._begin()
        if self._reader is not None:
            record = next(self._reader, None)
            return END if record is None else decoded(record)
        assert self._source is not None
        element = self._source.next()
        if element is END:
            self._finish()
        elif self._file is not None:
            self._file.write(framed(encoded(element)))
        return element

    def _begin(self) -> None:
        if exists(self._cache.path):
            self._reader = RecordReader(self._cache.path)
            return
        self._source = self._cache.source.iterate(self._run)
        self._writing = contextlib.ExitStack()
        self._file = self._writing.enter_context(appearing(self._cache.path))

    def _finish(self) -> None:
        writing, self._writing, self._file = self._writing, None, None
        if writing is not None:
            writing.close()
            sync_folder(os.path.dirname(self._cache.path))

    def close(self) -> None:
        writing, self._writing, self._file = self._writing, None, None
        if writing is not None:  # not at the end: what was written is no cache
            with contextlib.suppress(_Unfinished):
                writing.__exit__(_Unfinished, _Unfinished(), None)
        if self._reader is not None:
            self._reader.close()
        if self._source is not None:
            self._source.close()

    def state(self) -> Any:
        if self._reader is not None:
            return ["reading", self._reader.offset]
        if self._source is not None:
            return ["writing", self._source.state()]
        return ["not begun", None]

    def restore(self, state: Any) -> None:
        what, place = state
        if what == "reading":
            if not exists(self._cache.path):
                raise NotFoundError(
                    None,
                    None,
                    f"The iterator was saved while it read the cache {self._cache.path}, which is "
                    "no longer there.",
                )
            self._reader = RecordReader(self._cache.path)
            self._reader.seek(place)
        elif what == "writing":
            # The elements before are not in a file: the next traversal writes one.
            self._source = self._cache.source.iterate(self._run)
            self._source.restore(place)


class _Unfinished(Exception):
    """The traversal was closed before it reached the end."""
