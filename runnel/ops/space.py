"""Moving blocks of space into the depth or the batch, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import at_run_time

# Depth ----------------------------------------------------------------------------------------

_DEPTH_ATTRS = [
    "T: type",
    "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
]
space_to_depth_op = register_op(
    "SpaceToDepth", inputs="input: T", outputs="output: T", attrs=_DEPTH_ATTRS
)
depth_to_space_op = register_op(
    "DepthToSpace", inputs="input: T", outputs="output: T", attrs=_DEPTH_ATTRS
)


def _quotient(size: int | None, by: int, what: str) -> int | None:
    if size is not None and size % by:
        raise ValueError(f"{what} of size {size} must be divisible by {by}")
    return None if size is None else size // by


def _times(size: int | None, by: int) -> int | None:
    return None if size is None else size * by


def _axes(data_format: str) -> tuple[int, int, int]:
    """The dimensions of height, width and depth."""
    if data_format == "NCHW_VECT_C":
        raise ValueError("The format NCHW_VECT_C is for quantized kernels that do not exist here")
    return (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)


def _depth_dims(dims: Dims, block: int, data_format: str, to_depth: bool) -> Dims:
    if dims is None:
        return (None,) * 4
    if len(dims) != 4:
        raise ValueError(f"input must be of rank 4, not of shape {format_dims(dims)}")
    height, width, depth = _axes(data_format)
    out = list(dims)
    if to_depth:
        out[height] = _quotient(dims[height], block, "The height")
        out[width] = _quotient(dims[width], block, "The width")
        out[depth] = _times(dims[depth], block * block)
    else:
        out[height], out[width] = _times(dims[height], block), _times(dims[width], block)
        out[depth] = _quotient(dims[depth], block * block, "The depth")
    return tuple(out)


@space_to_depth_op.shape
def _(x, *, block_size, data_format):
    return _depth_dims(x.dims, block_size, data_format, True)


@depth_to_space_op.shape
def _(x, *, block_size, data_format):
    return _depth_dims(x.dims, block_size, data_format, False)


@space_to_depth_op.kernel
def _(xp, x, *, block_size, data_format):
    out = at_run_time(_depth_dims, x.shape, block_size, data_format, True)
    b = block_size
    if data_format == "NHWC":
        n, h, w, _ = out
        blocks = x.reshape((n, h, b, w, b, x.shape[3]))
        return blocks.transpose((0, 1, 3, 2, 4, 5)).reshape(out)
    n, _, h, w = out
    blocks = x.reshape((n, x.shape[1], h, b, w, b))
    return blocks.transpose((0, 3, 5, 1, 2, 4)).reshape(out)


@depth_to_space_op.kernel
def _(xp, x, *, block_size, data_format):
    out = at_run_time(_depth_dims, x.shape, block_size, data_format, False)
    b = block_size
    if data_format == "NHWC":
        n, h, w, _ = x.shape
        blocks = x.reshape((n, h, w, b, b, out[3]))
        return blocks.transpose((0, 1, 3, 2, 4, 5)).reshape(out)
    n, _, h, w = x.shape
    blocks = x.reshape((n, b, b, out[1], h, w))
    return blocks.transpose((0, 3, 4, 1, 5, 2)).reshape(out)


@space_to_depth_op.gradient
def _(op, grad):
    return depth_to_space_op(
        grad, block_size=op.attrs["block_size"], data_format=op.attrs["data_format"]
    )


@depth_to_space_op.gradient
def _(op, grad):
    return space_to_depth_op(
        grad, block_size=op.attrs["block_size"], data_format=op.attrs["data_format"]
    )


def space_to_depth(
    input: Any,  # noqa: A002
    block_size: int,
    name: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Images with each block of pixels laid into the depth.

    Example:
        >>> tf.space_to_depth(tf.zeros([1, 4, 4, 3]), 2)  # shape [1, 2, 2, 12]
    """
    return space_to_depth_op(input, block_size=block_size, data_format=data_format, name=name)


