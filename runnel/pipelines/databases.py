"""Elements out of a database: the rows that a query gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.permitted_files import permitted
from runnel.pipelines.pipeline import END, Element, Pipeline, PipelineRun, Traversal


class SqlRows(Pipeline):
    """The rows that a query of an SQLite database gives; ``convert`` makes elements of them."""

    def __init__(self, path: str, query: str, convert: Callable[[tuple[Any, ...]], Element]):
        self.path, self.query, self.convert = permitted(path), query, convert

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Querying(self)


class _Querying(Traversal):
    def __init__(self, rows: SqlRows) -> None:
        self._rows = rows
        self._connection: Any = None
        self._cursor: Any = None
        self._given = 0

    def next(self) -> Any:
        import sqlite3  # which few programs need

        try:
            if self._cursor is None:
                self._open()
            row = self._cursor.fetchone()
        except sqlite3.Error as error:
            raise InvalidArgumentError(None, None, f"{self._rows.query!r}: {error}") from error
        if row is None:
            return END
        self._given += 1
        return self._rows.convert(row)

    def _open(self) -> None:
        import sqlite3

        # A prefetch may make elements on another thread than the one that closes it.
        self._connection = sqlite3.connect(
            f"file:{self._rows.path}?mode=ro", uri=True, check_same_thread=False
        )
        self._connection.text_factory = bytes
        self._cursor = self._connection.execute(self._rows.query)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def state(self) -> Any:
        return self._given

    def restore(self, state: Any) -> None:
        for _ in range(state):
            if self.next() is END:
                return
