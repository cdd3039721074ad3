"""Datasets that threads read ahead, a few elements of each in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.data.dataset import Dataset
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.ops.data import function_ops

Transformation = Callable[[Dataset], Dataset]


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """The elements of the datasets that ``map_func`` makes, a few of each in turn.

    A thread reads each of the ``cycle_length`` datasets that are open, ``buffer_output_elements``
    ahead. ``sloppy`` passes over one whose next element is not ready. ``prefetch_input_elements``
    is there for programs that give it: a dataset is opened when one before it has ended.
    """
    ahead = 2 * block_length if buffer_output_elements is None else buffer_output_elements
    opened = 2 * cycle_length if prefetch_input_elements is None else prefetch_input_elements

    def transformed(dataset: Dataset) -> Dataset:
        function, structure = dataset._traced_dataset(map_func, "parallel_interleave")
        numbers = [
            convert_to_tensor(n, dtypes.int64) for n in (cycle_length, block_length, ahead, opened)
        ]
        return dataset._with(
            function_ops.parallel_interleave_op,
            list(function.captures),
            *numbers[:2],
            convert_to_tensor(sloppy, dtypes.bool_),
            *numbers[2:],
            structure=structure,
            f=function.attr,
        )

    return transformed
