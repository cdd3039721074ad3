"""``tf.data.experimental``: transformations for ``Dataset.apply``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.data.dataset import AUTOTUNE, Dataset, DatasetSpec
from runnel.data.device_copies import copy_to_device, prefetch_to_device
from runnel.data.element_structure import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec
from runnel.data.grouping import (
    Reducer,
    bucket_by_sequence_length,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    scan,
    take_while,
    unique,
)
from runnel.data.interleaving import parallel_interleave
from runnel.data.iterator_checkpoints import (
    CheckpointInputPipelineHook,
    make_saveable_from_iterator,
)
from runnel.data.optional import Optional, OptionalSpec, get_next_as_optional
from runnel.data.options import (
    DistributeOptions,
    MapVectorizationOptions,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)
from runnel.data.sampling import (
    RandomDataset,
    choose_from_datasets,
    rejection_resample,
    sample_from_datasets,
)
from runnel.data.statistics import (
    StatsAggregator,
    bytes_produced_stats,
    latency_stats,
    set_stats_aggregator,
)
from runnel.data.tables import (
    CsvDataset,
    SqlDataset,
    make_batched_features_dataset,
    make_csv_dataset,
)
from runnel.data.whole import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    cardinality,
    from_variant,
    get_single_element,
    get_structure,
    parse_example_dataset,
    to_variant,
)
from runnel.data.whole import DatasetRecordWriter as TFRecordWriter

__all__ = [
    "AUTOTUNE",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "INFINITE_CARDINALITY",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Optional",
    "OptionalStructure",
    "RaggedTensorStructure",
    "RandomDataset",
    "Reducer",
    "SparseTensorStructure",
    "SqlDataset",
    "StatsAggregator",
    "StatsOptions",
    "Structure",
    "TFRecordWriter",
    "TensorStructure",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "bucket_by_sequence_length",
    "bytes_produced_stats",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "latency_stats",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "set_stats_aggregator",
    "shuffle_and_repeat",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]

DatasetStructure = DatasetSpec
OptionalStructure = OptionalSpec
Structure = TypeSpec
Transformation = Callable[[Dataset], Dataset]


def Counter(start: int = 0, step: int = 1, dtype: Any = None) -> Dataset:  # noqa: N802
    """Numbers from ``start`` on, without end."""
    limit = np.iinfo(np.int64)
    numbers = Dataset.range(start, limit.max if step > 0 else limit.min, step)
    if dtype is None:
        return numbers
    from runnel.ops.casting import cast

    return numbers.map(lambda number: cast(number, dtype))


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """``map_func`` of each element, then batches."""
    calls = num_parallel_calls
    if num_parallel_batches is not None:
        if calls is not None:
            raise ValueError(
                "Give num_parallel_calls or num_parallel_batches, which is older, not both."
            )
        calls = AUTOTUNE

    def transformed(dataset: Dataset) -> Dataset:
        return dataset.map(map_func, num_parallel_calls=calls).batch(batch_size, drop_remainder)

    return transformed


map_and_batch_with_legacy_function = map_and_batch


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:  # noqa: N802 (TensorFlow's name)
    """The structure of elements that are tensors of a type and shape."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:  # noqa: N802 (likewise)
    """The structure of elements that are sparse tensors of a type and shape."""
    return SparseTensorSpec(shape, dtype)


def RaggedTensorStructure(  # noqa: N802 (likewise)
    dtype: Any, shape: Any, ragged_rank: int
) -> RaggedTensorSpec:
    """The structure of elements that are ragged tensors of a type, shape and ragged rank."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Shuffled, and repeated, each time in another order."""
    return lambda dataset: dataset._shuffled_and_repeated(buffer_size, count, seed)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Pairs of a number and an element."""
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Transformation:
    """The rows of elements as elements."""
    return lambda dataset: dataset.unbatch()


def __dir__() -> list[str]:
    return __all__
