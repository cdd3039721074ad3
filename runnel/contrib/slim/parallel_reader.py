"""``slim.parallel_reader``: several readers that fill one queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel import gfile
from runnel.graph import dtypes as types
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.casting import cast
from runnel.ops.data.readers import ReaderBase
from runnel.ops.queues.queues import FIFOQueue, RandomShuffleQueue
from runnel.summary import scalar
from runnel.train.input_producers import string_input_producer
from runnel.train.queue_runner import QueueRunner, add_queue_runner

__all__ = ["ParallelReader", "get_data_files", "parallel_read", "single_pass_read"]


class ParallelReader(ReaderBase):
    """Reads with ``num_readers`` readers of a class into ``common_queue``, and from there."""

    def __init__(
        self,
        reader_class: Callable[..., ReaderBase],
        common_queue: Any,
        num_readers: int = 4,
        reader_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if num_readers < 1:
            raise ValueError(f"num_readers must be at least 1, but got {num_readers}")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        super().__init__(self._readers[0].reader_ref)
        self._common_queue = common_queue

    @property
    def common_queue(self) -> Any:
        """What the readers fill."""
        return self._common_queue

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record of any reader, and before it its key; ``queue`` has the files' names."""
        self._fill(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Up to ``num_records`` records, and their keys."""
        self._fill(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def _fill(self, queue: Any) -> None:
        enqueue = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        add_queue_runner(QueueRunner(self._common_queue, enqueue))

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records all readers together have given."""
        return sum(  # type: ignore[return-value]
            (reader.num_records_produced() for reader in self._readers[1:]),
            self._readers[0].num_records_produced(name),
        )

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files all readers together have come to the end of."""
        return sum(  # type: ignore[return-value]
            (reader.num_work_units_completed() for reader in self._readers[1:]),
            self._readers[0].num_work_units_completed(name),
        )


def parallel_read(
    data_sources: str | Sequence[str],
    reader_class: Callable[..., ReaderBase],
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> tuple[Tensor, Tensor]:
    """A key and a record of the files of ``data_sources``, several of which are read at once."""
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(
            files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        kinds = list(dtypes or (types.string, types.string))
        queue: Any
        if shuffle:
            queue = RandomShuffleQueue(
                capacity, min_after_dequeue, kinds, seed=seed, name="common_queue"
            )
        else:
            queue = FIFOQueue(capacity, kinds, name="common_queue")
        scalar(f"fraction_of_{capacity}_full", cast(queue.size(), "float32") * (1.0 / capacity))
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


def single_pass_read(
    data_sources: str | Sequence[str],
    reader_class: Callable[..., ReaderBase],
    reader_kwargs: Mapping[str, Any] | None = None,
    scope: str | None = None,
) -> tuple[Tensor, Tensor]:
    """A key and a record of the files of ``data_sources``, each once and in order."""
    files = get_data_files(data_sources)
    with name_scope(scope, "single_pass_read"):
        names = string_input_producer(
            files, num_epochs=1, shuffle=False, capacity=1, name="filenames"
        )
        return reader_class(**(reader_kwargs or {})).read(names)


def get_data_files(data_sources: str | Sequence[str]) -> list[str]:
    """The files that names and patterns stand for; an error where there is none."""
    if isinstance(data_sources, list | tuple):
        return [file for source in data_sources for file in get_data_files(source)]
    source = str(data_sources)
    files = gfile.Glob(source) if any(sign in source for sign in "*?[") else [source]
    if not files:
        raise ValueError(f"No data files found in {source}")
    return list(files)


def __dir__() -> list[str]:
    return __all__
