"""What a dataset is as a whole: how many elements, its only one, a file of it, a tensor for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.data.dataset import Dataset
from runnel.data.element_structure import component_attrs, from_components
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor
from runnel.ops.data import collecting_ops
from runnel.ops.parsing.parse_example import parse_example
from runnel.pipelines.pipeline import INFINITE, UNKNOWN

INFINITE_CARDINALITY = np.int64(INFINITE)
UNKNOWN_CARDINALITY = np.int64(UNKNOWN)


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements ``dataset`` has, or ``INFINITE_CARDINALITY``, ``UNKNOWN_CARDINALITY``."""
    return collecting_ops.cardinality_op(dataset._variant_tensor)


def get_single_element(dataset: Dataset) -> Any:
    """The only element of ``dataset``; an error in a step where it has none, or several."""
    structure = dataset._structure
    tensors = collecting_ops.single_element_op(
        dataset._variant_tensor, **component_attrs(structure)
    )
    return from_components(structure, list(tensors))


def get_structure(dataset_or_iterator: Any) -> Any:
    """The structure of its elements."""
    return dataset_or_iterator._structure


def to_variant(dataset: Dataset) -> Tensor:
    """A tensor that stands for ``dataset``."""
    return dataset._variant_tensor


def from_variant(variant: Tensor, structure: Any) -> Dataset:
    """The dataset that a tensor stands for, whose elements have a structure."""
    return Dataset(variant, structure)


class DatasetRecordWriter:
    """Writes the elements of a dataset, strings, as the records of a file.

    Example:
        >>> write = tf.data.experimental.TFRecordWriter("numbers").write(dataset)
        >>> sess.run(write)
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string)
        self._compression = convert_to_tensor(compression_type or "", dtypes.string)

    def write(self, dataset: Dataset) -> Operation:
        """An operation that writes the file."""
        if dataset.output_types != dtypes.string or dataset.output_shapes.rank != 0:
            raise TypeError(
                "`dataset` must have elements that are scalar strings, not "
                f"{dataset.output_types} of shape {dataset.output_shapes}"
            )
        return collecting_ops.to_records_op(
            dataset._variant_tensor, self._filename, self._compression
        )


def parse_example_dataset(
    features: dict[str, Any], num_parallel_calls: Any = 1
) -> Callable[[Dataset], Dataset]:
    """The features of examples that come in vectors of strings; see ``tf.parse_example``."""
    return lambda dataset: dataset.map(
        lambda texts: parse_example(texts, features), num_parallel_calls
    )
