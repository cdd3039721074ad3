"""Transformations for ``Dataset.apply`` that look at more than one element, or dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.data.dataset import Dataset, DatasetSpec
from runnel.data.element_structure import (
    RaggedTensorSpec,
    SparseTensorSpec,
    TensorSpec,
    as_elements,
    flatten,
    pack_as,
    structure_of,
    to_components,
    values_up_to,
)
from runnel.data.traced_function import trace, trace_state
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import control_dependencies
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import TensorShape
from runnel.ops.assertions import assert_less
from runnel.ops.casting import cast
from runnel.ops.data import collecting_ops, dataset_ops, function_ops
from runnel.ops.gather import gather
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.reduce_functions import reduce_min
from runnel.ops.selection import where

Transformation = Callable[[Dataset], Dataset]
_KEY = TensorSpec((), dtypes.int64)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first of which ``predicate`` says false."""

    def transformed(dataset: Dataset) -> Dataset:
        function = trace(predicate, [dataset._structure], "take_while")
        if not isinstance(function.structure, TensorSpec) or not function.structure.fits(
            TensorSpec((), dtypes.bool_)
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

        def new_state(made: Any) -> Any:
            if not isinstance(made, tuple) or len(made) != 2:
                raise TypeError(
                    "The scan function must return a pair comprising the new state and the output "
                    "value."
                )
            return made[0]

        function, of_state = trace_state(
            scan_func, structure_of(state), dataset._structure, "scan", new_state
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
        made = trace(reduce_func, [_KEY, dataset._place], "reduce_window")
        if not isinstance(made.structure, DatasetSpec):
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
    and one for what is longer than all limits. With ``pad_to_bucket_boundary`` elements are filled
    up to the largest length of their bucket instead, and none may be longer than all limits.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
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
        if pad_to_bucket_boundary:
            check = assert_less(
                key,
                np.int64(len(bucket_boundaries)),
                message="When pad_to_bucket_boundary=True, elements must have length < "
                "max(bucket_boundaries).",
            )
            with control_dependencies([check]):
                longest = gather(np.array(bucket_boundaries, np.int64), key) - 1
            shapes = _filled(shapes, group._structure, longest)
        return group.padded_batch(size_of(key), shapes, padding_values, drop_remainder)

    return group_by_window(bucket, batched, window_size_func=size_of)


def _filled(shapes: Any, structure: Any, size: Any) -> Any:
    """``shapes`` with ``size`` for what is not known of them."""
    known = [TensorShape(shape).as_list() for shape in values_up_to(structure, shapes)]
    return pack_as(structure, [[size if d is None else d for d in dims] for dims in known])


class Reducer:
    """How the elements of a key become one: begun, gone over one by one, finished.

    Example:
        >>> total = tf.data.experimental.Reducer(
        ...     lambda key: np.int64(0), lambda sum, n: sum + n, lambda sum: sum)
        >>> dataset.apply(tf.data.experimental.group_by_reducer(lambda n: n % 2, total))
    """

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        self.init_func = init_func
        self.reduce_func = reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For each key, in their order, what ``reducer`` makes of all its elements."""

    def transformed(dataset: Dataset) -> Dataset:
        key = trace(lambda *e: cast(key_func(*e), dtypes.int64), [dataset._structure], "key")
        begin = trace(reducer.init_func, [_KEY], "init")
        reduce, state = trace_state(
            reducer.reduce_func, begin.structure, dataset._structure, "reduce", lambda made: made
        )
        finish = trace(reducer.finalize_func, [state], "finalize")
        functions = (key, begin, reduce, finish)
        return dataset._with(
            collecting_ops.group_by_reducer_op,
            *[list(function.captures) for function in functions],
            structure=finish.structure,
            key_func=key.attr,
            init_func=begin.attr,
            reduce_func=reduce.attr,
            finalize_func=finish.attr,
        )

    return transformed


def unique() -> Transformation:
    """The elements, each one tensor, that no earlier one is equal to."""
    return lambda dataset: dataset._with(collecting_ops.unique_op)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """``batch_size`` tensors, which may differ in shape, as the rows of a sparse tensor."""
    row = TensorShape(row_shape)

    def transformed(dataset: Dataset) -> Dataset:
        place = dataset._structure
        if type(place) is not TensorSpec:
            raise TypeError(
                "DenseToSparseDataset requires an input whose elements have a single component, "
                f"whereas the input has {dataset.output_types}"
            )
        dims = row._dims
        assert dims is not None, "a row has a rank"
        return dataset._with(
            collecting_ops.sparse_batch_op,
            convert_to_tensor(batch_size, dtypes.int64),
            convert_to_tensor(np.array([-1 if d is None else d for d in dims], np.int64)),
            structure=SparseTensorSpec((None, *dims), place.dtype),
        )

    return transformed


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: Any = False, row_splits_dtype: Any = dtypes.int64
) -> Transformation:
    """``batch_size`` elements as one, where tensors may differ in shape: they become ragged.

    A tensor whose shape is known, and what is no tensor, is batched as :meth:`Dataset.batch` does.

    Example:
        >>> rows = tf.data.Dataset.range(4).map(lambda n: tf.fill([n], n))
        >>> rows.apply(tf.data.experimental.dense_to_ragged_batch(2))  # [[], [1]]; [[2, 2], ...]
    """

    def ragged(place: TensorSpec) -> TensorSpec:
        unknown = [axis for axis, size in enumerate(place.dims or ()) if size is None]
        if not unknown:
            return place
        return RaggedTensorSpec(place.shape, place.dtype, unknown[-1], row_splits_dtype)

    def transformed(dataset: Dataset) -> Dataset:
        places = flatten(dataset._structure)
        made = [ragged(place) if type(place) is TensorSpec else place for place in places]

        def encoded(*element: Any) -> tuple[Any, ...]:
            leaves = zip(made, flatten(element), strict=True)
            return tuple(_encoded(place, leaf) for place, leaf in leaves)

        variant = dataset.map(encoded)._variant_tensor
        return Dataset(variant, pack_as(dataset._structure, made)).batch(batch_size, drop_remainder)

    return transformed


def _encoded(place: Any, leaf: Any) -> Any:
    """``leaf`` as what stands for it in ``place``: there a tensor may become ragged."""
    if type(place) is not RaggedTensorSpec:
        return leaf
    if place.ragged_rank and not isinstance(leaf, RaggedTensor):
        leaf = RaggedTensor.from_tensor(leaf, ragged_rank=place.ragged_rank)
    return place.to_component(leaf)


def ignore_errors() -> Transformation:
    """The elements that can be made, without those that fail."""
    return lambda dataset: dataset._with(dataset_ops.ignore_errors_op)
