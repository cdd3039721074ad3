"""``tf.data``: input pipelines."""

from typing import Any

from runnel.data import experimental
from runnel.data.dataset import Dataset, DatasetSpec
from runnel.data.iterators import Iterator
from runnel.data.options import Options
from runnel.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

__all__ = [
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator over ``dataset`` that begins by itself."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over ``dataset`` that its operation ``initializer`` begins."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The types of its elements."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of its elements."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The kinds of tensors in its elements."""
    return dataset_or_iterator.output_classes


def __dir__() -> list[str]:
    return __all__
