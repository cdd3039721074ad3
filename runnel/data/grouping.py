"""Transformations for ``Dataset.apply`` that look at more than one element, or dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.data.dataset import Dataset
from runnel.data.element_structure import (
    DatasetPlace,
    TensorPlace,
    as_elements,
    component_attrs,
    flatten,
    pack_as,
    structure_of,
    to_components,
)
from runnel.data.traced_function import trace
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.registry import get_op_def
from runnel.ops.array_shape import reshape
from runnel.ops.casting import cast
from runnel.ops.data import dataset_ops, function_ops
from runnel.ops.gather import gather
from runnel.ops.reduce_functions import reduce_min
from runnel.ops.sampling.random import multinomial
from runnel.ops.selection import where

Transformation = Callable[[Dataset], Dataset]
_KEY = TensorPlace(dtypes.int64, ())


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first of which ``predicate`` says false."""

    def transformed(dataset: Dataset) -> Dataset:
        function = trace(predicate, [dataset._structure], "take_while")
        if not isinstance(function.structure, TensorPlace) or not function.structure.fits(
            TensorPlace(dtypes.bool_, ())
        ):
            raise ValueError("`predicate` must return a scalar boolean tensor.")
        return dataset._with(
            function_ops.take_while_op, list(function.captures), predicate=function.attr
        )

    return transformed


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """What ``scan_func(state, element)`` makes, beside the state for the next element.

    Example:
        >>> sums = tf.data.experimental.scan(np.int64(0), lambda total, n: (total + n, total + n))
        >>> tf.data.Dataset.range(4).apply(sums)  # 0, 1, 3, 6
    """

    def transformed(dataset: Dataset) -> Dataset:
        state = as_elements(initial_state)
        of_state = structure_of(state)
        function = trace(scan_func, [of_state, dataset._structure], "scan")
        if not isinstance(function.structure, tuple) or len(function.structure) != 2:
            raise TypeError(
                "The scan function must return a pair comprising the new state and the output "
                "value."
            )
        return dataset._with(
            function_ops.scan_op,
            to_components(of_state, state),
            list(function.captures),
            structure=function.structure[1],
            f=function.attr,
        )

    return transformed


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """What ``reduce_func(key, dataset)`` makes of ``window_size`` elements of one key at a time."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func.")
    size = window_size_func or (lambda key: convert_to_tensor(window_size, dtypes.int64))

    def transformed(dataset: Dataset) -> Dataset:
        key = trace(lambda *e: cast(key_func(*e), dtypes.int64), [dataset._structure], "key")
        made = trace(
            reduce_func, [_KEY, DatasetPlace(dataset._structure, Dataset)], "reduce_window"
        )
        if not isinstance(made.structure, DatasetPlace):
            raise TypeError("`reduce_func` must return a `Dataset` object.")
        sized = trace(lambda k: cast(size(k), dtypes.int64), [_KEY], "window_size")
        return dataset._with(
            function_ops.group_by_window_op,
            *[list(function.captures) for function in (key, made, sized)],
            structure=made.structure.structure,
            key_func=key.attr,
            reduce_func=made.attr,
            window_size_func=sized.attr,
        )

    return transformed


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches of elements of similar length, each filled up to the longest of its batch.

    ``bucket_boundaries`` are the upper limits of lengths; there is a batch size for each bucket,
    and one for what is longer than all limits.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
    if pad_to_bucket_boundary:
        raise ValueError("Batches are filled up to their longest element only.")
    sizes = convert_to_tensor(np.array(bucket_batch_sizes, np.int64))
    low = np.array([np.iinfo(np.int32).min, *bucket_boundaries], np.int32)
    high = np.array([*bucket_boundaries, np.iinfo(np.int32).max], np.int32)

    def bucket(*element: Any) -> Any:
        length = cast(element_length_func(*element), dtypes.int32)
        above, below = get_op_def("LessEqual")(low, length), get_op_def("Less")(length, high)
        return reduce_min(where(get_op_def("LogicalAnd")(above, below)))

    def size_of(key: Any) -> Any:
        return gather(sizes, key)

    def batched(key: Any, group: Dataset) -> Dataset:
        if no_padding:
            return group.batch(size_of(key), drop_remainder)
        shapes = group.output_shapes if padded_shapes is None else padded_shapes
        return group.padded_batch(size_of(key), shapes, padding_values, drop_remainder)

    return group_by_window(bucket, batched, window_size_func=size_of)


def ignore_errors() -> Transformation:
    """The elements that can be made, without those that fail."""
    return lambda dataset: dataset._with(dataset_ops.ignore_errors_op)


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Elements of ``datasets``, each of that whose number ``choice_dataset`` gives."""
    if not datasets:
        raise ValueError("`datasets` must not be empty.")
    if not _KEY.fits(choice_dataset._structure):
        raise TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    leaves = [flatten(dataset._structure) for dataset in datasets]
    merged = leaves[0]
    for others in leaves[1:]:
        merged = [a.merged(b) for a, b in zip(merged, others, strict=True)]
    structure = pack_as(datasets[0]._structure, merged)
    variant = dataset_ops.directed_op(
        choice_dataset._variant_tensor,
        [dataset._variant_tensor for dataset in datasets],
        **component_attrs(structure),
    )
    return Dataset(variant, structure)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: Any = None
) -> Dataset:
    """Elements of ``datasets``, each of one drawn at random with ``weights``."""
    count = len(datasets)
    shares = np.full(count, 1 / count) if weights is None else weights
    logits = reshape(get_op_def("Log")(convert_to_tensor(shares, dtypes.float32)), [1, count])
    numbers = Dataset.range(np.iinfo(np.int64).max)
    choices = numbers.map(lambda n: reshape(multinomial(logits, 1, seed=seed), []))
    return choose_from_datasets(datasets, choices)
