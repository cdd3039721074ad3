"""Where a loop's batches come from: arrays, tensors and datasets, generators."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from runnel import logging
from runnel.graph.errors import OutOfRangeError
from runnel.keras.backend_state import get_session
from runnel.keras.sequence import Sequence


class Batches:
    """A source of batches: for each epoch, what a step is fed and how many examples that is."""

    unit = "step"
    samples: int | None = None
    steps: int | None = None
    known_before = True

    def epoch(self) -> Iterator[tuple[list[Any], int]]:
        """The batches of the next epoch."""
        raise NotImplementedError

    def weight(self, size: int) -> int:
        """How much a batch counts in the mean loss of its epoch."""
        return 1

    def close(self) -> None:
        """Ends what was started for it."""


class ArrayBatches(Batches):
    """Parts of arrays, in order or shuffled anew for each epoch."""

    unit = "sample"

    def __init__(self, arrays: list[Any], batch_size: int, shuffle: Any) -> None:
        self.arrays, self.batch_size, self.shuffle = arrays, batch_size, shuffle
        self.samples = int(arrays[0].shape[0])

    def epoch(self) -> Iterator[tuple[list[Any], int]]:
        """Batches of ``batch_size`` examples; the last one may be smaller."""
        assert self.samples is not None
        count, size = self.samples, self.batch_size
        order: Any = None
        if self.shuffle == "batch":
            order = _shuffled_batches(np.arange(count), size)
        elif self.shuffle:
            order = np.arange(count)
            np.random.shuffle(order)
        arrays = self.arrays
        if count <= size and order is None:
            yield arrays, count
            return
        for start in range(0, count, size):
            if order is None:
                yield [a[start : start + size] for a in arrays], min(size, count - start)
            else:
                chosen = order[start : start + size]
                if self.shuffle == "batch" or not isinstance(arrays[0], np.ndarray):
                    chosen = np.sort(chosen)
                yield [a[chosen] for a in arrays], len(chosen)

    def weight(self, size: int) -> int:
        """Its examples."""
        return size


def _shuffled_batches(order: Any, size: int) -> Any:
    whole = len(order) // size
    last = order[whole * size :]
    batches = order[: whole * size].reshape((whole, size))
    np.random.shuffle(batches)
    return np.append(batches.flatten(), last)


class RepeatedBatches(Batches):
    """The same whole arrays in each of ``steps`` steps."""

    def __init__(self, arrays: list[Any], steps: int) -> None:
        self.arrays, self.steps = arrays, steps

    def epoch(self) -> Iterator[tuple[list[Any], int]]:
        """All of the arrays, ``steps`` times."""
        for _ in range(self.steps or 0):
            yield self.arrays, 1


class TensorBatches(Batches):
    """What tensors are in each step: those of a program, or the next element of a dataset."""

    def __init__(
        self,
        tensors: Any,
        prepare: Callable[[Any], list[Any]],
        steps: int | None,
        restart: Any = None,
        what: str = "dataset",
    ) -> None:
        self.tensors, self.prepare, self.steps = tensors, prepare, steps
        self._restart, self._what = restart, what
        self._every_epoch = restart is not None and steps is None
        self._session = get_session()
        self._run = self._session.make_callable(tensors)
        self._started = False
        self.ended = False

    def epoch(self) -> Iterator[tuple[list[Any], int]]:
        """``steps`` batches, or all that the dataset has."""
        if self._restart is not None and (self._every_epoch or not self._started):
            self._session.run(self._restart)
        self._started = True
        step = 0
        while self.steps is None or self._every_epoch or step < self.steps:
            try:
                values = self._run()
            except OutOfRangeError:
                if not self._every_epoch:
                    self.ended = True
                    logging.warning(
                        "Your %s ran out of data; interrupting training. Make sure that it can "
                        "generate at least `steps_per_epoch * epochs` batches (in this case, %s "
                        "per epoch). You may need to use the repeat() function when building it.",
                        *(self._what, self.steps),
                    )
                elif not step:
                    raise ValueError(f"Your {self._what} has no elements") from None
                else:
                    self.steps = step
                return
            step += 1
            yield self.prepare(values), 1


class GeneratorBatches(Batches):
    """What a generator yields, or the batches of a :class:`Sequence`, made by threads ahead."""

    def __init__(
        self,
        source: Any,
        prepare: Callable[[Any], list[Any]],
        steps: int | None,
        shuffle: bool = False,
        max_queue_size: int = 10,
        workers: int = 1,
    ) -> None:
        self.source, self.prepare, self.shuffle = source, prepare, shuffle
        self.is_sequence = isinstance(source, Sequence) or (
            hasattr(source, "__getitem__") and hasattr(source, "__len__")
        )
        if steps is None and self.is_sequence:
            steps = len(source)
        self.steps = steps
        self._ahead, self._workers = max(max_queue_size, 1), workers
        self._items: Iterator[Any] | None = None
        self._closers: list[Callable[[], None]] = []
        self.ended = False

    def epoch(self) -> Iterator[tuple[list[Any], int]]:
        """``steps`` batches, or all that the generator has."""
        if self._items is None:
            self._items = self._sequence() if self.is_sequence else self._generated()
        step = 0
        while self.steps is None or step < self.steps:
            try:
                item = next(self._items)
            except StopIteration:
                self.ended = True
                if self.steps is None and step:
                    self.steps = step
                elif step < (self.steps or 0):
                    logging.warning(
                        "Your generator ran out of data; interrupting training. Make sure that it "
                        "can generate at least `steps_per_epoch * epochs` batches (in this case, "
                        "%s per epoch).",
                        self.steps,
                    )
                return
            step += 1
            values = self.prepare(item)
            yield values, int(values[0].shape[0]) if len(values[0].shape) else 1

    def _sequence(self) -> Iterator[Any]:
        source, pool = self.source, None
        if self._workers > 0:
            pool = ThreadPoolExecutor(self._workers, thread_name_prefix="keras_sequence")
            self._closers.append(lambda: pool.shutdown(wait=True, cancel_futures=True))
        while True:
            order = list(range(len(source)))
            if self.shuffle:
                np.random.shuffle(order)
            if pool is None:
                for index in order:
                    yield source[index]
            else:
                waiting: deque[Any] = deque()
                for index in order:
                    waiting.append(pool.submit(source.__getitem__, index))
                    if len(waiting) >= self._ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            if hasattr(source, "on_epoch_end"):
                source.on_epoch_end()

    def _generated(self) -> Iterator[Any]:
        if self._workers <= 0:
            yield from self.source
            return
        items: queue.Queue[Any] = queue.Queue(self._ahead)
        stop = threading.Event()

        def fill() -> None:
            last: tuple[str, Any] = ("end", None)
            try:
                for item in self.source:
                    if not _put(items, ("item", item), stop):
                        return
            except BaseException as error:  # whatever it is, the loop raises it
                last = ("error", error)
            _put(items, last, stop)

        thread = threading.Thread(target=fill, name="keras_generator", daemon=True)
        thread.start()

        def close() -> None:
            stop.set()
            thread.join(timeout=5)

        self._closers.append(close)
        while True:
            kind, value = items.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value

    def close(self) -> None:
        """Ends the threads."""
        for closer in self._closers:
            closer()
        self._closers.clear()


def _put(items: queue.Queue[Any], entry: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            items.put(entry, timeout=0.05)
        except queue.Full:
            continue
        return True
    return False
