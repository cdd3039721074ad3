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
    CancelledError,
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
from runnel.step_time import LeftBehind, current_look

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
        # An element that a step has asked for, but not waited for: the next step gets it.
        self._making = LeftBehind()
        self._waits_above = self._waits_inside = False
        """Whether threads make its elements ahead, or what its elements are made of."""

    def start(self, pipeline: Pipeline, check: Callable[[], None], again: bool = True) -> None:
        """Begins with the first element of ``pipeline``; again only if asked to."""
        self._acquire(check)
        try:
            if self._traversal is not None:
                if not again:
                    return
                self._end()
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
            left = self._left_element(check)
            self._run.check = check
            return encoded([*state_of(pipeline, traversal), *left])
        finally:
            self._lock.release()

    def restore(self, saved: bytes, check: Callable[[], None]) -> None:
        """Goes on, over the pipeline that it was begun with, where ``saved`` says."""
        self._acquire(check)
        try:
            pipeline, _ = self._begun("DeserializeIterator")
            run = PipelineRun(check)
            try:
                shared, place, *left = decoded(saved)
                given = [_as_given(*one) for one in left]
                made = resumed(pipeline, run, [shared, place])
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise DataLossError(
                    None, None, f"The saved state of an iterator does not fit its dataset: {error}"
                ) from error
            self._end()
            self._run = run
            self._begin(made)
            for element, failure in given:
                self._making.give(element, failure)
        finally:
            self._lock.release()

    def _begin(self, traversal: Traversal) -> None:
        self._traversal = traversal
        if self._pipeline is not None:
            top = self._pipeline
            while top.waits and not top.has_threads:  # it does nothing but pass elements on
                (top,) = top.sources
            self._waits_above = top.waits
            self._waits_inside = any(one.has_threads for one in reached(top)[1:])
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

    def next(
        self, check: Callable[[], None], computing: Callable[[], None] | None = None
    ) -> Element:
        """The next element.

        ``check`` raises an error when the step has to stop, or should not wait any longer;
        ``computing`` only when it has to stop although it computes.
        """
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
            element = self._next(traversal, check, computing or check)
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

    def _next(
        self, traversal: Traversal, check: Callable[[], None], computing: Callable[[], None]
    ) -> Any:
        """The next element of ``traversal``, which loses nothing when the step has to stop.

        A stage that is stopped in the middle would lose what it has taken from others. So it is
        not: where the step may have to stop a thread makes the element.
        """
        above = self._waits_above
        is_left = self._making.left is not None

        def look() -> None:
            (check if above or self._waits_inside or is_left else computing)()
            self._require()

        if not is_left:
            # On top a thread gives an element when that is there, or not at all.
            never_stops = current_look() is None and not self._waits_inside
            if above or never_stops:
                self._run.check = look
                return self._made(traversal)
        self._run.check = self._require
        return self._making.result(self._made, traversal, look=look)

    def _left_element(self, check: Callable[[], None]) -> list[Any]:
        """The element that a step has not waited for, as what is saved of it, if there is one."""
        if self._making.left is None:
            return []
        made = self._making.ended(check)
        error = made.exception()
        if error is not None:
            return [[None, error]]
        element = made.result()
        return [[None if element is END else list(element), None]]

    def _made(self, traversal: Traversal) -> Any:
        """The next element of ``traversal``, which may be ended meanwhile."""
        try:
            return traversal.next()
        finally:
            if self._traversal is not traversal:  # until it looked it may have begun threads
                traversal.close()

    def _end(self) -> None:
        """Ends the traversal; an element that a step has not waited for is dropped."""
        traversal, self._traversal = self._traversal, None
        if self._making.left is not None:
            self._run.check = _raise_ended
            self._making = LeftBehind()
        if traversal is not None:
            traversal.close()

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


def _as_given(element: list[Any] | None, error: Exception | None) -> tuple[Any, Exception | None]:
    """What was saved of an element that a step had not waited for."""
    if not isinstance(element, list | None) or not isinstance(error, Exception | None):
        raise ValueError("it has no element where a step was to get one")
    return END if element is None and error is None else element, error


def _raise_ended() -> None:
    raise CancelledError(None, None, "The iterator was begun again")


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
