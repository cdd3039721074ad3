"""``FileWriter``: summaries, graphs and run metadata into event files."""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from typing import Any

from runnel.events.event_file_writer import EventFileWriter
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.serialized_message import FEWER_CONSTANTS, serialized_message

# By session: the writers of its folders, so that all FileWriters of both share a file.
_of_sessions: weakref.WeakKeyDictionary[Any, dict[str, EventFileWriter]]
_of_sessions = weakref.WeakKeyDictionary()


class FileWriter:
    """Writes what TensorBoard shows into a new event file in the folder ``logdir``.

    A thread of its own writes: a training loop waits only while more than ``max_queue`` events are
    pending. Events are in the file at most ``flush_secs`` later, and when ``flush`` or ``close``
    has returned or the program ends. Writers that are given the same ``session`` and ``logdir``
    share a file.

    Example:
        >>> with tf.summary.FileWriter("logs", sess.graph) as writer:
        ...     for step in range(100):
        ...         summary, _ = sess.run([summaries, train_op])
        ...         writer.add_summary(summary, step)
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is None:
            writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        else:
            writers = _of_sessions.setdefault(session, {})
            place = os.path.abspath(logdir)
            if place not in writers:
                writers[place] = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
            writer = writers[place]
            writer.reopen()  # if another closed it
        self.event_writer = writer
        self._seen_tags: set[str] = set()
        self._run_tags: set[str] = set()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)
            self._add_meta_graph_of(graph if graph is not None else graph_def)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.event_writer.get_logdir()

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a ``Summary``, serialized or not, for the step ``global_step``.

        The metadata of a tag is kept only where the tag is first seen.
        """
        event = _event()
        if isinstance(summary, bytes):
            event.summary.ParseFromString(summary)
        else:
            event.summary.CopyFrom(summary)
        event.summary.SetInParent()
        seen = self._seen_tags
        for value in event.summary.value:
            tag = value.tag
            if tag in seen:
                value.ClearField("metadata")
            else:
                seen.add(tag)
        self._add(event, global_step)

    def add_event(self, event: Any) -> None:
        """Adds an ``Event`` as it is."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph, which TensorBoard draws with its scopes and devices."""
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        described = _graph_def_of(graph if graph is not None else graph_def)
        content = serialized_message(described, "The GraphDef", FEWER_CONSTANTS)
        self._add(_event(graph_def=content), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a ``MetaGraphDef``."""
        from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

        if not isinstance(meta_graph_def, MetaGraphDef):
            raise TypeError(
                f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}"
            )
        content = serialized_message(meta_graph_def, "The MetaGraphDef", FEWER_CONSTANTS)
        self._add(_event(meta_graph_def=content), global_step)

    def _add_meta_graph_of(self, graph: Any) -> None:
        from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef

        self.add_meta_graph(MetaGraphDef(graph_def=_graph_def_of(graph)))

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds the ``RunMetadata`` of one call of ``run`` under a ``tag`` of its own."""
        if tag in self._run_tags:
            raise ValueError(
                f"The provided tag was already used for this event type: {tag!r} (a number in it, "
                "such as the step, makes it another)"
            )
        event = _event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._run_tags.add(tag)
        self._add(event, global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a ``SessionLog``: that a session started, saved or stopped."""
        self._add(_event(session_log=session_log), global_step)

    def _add(self, event: Any, step: Any) -> None:
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def _warn_if_closed(self) -> None:
        if self.event_writer.closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the "
                "FileWriter is explicitly reopened.",
                stacklevel=4,
            )

    def flush(self) -> None:
        """Returns when all that was added is in the file."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what is pending and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """After ``close``: more can be added, to a new file in the same folder."""
        self.event_writer.reopen()


def _event(**fields: Any) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(**fields)


def _graph_def_of(graph: Any) -> Any:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    if isinstance(graph, Graph):
        return graph.as_graph_def(add_shapes=True)
    if not isinstance(graph, GraphDef):
        raise TypeError(
            "The passed graph must be an instance of `Graph` or the deprecated `GraphDef`, not "
            f"{type(graph).__name__}"
        )
    return graph


class FileWriterCache:
    """One ``FileWriter`` for each folder.

    Example:
        >>> tf.summary.FileWriterCache.get("logs").add_summary(summary, step)
    """

    _cache: dict[str, FileWriter] = {}
    _lock = threading.RLock()  # guards the cache

    @staticmethod
    def clear() -> None:
        """Closes the writers and forgets them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache = {}

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of the folder, made with the default graph when it is first asked for."""
        with FileWriterCache._lock:
            writer = FileWriterCache._cache.get(logdir)
            if writer is None:
                writer = FileWriter(logdir, graph=get_default_graph())
                FileWriterCache._cache[logdir] = writer
            return writer