def depth_to_space(
    input: Any,  # noqa: A002
    block_size: int,
    name: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Images with depth laid out as blocks of pixels; the opposite of ``space_to_depth``.

    Example:
        >>> tf.depth_to_space(tf.zeros([1, 2, 2, 12]), 2)  # shape [1, 4, 4, 3]
    """
    return depth_to_space_op(input, block_size=block_size, data_format=data_format, name=name)


# Batch ----------------------------------------------------------------------------------------

space_to_batch_op = register_op(
    "SpaceToBatchND",
    inputs="input: T, block_shape: Tblock_shape, paddings: Tpaddings",
    outputs="output: T",
    attrs=[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tpaddings: {int32, int64} = DT_INT32",
    ],
    static_inputs=("block_shape", "paddings"),
)
batch_to_space_op = register_op(
    "BatchToSpaceND",
    inputs="input: T, block_shape: Tblock_shape, crops: Tcrops",
    outputs="output: T",
    attrs=[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tcrops: {int32, int64} = DT_INT32",
    ],
    static_inputs=("block_shape", "crops"),
)


def _blocks(dims: Any, block_shape: Any, amounts: Any) -> tuple[list[int], list[list[int]]]:
    block, pairs = block_shape.tolist(), amounts.tolist()
    if np.shape(pairs) != (len(block), 2):
        raise ValueError(f"There must be a pair for each of {len(block)} blocks, not {pairs}")
    if dims is not None and len(dims) < 1 + len(block):
        raise ValueError(f"input must have at least {1 + len(block)} dimensions")
    if min(block, default=1) < 1 or min(map(min, pairs), default=0) < 0:
        raise ValueError(f"Blocks must be positive and pairs not negative: {block}, {pairs}")
    return block, pairs


def _to_batch_dims(
    dims: tuple[int | None, ...], block: list[int], paddings: list[list[int]]
) -> Dims:
    out = [_times(dims[0], int(np.prod(block)))]
    for d, (b, (before, after)) in enumerate(zip(block, paddings, strict=True), start=1):
        size = dims[d]
        padded = None if size is None else size + before + after
        out.append(_quotient(padded, b, f"Dimension {d}, padded,"))
    return (*out, *dims[1 + len(block) :])


def _to_space_dims(dims: tuple[int | None, ...], block: list[int], crops: list[list[int]]) -> Dims:
    out = [_quotient(dims[0], int(np.prod(block)), "The batch")]
    for d, (b, (before, after)) in enumerate(zip(block, crops, strict=True), start=1):
        size = _times(dims[d], b)
        if size is not None and before + after > size:
            raise ValueError(f"crops {(before, after)} exceed dimension {d}, of size {size}")
        out.append(None if size is None else size - before - after)
    return (*out, *dims[1 + len(block) :])


def _batch_shape(x: Tensor, block_shape: Tensor, amounts: Tensor, convert: Any) -> Dims:
    known = constant_value(block_shape), constant_value(amounts)
    if x.dims is None:
        return None
    if known[0] is None or known[1] is None:
        blocks = block_shape.dims[0] if block_shape.dims else None
        rest = () if blocks is None else x.dims[1 + blocks :]
        return (None,) * (len(x.dims) - len(rest)) + rest
    return convert(x.dims, *_blocks(x.dims, *known))


@space_to_batch_op.shape
def _(x, block_shape, paddings):
    return _batch_shape(x, block_shape, paddings, _to_batch_dims)


@batch_to_space_op.shape
def _(x, block_shape, crops):
    return _batch_shape(x, block_shape, crops, _to_space_dims)


@space_to_batch_op.kernel
def _(xp, x, block_shape, paddings):
    block, pads = at_run_time(_blocks, x.shape, block_shape, paddings)
    out = at_run_time(_to_batch_dims, x.shape, block, pads)
    m = len(block)
    rest = x.shape[1 + m :]
    if any(map(any, pads)):
        x = xp.pad(x, [(0, 0), *map(tuple, pads), *[(0, 0)] * len(rest)])
    split = [n for size, b in zip(out[1 : 1 + m], block, strict=True) for n in (size, b)]
    blocks = x.reshape((x.shape[0], *split, *rest))
    inner = [2 * i + 2 for i in range(m)]
    outer = [2 * i + 1 for i in range(m)]
    tail = range(2 * m + 1, blocks.ndim)
    return blocks.transpose((*inner, 0, *outer, *tail)).reshape(out)


@batch_to_space_op.kernel
def _(xp, x, block_shape, crops):
    block, cuts = at_run_time(_blocks, x.shape, block_shape, crops)
    out = at_run_time(_to_space_dims, x.shape, block, cuts)
    m = len(block)
    rest = x.shape[1 + m :]
    blocks = x.reshape((*block, out[0], *x.shape[1 : 1 + m], *rest))
    pairs = [axis for i in range(m) for axis in (m + 1 + i, i)]
    tail = range(2 * m + 1, blocks.ndim)
    whole = [size * b for size, b in zip(x.shape[1 : 1 + m], block, strict=True)]
    image = blocks.transpose((m, *pairs, *tail)).reshape((out[0], *whole, *rest))
    window = [
        slice(before, size - after) for size, (before, after) in zip(whole, cuts, strict=True)
    ]
    return image[(slice(None), *window)]


@space_to_batch_op.gradient
def _(op, grad):
    return [batch_to_space_op(grad, *op.inputs[1:]), None, None]


@batch_to_space_op.gradient
def _(op, grad):
    return [space_to_batch_op(grad, *op.inputs[1:]), None, None]


def space_to_batch_nd(
    input: Any,  # noqa: A002
    block_shape: Any,
    paddings: Any,
    name: str | None = None,
) -> Tensor:
    """Blocks of the (zero-padded) spatial dimensions moved into the batch.

    Example:
        >>> tf.space_to_batch_nd(tf.zeros([1, 4, 4, 3]), [2, 2], [[0, 0], [0, 0]])  # [4, 2, 2, 3]
    """
    return space_to_batch_op(input, block_shape, paddings, name=name)


def batch_to_space_nd(
    input: Any,  # noqa: A002
    block_shape: Any,
    crops: Any,
    name: str | None = None,
) -> Tensor:
    """The opposite of ``space_to_batch_nd``; ``crops`` are cut off.

    Example:
        >>> tf.batch_to_space_nd(tf.zeros([4, 2, 2, 3]), [2, 2], [[0, 0], [0, 0]])  # [1, 4, 4, 3]
    """
    return batch_to_space_op(input, block_shape, crops, name=name)


def space_to_batch(
    input: Any,  # noqa: A002
    paddings: Any,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """``space_to_batch_nd`` of images, with square blocks of ``block_size``."""
    block = [block_size, block_size] if block_shape is None else block_shape
    return space_to_batch_nd(input, block, paddings, name)


def batch_to_space(
    input: Any,  # noqa: A002
    crops: Any,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """``batch_to_space_nd`` of images, with square blocks of ``block_size``."""
    block = [block_size, block_size] if block_shape is None else block_shape
    return batch_to_space_nd(input, block, crops, name)
