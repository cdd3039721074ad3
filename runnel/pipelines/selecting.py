"""Which elements, and how often: taken, skipped, repeated, one pipeline after or beside another."""

from __future__ import annotations

from typing import Any

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    INFINITE,
    UNKNOWN,
    Block,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
)


class Take(Pipeline):
    """The first elements; all if the number is negative."""

    def __init__(self, source: Pipeline, count: int) -> None:
        self._source, self._count = source, count
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Taking(self._source.iterate(run), self._count)

    def as_repeated(self) -> Pipeline:
        return self._source.as_repeated() if self._count < 0 else self

    def cardinality(self) -> int:
        count = self._source.cardinality()
        if self._count < 0 or count == UNKNOWN:
            return count
        return self._count if count == INFINITE else min(count, self._count)


class _Taking(Stage):
    def __init__(self, source: Traversal, left: int) -> None:
        super().__init__(source)
        self._left = left

    def next(self) -> Any:
        if not self._left:
            return END
        element = self.source.next()
        self._left -= 1
        return element

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        return self.source.has_blocks

    @property
    def has_calls(self) -> bool:  # type: ignore[override]
        return self.source.has_calls

    def block(self, most: int) -> Block | None:
        if not self._left:
            return None
        found = self.source.block(most if self._left < 0 else min(most, self._left))
        self._left -= 0 if found is None else len(found[0])
        return found

    def own_state(self) -> Any:
        return self._left

    def restore_own(self, state: Any) -> None:
        self._left = state


class Skip(Pipeline):
    """What follows the first elements; nothing if the number is negative."""

    def __init__(self, source: Pipeline, count: int) -> None:
        self._source, self._count = source, count
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Skipping(self._source.iterate(run), self._count, run)

    def as_repeated(self) -> Pipeline:
        return self if self._count else self._source.as_repeated()

    def cardinality(self) -> int:
        count = self._source.cardinality()
        if self._count < 0:
            return 0
        return count if count < 0 else max(0, count - self._count)


class _Skipping(Stage):
    def __init__(self, source: Traversal, left: int, run: PipelineRun) -> None:
        super().__init__(source)
        self._left, self._run = left, run

    def next(self) -> Any:
        if self._left < 0:
            return END
        while self._left:
            self._run.check()
            if self.source.next() is END:
                self._left = 0
                return END
            self._left -= 1
        return self.source.next()

    def own_state(self) -> Any:
        return self._left

    def restore_own(self, state: Any) -> None:
        self._left = state


class Shard(Pipeline):
    """Every n-th element."""

    def __init__(self, source: Pipeline, shards: int, index: int) -> None:
        if shards < 1 or not 0 <= index < shards:
            raise InvalidArgumentError(
                None, None, f"index must be between 0 and {shards - 1} (currently {index})."
            )
        self._source, self._shards, self._index = source, shards, index
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Sharding(self._source.iterate(run), self._shards, self._index)

    def cardinality(self) -> int:
        count = self._source.cardinality()
        return count if count < 0 else (count + self._shards - 1 - self._index) // self._shards


class _Sharding(Stage):
    def __init__(self, source: Traversal, shards: int, index: int) -> None:
        super().__init__(source)
        self._shards, self._index, self._place = shards, index, 0

    def next(self) -> Any:
        while True:
            element = self.source.next()
            place, self._place = self._place, self._place + 1
            if element is END or place % self._shards == self._index:
                return element

    def own_state(self) -> Any:
        return self._place

    def restore_own(self, state: Any) -> None:
        self._place = state


class Repeat(Pipeline):
    """All elements again and again: so many times, or for ever if the number is negative."""

    def __init__(self, source: Pipeline, count: int, joins_shuffle: bool = False) -> None:
        self._source, self._count, self._joins_shuffle = source, count, joins_shuffle
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        joined = self._joins_shuffle or (run.joins_shuffles and self._count != 1)
        source = self._source.as_repeated() if joined else self._source
        return _Repeating(source, self._count, run, is_own=source is not self._source)

    def as_repeated(self) -> Pipeline:
        plain = self._count == 1 and not self._joins_shuffle
        return self._source.as_repeated() if plain else self

    def cardinality(self) -> int:
        count = self._source.cardinality()
        if not count or not self._count:
            return 0
        if self._count < 0 or count == INFINITE:
            return INFINITE
        return count if count == UNKNOWN else count * self._count


