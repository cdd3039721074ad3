"""A pipeline describes elements; a traversal over it makes them, one at a time.

An element is a list of arrays, one for each component. A pipeline can be iterated over any number
of times, by several traversals at once. A traversal is used by one thread at a time; after an
error it goes on with the element that follows.

A traversal can say where it stands, in plain values, and another traversal of an equal pipeline
goes on from there: that is how iterators are in checkpoints.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runnel.graph.errors import InvalidArgumentError, UnimplementedError
from runnel.memory import keep_some_freed_memory
from runnel.pipelines.watching import INPUT_TIMES
from runnel.queues.buffers import Buffers

Element = list[Any]
Block = list[Any]
"""Several elements: for each component a *column*, an array with a row for each element, or a list
of the values where they may differ in shape."""


class Function(Protocol):
    """What the function of a transformation is at run time: of components, to components."""

    @property
    def pipelines(self) -> Sequence[Pipeline]:
        """The pipelines that it was given from outside."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def state(self) -> str | None:
        """What it uses that no checkpoint of an iterator holds, such as a random stream."""

    def __call__(self, element: Sequence[Any], /) -> Element: ...

    @property
    def has_rows(self) -> bool:
        """Whether :meth:`rows` can be called."""

    def rows(self, columns: Sequence[Any], count: int, /) -> Block:
        """What ``count`` calls give. After an error it is as if none had been made."""


END: Any = type("End", (), {"__repr__": lambda self: "END"})()
"""What a traversal gives when it has no more elements."""


INFINITE = -1
UNKNOWN = -2


class Record(Protocol):
    """Is told numbers about elements."""

    def samples(self, name: str, values: Sequence[float]) -> None:
        """Of a distribution, values."""

    def scalar(self, name: str, value: float) -> None:
        """How large something is now."""


class PipelineRun:
    """One use of a pipeline: what the traversals in it share.

    ``within`` is the use that this one is a part of.
    """

    def __init__(
        self, check: Callable[[], None] | None = None, within: PipelineRun | None = None
    ) -> None:
        # Elements come and go, and are often large: their memory serves the next ones.
        keep_some_freed_memory()
        if check is None:
            check = (lambda: None) if within is None else (lambda: within.check())
        self.check: Callable[[], None] = check
        """Raises an error when whoever asks for elements has to stop."""
        self.joins_shuffles: bool = within is not None and within.joins_shuffles
        """Whether a shuffle that is repeated draws all its orders from one stream."""
        self.times_stages: bool = within is not None and within.times_stages
        """Whether what each stage takes for an element is recorded."""
        self.record: Record | None = None if within is None else within.record
        """Who is told what the elements take; None where nobody asks."""


class Traversal:
    """The elements of a pipeline, one after the other."""

    def next(self) -> Any:
        """The next element, or END."""
        raise NotImplementedError

    has_blocks = False
    """Whether it can give several elements at once faster than one after the other."""
    has_calls = False
    """Whether that is so because functions are called for several of them at once."""

    def block(self, most: int) -> Block | None:
        """The next elements, at most so many but one at least; None at the end.

        Only where ``has_blocks``. It raises an error in place of the element that has it: those
        before are given first.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Ends it: its threads stop, its files are closed."""

    def state(self) -> Any:
        """Where it stands: None, numbers, strings, elements, and lists of these."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Goes on where another traversal stood. Called before the first element is asked for."""
        raise NotImplementedError


class Pipeline:
    """Elements that can be iterated over."""

    sources: Sequence[Pipeline] = ()
    """The pipelines that this one takes elements from."""
    functions: Sequence[Function] = ()
    """The functions that make its elements."""
    waits = False
    """Whether its traversals wait for a thread rather than work."""
    has_threads = False
    """Whether threads of its traversals make elements ahead."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "iterate" in vars(cls):
            cls.iterate = _watched(cls.iterate)  # type: ignore[method-assign]

    @property
    def title(self) -> str:
        """What people call it: the kind of stage, and its function."""
        names = [function.name for function in self.functions if function.name]
        kind = re.sub(r"(?<!^)(?=[A-Z])", " ", type(self).__name__).lower()
        return f"{kind} ({names[0]})" if names else kind

    def iterate(self, run: PipelineRun) -> Traversal:
        """A traversal from the first element on."""
        raise NotImplementedError

    def as_repeated(self) -> Pipeline:
        """What a repetition that joins shuffles iterates over, again and again."""
        return self

    def draw_unused(self) -> None:
        """Draws the seeds of one traversal that is never used.

        TensorFlow 1.15 begins one where a repetition or a shuffle has come to its end.
        """
        for source in self.sources:
            source.draw_unused()

    def cardinality(self) -> int:
        """How many elements there are, as far as that is known without making them."""
        return UNKNOWN

    def state(self) -> Any:
        """What its traversals share and change."""
        return None

    def restore(self, state: Any) -> None:
        """Takes over what another pipeline's traversals shared."""


_MICRO = 1e6


def time_elements(traversal: Any, name: str, record: Record) -> None:
    """Has ``record`` told how many microseconds each element of ``traversal`` takes.

    Elements that are made together take the same each.
    """
    one, several = traversal.next, traversal.block

    def counted_one() -> Any:
        start = time.perf_counter()
        element = one()
        if element is not END:
            record.samples(name, [int((time.perf_counter() - start) * _MICRO)])
        return element

    def counted_several(most: int) -> Block | None:
        start = time.perf_counter()
        block: Block | None = several(most)
        if block is not None:
            count = len(block[0])
            record.samples(name, [int((time.perf_counter() - start) * _MICRO / count)] * count)
        return block

    traversal.next, traversal.block = counted_one, counted_several


