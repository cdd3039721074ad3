"""``tf.contrib.data``: what became ``tf.data.experimental``, under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.data import Dataset, Iterator, TextLineDataset, TFRecordDataset
from runnel.data import experimental as _experimental
from runnel.data.element_structure import flatten, pack_as, values_up_to
from runnel.data.experimental import *  # noqa: F403
from runnel.data.interleaving import parallel_interleave
from runnel.data.readers import FixedLengthRecordDataset
from runnel.graph.graph import control_dependencies
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.assertions import assert_equal, assert_rank
from runnel.ops.control import identity


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Dataset], Dataset]:
    """Batches of ``batch_size``; a smaller last one is left out."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Callable[[Dataset], Dataset]:
    """Batches of elements that are filled up to a shape; a smaller last one is left out."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, True)


def assert_element_shape(expected_shapes: Any) -> Callable[[Dataset], Dataset]:
    """The same elements, of which the shapes are known to be ``expected_shapes``.

    An element of another shape is an error of the step that takes it.
    """

    def transformed(dataset: Dataset) -> Dataset:
        structure = dataset._structure
        shapes = [TensorShape(shape) for shape in values_up_to(structure, expected_shapes)]
        for place, shape in zip(flatten(structure), shapes, strict=True):
            place.shape.assert_is_compatible_with(shape)

        def checked(*element: Any) -> Any:
            leaves = flatten(element[0] if len(element) == 1 else element)
            made = [_of_shape(*each) for each in zip(leaves, shapes, strict=True)]
            return pack_as(structure, made)

        return dataset.map(checked)

    return transformed


def _of_shape(tensor: Any, shape: TensorShape) -> Any:
    """``tensor``, with a check of what of its shape is not known beforehand."""
    checks = []
    if shape.rank is not None:
        checks.append(assert_rank(tensor, shape.rank))
        with control_dependencies(checks):
            sizes = shape_of(tensor)
        known = [(axis, size) for axis, size in enumerate(shape.as_list()) if size is not None]
        message = f"An element is not of the shape {shape}."
        checks += [assert_equal(sizes[axis], size, message=message) for axis, size in known]
    with control_dependencies(checks):
        made = identity(tensor)
    made.set_shape(shape)
    return made


def reduce_dataset(dataset: Dataset, reducer: Any) -> Any:
    """What ``reducer`` makes of all elements, as a tensor."""
    state = dataset.reduce(reducer.init_func(np.int64(0)), reducer.reduce_func)
    return reducer.finalize_func(state)


def sliding_window_batch(
    window_size: int,
    stride: int | None = None,
    window_shift: int | None = None,
    window_stride: int = 1,
) -> Callable[[Dataset], Dataset]:
    """``window_size`` elements as one, ``window_shift`` further each time.

    ``stride`` is an older name of ``window_shift``.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = next((given for given in (stride, window_shift) if given is not None), 1)

    def transformed(dataset: Dataset) -> Dataset:
        windows = dataset.window(window_size, shift, window_stride, drop_remainder=True)
        return windows.flat_map(
            lambda *window: Dataset.zip(window if len(window) > 1 else window[0]).batch(window_size)
        )

    return transformed


def sloppy_interleave(
    map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
) -> Callable[[Dataset], Dataset]:
    """The elements of datasets in turn; one whose next element is not ready is passed over."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


_OLDER = {
    "Dataset": Dataset,
    "FixedLengthRecordDataset": FixedLengthRecordDataset,
    "Iterator": Iterator,
    "TFRecordDataset": TFRecordDataset,
    "TextLineDataset": TextLineDataset,
    "assert_element_shape": assert_element_shape,
    "batch_and_drop_remainder": batch_and_drop_remainder,
    "padded_batch_and_drop_remainder": padded_batch_and_drop_remainder,
    "reduce_dataset": reduce_dataset,
    "sliding_window_batch": sliding_window_batch,
    "sloppy_interleave": sloppy_interleave,
}

__all__ = sorted({*dir(_experimental), *_OLDER})


def __dir__() -> list[str]:
    return __all__