class _Repeating(Traversal):
    def __init__(self, source: Pipeline, left: int, run: PipelineRun, is_own: bool) -> None:
        self._pipeline, self._left, self._run = source, left, run
        self._is_own = is_own
        """Whether nobody else iterates over the pipeline: then its state is part of this one's."""
        self._current: Traversal | None = None
        self._had_any = True

    def next(self) -> Any:
        while True:
            self._run.check()
            if self._current is None:
                if not self._left or not self._had_any:
                    return END  # what has no elements has none for ever
                self._begin()
            assert self._current is not None
            element = self._current.next()
            if element is not END:
                self._had_any = True
                return element
            self._end()

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        if self._current is None and self._left and self._had_any:
            self._begin()
        return self._current is not None and self._current.has_blocks

    @property
    def has_calls(self) -> bool:  # type: ignore[override]
        return self.has_blocks and self._current is not None and self._current.has_calls

    def block(self, most: int) -> Block | None:
        while True:
            self._run.check()
            if self._current is None:
                if not self._left or not self._had_any:
                    return None
                self._begin()
            assert self._current is not None
            found = self._current.block(most)
            if found is not None:
                self._had_any = True
                return found
            self._end()

    def _end(self) -> None:
        self.close()
        if not self._left:
            self._pipeline.draw_unused()

    def _begin(self) -> None:
        self._left -= 1
        self._had_any = False
        self._current = self._pipeline.iterate(self._run)

    def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()

    def state(self) -> Any:
        inner = None if self._current is None else self._current.state()
        shared = self._pipeline.state() if self._is_own else None
        return [self._left, self._had_any, self._current is not None, inner, shared]

    def restore(self, state: Any) -> None:
        self._left, self._had_any, is_open, inner, shared = state
        if self._is_own:
            self._pipeline.restore(shared)
        if is_open:
            self._current = self._pipeline.iterate(self._run)
            self._current.restore(inner)


class Concatenate(Pipeline):
    """The elements of one pipeline, then those of another."""

    def __init__(self, sources: list[Pipeline]) -> None:
        self._sources = sources
        self.sources = self._sources

    def draw_unused(self) -> None:
        self._sources[0].draw_unused()

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Concatenating(self._sources, run)

    def cardinality(self) -> int:
        counts = [source.cardinality() for source in self._sources]
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)


class _Concatenating(Traversal):
    def __init__(self, sources: list[Pipeline], run: PipelineRun) -> None:
        self._sources, self._run = sources, run
        self._begun = 0
        self._current: Traversal | None = None

    def next(self) -> Any:
        while True:
            if self._current is None:
                if self._begun == len(self._sources):
                    return END
                self._current = self._sources[self._begun].iterate(self._run)
                self._begun += 1
            element = self._current.next()
            if element is not END:
                return element
            self.close()

    def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()

    def state(self) -> Any:
        inner = None if self._current is None else self._current.state()
        return [self._begun, self._current is not None, inner]

    def restore(self, state: Any) -> None:
        self._begun, is_open, inner = state
        if is_open:
            self._current = self._sources[self._begun - 1].iterate(self._run)
            self._current.restore(inner)


class Zip(Pipeline):
    """Elements of several pipelines side by side, until one of them ends."""

    def __init__(self, sources: list[Pipeline]) -> None:
        self._sources = sources
        self.sources = self._sources

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Zipping([source.iterate(run) for source in self._sources])

    def cardinality(self) -> int:
        counts = [source.cardinality() for source in self._sources]
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)


class _Zipping(Traversal):
    def __init__(self, sources: list[Traversal]) -> None:
        self._sources = sources

    def next(self) -> Any:
        element = []
        for source in self._sources:
            part = source.next()
            if part is END:
                return END
            element += part
        return element

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def state(self) -> Any:
        return [source.state() for source in self._sources]

    def restore(self, state: Any) -> None:
        for source, its in zip(self._sources, state, strict=True):
            source.restore(its)
