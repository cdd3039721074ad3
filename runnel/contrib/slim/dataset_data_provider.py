"""``slim.dataset_data_provider``: samples of a data set's files, read by several readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.contrib.slim.data_provider import DataProvider
from runnel.contrib.slim.parallel_reader import parallel_read

__all__ = ["DatasetDataProvider"]


class DatasetDataProvider(DataProvider):
    """The items of one sample of ``dataset``, another in each step.

    Example:
        >>> provider = slim.dataset_data_provider.DatasetDataProvider(dataset, num_readers=2)
        >>> image, label = provider.get(["image", "label"])
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, record = parallel_read(
            dataset.data_sources,
            reader_class=dataset.reader,
            num_epochs=num_epochs,
            num_readers=num_readers,
            reader_kwargs=reader_kwargs,
            shuffle=shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        if record_key in items:
            raise ValueError(
                "The item name used for `record_key` cannot also be used for a dataset item: "
                f"{record_key}"
            )
        tensors = dataset.decoder.decode(record, items)
        found = dict(zip(items, tensors, strict=True))
        super().__init__({**found, record_key: key}, dataset.num_samples)


def __dir__() -> list[str]:
    return __all__
