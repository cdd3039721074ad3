"""A model that outlives its chief: parameter servers still have it when the chief comes back.

A checkpoint is what a new chief begins with, as in TensorFlow. But a chief that was killed comes
back to parameter servers that live, where other workers have gone on: restoring would undo their
steps. So a chief keeps what it finds if it is that job's chief (its launcher names a file in which
the life before has left a mark; within a process the session manager knows), if that life had the
model whole and did not fail by an error of its own, and if all of it is there and newer than the
checkpoint.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from runnel.checkpoint.reading import open_checkpoint
from runnel.distributed.progress_record import VARIABLE
from runnel.graph.collections import GraphKeys
from runnel.graph.errors import OpError
from runnel.graph.graph import Graph
from runnel.train.global_step import get_global_step

logger = logging.getLogger("runnel")

_KEPT: WeakSet[Any] = WeakSet()
_SUFFIX = ".model"


def kept_live(session: Any) -> bool:
    """True for a session that was begun with the model that it found."""
    return session in _KEPT


def failed() -> None:
    """Training has failed, perhaps because of what the model has become: nobody goes on with it.

    A loss that is no number is an example: a chief that goes on with such a model saves it, too.
    """
    if _MODELS:
        for model in list(_MODELS):
            model._mark = None
        _FILE.write("")


class _MarkFile:
    """What one life of a task leaves to the next; the first who asks in a process gets it."""

    def __init__(self) -> None:
        progress = os.environ.get(VARIABLE)
        self._path = None if progress is None else progress + _SUFFIX
        self._asked = False

    def left(self) -> str | None:
        """The mark of the life before, once."""
        if self._path is None or self._asked:
            return None
        self._asked = True
        try:
            with open(self._path, encoding="ascii") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, mark: str) -> None:
        """Replaces the mark; nothing where the launcher keeps no files from life to life."""
        if self._path is None:
            return
        self._asked = True
        try:
            with open(self._path, "w", encoding="ascii") as file:
                file.write(mark)
        except OSError as error:
            logger.debug("No mark of the model is kept: %s", error)


_FILE = _MarkFile()
_MODELS: WeakSet[LiveModel] = WeakSet()
"""Those of which this process has had one whole."""


class LiveModel:
    """Whether a chief's next session goes on with the model that is there."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._mark: str | None = None

    def is_newer(
        self,
        session: Any,
        is_there: Callable[[Any], bool],
        folder: str | None,
        path: str | None,
    ) -> bool:
        """True if the model was whole, is there, and no older than the checkpoint ``path``.

        Until :meth:`is_whole`, the model counts as one that is being made: a chief that is killed
        meanwhile begins from the checkpoint.
        """
        known, self._mark = self._mark or _FILE.left(), None
        _FILE.write("")
        step = get_global_step(self._graph)
        if not folder or step is None or known != self._mark_of(folder):
            return False
        if self._graph.get_collection(GraphKeys.SAVEABLE_OBJECTS):
            return False  # tables, iterators, queues: those of the chief's own task are lost
        saved = _saved_step(path, step.op.name)
        try:
            if saved is None or not is_there(session):
                return False
            live = int(session.run(step))
        except OpError:  # a parameter server is not there: restoring will say which
            return False
        if live < saved:
            return False
        logger.info("The parameter servers have the model of step %d: it is not restored.", live)
        _KEPT.add(session)
        return True

    def is_whole(self, folder: str) -> None:
        """The model was restored, initialised or kept: the next life of the chief may keep it."""
        if get_global_step(self._graph) is not None:
            self._mark = self._mark_of(folder)
            _FILE.write(self._mark)
            _MODELS.add(self)

    def _mark_of(self, folder: str) -> str:
        """Which model it is: its folder, its variables and where they are."""
        variables = self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        names = sorted(f"{v.name} {v.dtype.name} {v.shape} {v.device}" for v in variables)
        text = "\n".join([os.path.abspath(folder), *names])
        return hashlib.sha256(text.encode()).hexdigest()


def _saved_step(path: str | None, name: str) -> int | None:
    """The global step in a checkpoint; None where it has none, or one under another name.

    Without any checkpoint it is 0, as after initialising.
    """
    if path is None:
        return 0
    reader = open_checkpoint(path)
    return int(reader.tensor(name)) if reader.has(name) else None
