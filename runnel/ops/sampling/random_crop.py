"""Crops of a tensor at random places."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.checks import Assert
from runnel.ops.comparison import greater_equal
from runnel.ops.control import with_dependencies
from runnel.ops.reduce_functions import reduce_all
from runnel.ops.sampling.random import random_uniform
from runnel.ops.slicing import slice as slice_of


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of ``value`` of shape ``size``, at a place that is drawn in each step.

    Give the whole size of a dimension that is not to be cropped.

    Example:
        >>> tf.random_crop(image, [24, 24, 3])
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        shape = shape_of(value)
        fits = Assert(
            reduce_all(greater_equal(shape, size)),
            [
                "The value to crop must be as large as the crop: its shape and the size are",
                shape,
                size,
            ],
            summarize=1000,
        )
        skip_op_ids(1)
        shape = with_dependencies([fits], shape)
        limit: Any = shape - size + 1
        place: Any = random_uniform(shape_of(shape), 0, dtypes.int32.max, dtypes.int32, seed)
        return slice_of(value, place % limit, size, name=scope)