def _watched(iterate: Callable[..., Traversal]) -> Callable[..., Traversal]:
    """``iterate``, of which the traversals are timed if someone watches."""

    def iterated(self: Pipeline, run: PipelineRun) -> Traversal:
        made = iterate(self, run)
        if run.record is not None and run.times_stages and not self.waits:
            time_elements(made, f"record_latency::{self.title}", run.record)
        if INPUT_TIMES.is_watched and not self.waits:
            timed: Any = made
            timed.next = INPUT_TIMES.timed(self.title, made.next)
            timed.block = INPUT_TIMES.timed(self.title, made.block)
        return made

    return iterated


def on_host(element: Element) -> Element:
    """``element`` in the host's memory."""
    return [
        value if isinstance(value, np.ndarray | np.generic) else np.asarray(value)
        for value in element
    ]


def columns_of(elements: Sequence[Element]) -> Block:
    """Elements as a block."""
    return [list(column) for column in zip(*elements, strict=True)]


def elements_of(block: Block) -> list[Element]:
    """The elements of a block, each with memory of its own."""
    columns = [own_rows(column) for column in block]
    return [list(element) for element in zip(*columns, strict=True)]


def rows_of(column: Any) -> list[Any]:
    """The values of a column."""
    if isinstance(column, list):
        return column
    if column.ndim == 1 and column.dtype == object:
        return [column[i, ...] for i in range(len(column))]  # a string as a tensor's value
    return list(column)


def own_rows(column: Any) -> list[Any]:
    """The values of a column: none keeps the memory of the others."""
    if isinstance(column, list) or (column.ndim == 1 and column.dtype != object):
        return rows_of(column)
    return [row.copy() for row in rows_of(column)]


def joined_columns(columns: Sequence[Any], buffers: Buffers | None = None) -> Any:
    """Columns of one component, one behind the other; an array lies in one of ``buffers``."""
    if len(columns) == 1:
        return columns[0]
    kinds = {None if isinstance(one, list) else (one.shape[1:], one.dtype) for one in columns}
    if len(kinds) == 1 and None not in kinds:
        if buffers is None or columns[0].dtype == object:
            return np.concatenate(columns)
        rows = sum(map(len, columns))
        out = buffers.empty((rows, *columns[0].shape[1:]), columns[0].dtype)
        return np.concatenate(columns, out=out)
    return [value for column in columns for value in own_rows(column)]


class SameNumber(Pipeline):
    """A pipeline with as many elements as its only source."""

    def cardinality(self) -> int:
        return self.sources[0].cardinality()


class Stage(Traversal):
    """A traversal that takes elements from another one."""

    def __init__(self, source: Traversal) -> None:
        self.source = source

    def close(self) -> None:
        self.source.close()

    def state(self) -> Any:
        return [self.source.state(), self.own_state()]

    def restore(self, state: Any) -> None:
        source, own = state
        self.source.restore(source)
        self.restore_own(own)

    def own_state(self) -> Any:
        """Where it stands, beside its source."""
        return None

    def restore_own(self, state: Any) -> None:
        """Takes over what :meth:`own_state` gave."""


class Indexed(Traversal):
    """Elements that can be made from their number."""

    def __init__(
        self,
        count: int,
        at: Callable[[int], Element],
        between: Callable[[int, int], Element] | None = None,
        rows_at: Callable[[list[int]], Block] | None = None,
    ) -> None:
        self._count, self._at, self._place = count, at, 0
        self._between, self.has_blocks = between, between is not None
        self.rows_at = rows_at
        """Makes several elements from their numbers."""

    def next(self) -> Any:
        place = self._place
        if place >= self._count:
            return END
        self._place = place + 1
        return self._at(place)

    def block(self, most: int) -> Block | None:
        place = self._place
        end = min(place + most, self._count)
        if place >= end or self._between is None:
            return None
        self._place = end
        return self._between(place, end)

    def numbers(self, most: int) -> range:
        """The numbers of the next elements, at most so many, which it goes past."""
        begin = self._place
        self._place = min(begin + most, self._count)
        return range(begin, self._place)

    def state(self) -> Any:
        return self._place

    def restore(self, state: Any) -> None:
        self._place = state


def reached(pipeline: Pipeline) -> list[Pipeline]:
    """The pipelines that ``pipeline`` is made of, each once, itself first."""
    found: dict[int, Pipeline] = {}
    left = [pipeline]
    while left:
        one = left.pop()
        if id(one) not in found:
            found[id(one)] = one
            left += one.sources
            left += [p for function in one.functions for p in function.pipelines]
    return list(found.values())


def state_of(pipeline: Pipeline, traversal: Traversal) -> Any:
    """Where ``traversal`` of ``pipeline`` stands."""
    shared = [[type(one).__name__, one.state()] for one in reached(pipeline)]
    return [shared, traversal.state()]


def resumed(pipeline: Pipeline, run: PipelineRun, state: Any) -> Traversal:
    """A traversal of ``pipeline`` that goes on where :func:`state_of` says."""
    shared, place = state
    parts = reached(pipeline)
    there, here = [name for name, _ in shared], [type(one).__name__ for one in parts]
    if there != here:
        raise InvalidArgumentError(
            None,
            None,
            f"The iterator was saved over another dataset: that was made of {', '.join(there)}; "
            f"this one is made of {', '.join(here)}. Build the dataset as it was.",
        )
    traversal = pipeline.iterate(run)
    try:
        traversal.restore(place)
    except BaseException:
        traversal.close()
        raise
    for one, (_, kept) in zip(parts, shared, strict=True):
        one.restore(kept)
    return traversal


def not_saved(what: str, instead: str) -> UnimplementedError:
    """The error of a traversal that cannot say where it stands."""
    return UnimplementedError(None, None, f"{what} cannot be saved in a checkpoint: {instead}")
