"""Dilated windows by way of the batch: each phase of a dilation becomes an example of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import shape
from runnel.ops.constants import constant
from runnel.ops.convolution.window_arguments import padding_attributes
from runnel.ops.joining import concat, stack
from runnel.ops.space import batch_to_space_nd, space_to_batch_nd


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Paddings that make ``block_shape`` divide an input, and the crops that undo them.

    Returns ``paddings`` for ``space_to_batch_nd``, at least ``base_paddings`` and as much more
    behind as is needed, and ``crops`` for ``batch_to_space_nd``: that excess.

    Example:
        >>> paddings, crops = tf.required_space_to_batch_paddings([9, 8], [2, 2])
        >>> tf.Session().run(paddings).tolist()
        [[0, 1], [0, 0]]
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        if blocks.dims is None or len(blocks.dims) != 1 or blocks.dims[0] is None:
            raise ValueError(
                f"block_shape must be a vector of known length, but its shape is "
                f"{format_dims(blocks.dims)}"
            )
        count = blocks.dims[0]
        if base_paddings is None:
            base_paddings = np.zeros((count, 2), np.int32)
        base = convert_to_tensor(base_paddings, dtypes.int32, name="base_paddings")
        known = [constant_value(t) for t in (sizes, blocks, base)]
        if all(value is not None for value in known):
            paddings, crops = _paddings_and_crops(*known)
            return constant(paddings, name="paddings"), constant(crops, name="crops")
        before, after = base[:, 0], base[:, 1]
        excess = -(sizes + before + after) % blocks
        zeros = constant(np.zeros(count, np.int32))
        enlarged = stack([before, after + excess], axis=1, name="paddings")
        return enlarged, stack([zeros, excess], axis=1, name="crops")


def _paddings_and_crops(sizes: Any, blocks: Any, base: Any) -> tuple[np.ndarray, np.ndarray]:
    before, after = base[:, 0], base[:, 1]
    excess = -(sizes + before + after) % blocks
    paddings = np.stack([before, after + excess], axis=1)
    crops = np.stack([np.zeros_like(excess), excess], axis=1)
    return paddings.astype(np.int32), crops.astype(np.int32)


def with_space_to_batch(
    input: Any,  # noqa: A002
    dilation_rate: Any,
    padding: Any,
    op: Callable[[Tensor, int, Any], Tensor],
    filter_shape: Any = None,
    spatial_dims: Iterable[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """``op``, which slides a window of stride 1, as if that window were dilated.

    ``op(input, number of spatial dimensions, padding)`` is called with each phase of the input as
    an example of its own, and with padding "VALID"; for a rate of 1, with the input itself.
    ``filter_shape`` begins with the window's sizes; padding "SAME" needs it.

    Example:
        >>> def blur(x, _, padding):
        ...     return tf.nn.avg_pool(x, 2, 1, padding)
        >>> tf.nn.with_space_to_batch(tf.zeros([1, 8, 8, 3]), [2, 2], "VALID", blur).shape.as_list()
        [1, 6, 6, 3]
    """
    x = convert_to_tensor(input, name="input")
    rate = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
    if rate.dims is None or len(rate.dims) != 1 or rate.dims[0] is None:
        raise ValueError(
            f"dilation_rate must be a vector of known length, but its shape is "
            f"{format_dims(rate.dims)}"
        )
    count = rate.dims[0]
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    axes = list(range(first, first + count) if spatial_dims is None else spatial_dims)
    if len(axes) != count or axes != sorted(set(axes)) or axes[0] < 1:
        raise ValueError(
            f"spatial_dims must be {count} increasing positive numbers, but got {axes}"
        )
    if x.dims is not None and len(x.dims) <= axes[-1]:
        raise ValueError(
            f"the input must have more than {axes[-1]} dimensions, but its shape is "
            f"{format_dims(x.dims)}"
        )
    known_rate = constant_value(rate)
    if known_rate is not None:
        if (known_rate < 1).any():
            raise ValueError(f"dilation_rate must be positive, but got {known_rate.tolist()}")
        if (known_rate == 1).all():
            return op(x, count, padding)
    base = _base_paddings(padding, rate if known_rate is None else known_rate, filter_shape, axes)
    paddings, crops = required_space_to_batch_paddings(_sizes(x, axes), rate, base)
    blocks = _spread(rate, axes, 1)
    parts = space_to_batch_nd(x, blocks, _spread(paddings, axes, 0))
    result = op(parts, count, "VALID")
    whole = batch_to_space_nd(result, blocks, _spread(crops, axes, 0))
    if result.dims is not None:
        # Also where the paddings are not known yet, other dimensions (the channels) are.
        kept = [d if i and i not in axes else None for i, d in enumerate(result.dims)]
        whole.set_shape(kept)
    return whole


def _base_paddings(padding: Any, rate: Any, filter_shape: Any, axes: list[int]) -> Any:
    """The padding of an undilated window as wide as the dilated one."""
    amounts = padding_attributes(padding, len(axes) + 2)
    if amounts["padding"] == "EXPLICIT":
        pairs = np.array(amounts["explicit_paddings"], np.int32).reshape(-1, 2)
        return pairs[axes]
    if padding == "VALID":
        return None
    if padding != "SAME":
        raise ValueError(f"padding must be 'SAME' or 'VALID', but got {padding!r}")
    if filter_shape is None:
        raise ValueError("padding 'SAME' needs filter_shape, the sizes of the window")
    sizes = convert_to_tensor(filter_shape, dtypes.int32, name="filter_shape")
    known = constant_value(sizes)
    total = ((sizes if known is None else known)[: len(axes)] - 1) * rate
    before = total // 2
    join = np.stack if isinstance(total, np.ndarray) else stack
    return join([before, total - before], axis=1)


def _sizes(x: Tensor, axes: list[int]) -> Any:
    if x.dims is not None and None not in (x.dims[axis] for axis in axes):
        return [x.dims[axis] for axis in axes]
    dynamic = shape(x)
    return stack([dynamic[axis] for axis in axes])


def _spread(values: Tensor, axes: list[int], fill: int) -> Any:
    """``values`` for ``axes``, and ``fill`` for those between the batch and them."""
    known = constant_value(values)
    rows: list[Any] = []
    for axis in range(1, axes[-1] + 1):
        source = values if known is None else known
        if axis in axes:
            at = axes.index(axis)
            rows.append(source[at : at + 1])
        else:
            rows.append(np.full((1, *values.shape.as_list()[1:]), fill, np.int32))
    return concat(rows, 0) if known is None else np.concatenate(rows)
