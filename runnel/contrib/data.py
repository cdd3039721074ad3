"""``tf.contrib.data``: what became ``tf.data.experimental``, under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.data import Dataset, Iterator, TextLineDataset, TFRecordDataset
from runnel.data import experimental as _experimental
from runnel.data.experimental import *  # noqa: F403
from runnel.data.readers import FixedLengthRecordDataset


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Dataset], Dataset]:
    """Batches of ``batch_size``; a smaller last one is left out."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


_OLDER = {
    "Dataset": Dataset,
    "FixedLengthRecordDataset": FixedLengthRecordDataset,
    "Iterator": Iterator,
    "TFRecordDataset": TFRecordDataset,
    "TextLineDataset": TextLineDataset,
    "batch_and_drop_remainder": batch_and_drop_remainder,
}

__all__ = sorted({*dir(_experimental), *_OLDER})


def __dir__() -> list[str]:
    return __all__
