"""The iterator of a graph at run time: where steps take elements of a pipeline from."""

from __future__ import annotations

import functools
import itertools
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from runnel.pipelines.mapping import LOOK_SECONDS
from runnel.pipelines.pipeline import (
    END,
    Element,
    Pipeline,
    PipelineRun,
    Traversal,
    reached,
    resumed,
    state_of,
)
from runnel.pipelines.state_bytes import decoded, encoded
from runnel.pipelines.watching import INPUT_TIMES

_SIGN = "iterator"
_by_handle: weakref.WeakValueDictionary[str, IteratorState] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class IteratorState:
    """A traversal that steps share; the step that asks for an element makes it."""

    def __init__(self, name: str, types: Sequence[Any] = (), shapes: Sequence[Any] = ()) -> None:
        self.name = name
        self.types, self.shapes = tuple(types), tuple(shapes)
        """What the operation that made it says of the elements."""
        self.handle = f"{_SIGN}:{_process()}:{next(_numbers)}:{name}"
        """What stands for it in a string: in this process, and in no other."""
        _by_handle[self.handle] = self
        # Held while an element is made: elements are made one after the other.
        self._lock = threading.Lock()
        self._run = PipelineRun()
        self._pipeline: Pipeline | None = None
        self._traversal: Traversal | None = None
        self._gone: Exception | None = None

    def start(self, pipeline: Pipeline, check: Callable[[], None], again: bool = True) -> None:
        """Begins with the first element of ``pipeline``; again only if asked to."""
        self._acquire(check)
        try:
            if self._traversal is not None:
                if not again:
                    return
                self._traversal.close()
            self._run = PipelineRun(check)
            self._pipeline = pipeline
            self._begin(pipeline.iterate(self._run))
        finally:
            self._lock.release()

    def save(self, check: Callable[[], None], states_outside: Callable[[str], None]) -> bytes:
        """Where it stands; ``states_outside`` is told of state that is not part of it."""
        self._acquire(check)
        try:
            pipeline, traversal = self._begun("SerializeIterator")
            for part in reached(pipeline):
                for function in part.functions:
                    if function.state is not None:
                        states_outside(function.state)
            self._run.check = check
            return encoded(state_of(pipeline, traversal))
        finally:
            self._lock.release()

    def restore(self, saved: bytes, check: Callable[[], None]) -> None:
        """Goes on, over the pipeline that it was begun with, where ``saved`` says."""
        self._acquire(check)
        try:
            pipeline, traversal = self._begun("DeserializeIterator")
            run = PipelineRun(check)
            try:
                made = resumed(pipeline, run, decoded(saved))
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise DataLossError(
                    None, None, f"The saved state of an iterator does not fit its dataset: {error}"
                ) from error
            traversal.close()
            self._run = run
            self._begin(made)
        finally:
            self._lock.release()

    def _begin(self, traversal: Traversal) -> None:
        self._traversal = traversal
        if self._gone is not None:  # after it can be seen: who abandons this misses none
            traversal.close()
            raise self._gone

    def _begun(self, what: str) -> tuple[Pipeline, Traversal]:
        pipeline, traversal = self._pipeline, self._traversal
        if pipeline is None or traversal is None:
            self._require()
            raise FailedPreconditionError(
                None,
                None,
                f"{what} failed because the iterator has not been initialized. Run its initializer "
                "first.",
            )
        return pipeline, traversal

    @property
    def is_started(self) -> bool:
        return self._traversal is not None

    def next(self, check: Callable[[], None]) -> Element:
        """The next element; ``check`` raises an error when the step has to stop."""
        start = time.perf_counter()
        self._acquire(check)
        try:
            traversal = self._traversal  # which may be taken away at any moment
            if traversal is None:
                self._require()
                raise FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before getting the "
                    "next element.",
                )

            def both() -> None:
                check()
                self._require()

            self._run.check = both
            element = traversal.next()
        except Exception:
            self._require()  # threads that were ended meanwhile take no more work, or drop theirs
            raise
        finally:
            self._lock.release()
            INPUT_TIMES.add_wait(time.perf_counter() - start)
        if element is END:
            self._require()  # a traversal that was closed has no more elements either
            raise OutOfRangeError(None, None, "End of sequence")
        return element

    def _acquire(self, check: Callable[[], None]) -> None:
        self._require()
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            check()
            self._require()

    def _require(self) -> None:
        if self._gone is not None:
            raise self._gone

    def abandon(self, error: Exception) -> None:
        """It is gone with its session: what waits for it fails, its threads end."""
        self._gone = error
        traversal, self._traversal = self._traversal, None
        if traversal is not None:
            traversal.close()


@functools.cache
def _token(pid: int) -> str:
    """What tells a process from one of another machine, or of another time, with its number."""
    return secrets.token_hex(8)


def _process() -> str:
    pid = os.getpid()
    return f"{pid}.{_token(pid)}"


def iterator_of(handle: str) -> IteratorState:
    """The iterator that a string stands for."""
    found = _by_handle.get(handle)
    sign, _, rest = handle.partition(":")
    process = rest.partition(":")[0]
    if found is None and sign == _SIGN and process != _process():
        raise InvalidArgumentError(
            None,
            None,
            f"{handle!r} stands for an iterator of another process (number {process.split('.')[0]} "
            f"of its machine; this one is {os.getpid()}). Elements are made where their iterator "
            "is: place tf.data.Iterator.from_string_handle on the iterator's task, with "
            "tf.device('/job:.../task:...').",
        )
    if found is None:
        raise InvalidArgumentError(
            None,
            None,
            f"{handle!r} stands for no iterator of this process; iterator.string_handle() gives "
            "what does, while the iterator's session is open.",
        )
    return found
