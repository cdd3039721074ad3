"""Making a tensor larger: tile, pad, mirror pad."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.array_size import require_addressable
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import at_run_time, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.joining import stack

# Tile -----------------------------------------------------------------------------------------

tile_op = register_op(
    "Tile",
    inputs="input: T, multiples: Tmultiples",
    outputs="output: T",
    attrs=["T: type", "Tmultiples: {int32, int64} = DT_INT32"],
    static_inputs=("multiples",),
)


@tile_op.shape
def _(x, multiples):
    count = multiples.dims[0] if multiples.dims is not None and len(multiples.dims) == 1 else None
    if multiples.dims is not None and len(multiples.dims) != 1:
        raise ValueError(f"multiples must be a vector, not of shape {format_dims(multiples.dims)}")
    if x.dims is None:
        return None if count is None else (None,) * count
    if count is not None and count != len(x.dims):
        raise ValueError(f"multiples must have {len(x.dims)} elements, one for each dimension")
    times = constant_value(multiples)
    if times is not None and (times < 0).any():
        raise ValueError(f"multiples must not be negative, but are {times.tolist()}")
    known = constant_value_as_dims(multiples)
    if known is None:
        return (None,) * len(x.dims)
    return tuple(
        None if d is None or n is None else d * n for d, n in zip(x.dims, known, strict=True)
    )


@tile_op.kernel
def _(xp, x, multiples):
    times = multiples.tolist()
    if len(times) != x.ndim or min(times, default=0) < 0:
        raise InvalidArgumentError(
            None,
            None,
            f"multiples must be one number, not negative, for each of {x.ndim} dimensions, but "
            f"are {times}",
        )
    require_addressable([n * t for n, t in zip(x.shape, times)], x.dtype.itemsize)
    return xp.tile(x, times)


@tile_op.gradient
def _(op, grad):
    x, multiples = op.inputs
    own_shape = shape_of(x, out_type=multiples.dtype.base_dtype)
    # Each dimension split into (copies, elements); the copies are added up.
    split = reshape(stack([multiples, own_shape], axis=1), [-1])
    copies = get_op_def("Range")(0, get_op_def("Size")(split), 2)
    return [reshape(get_op_def("Sum")(reshape(grad, split), copies), own_shape), None]


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """``input`` repeated ``multiples[i]`` times along each dimension ``i``.

    Example:
        >>> tf.tile([[1, 2]], [2, 2])  # [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return tile_op(input, multiples, name=name)


# Pad ------------------------------------------------------------------------------------------

_PADDINGS = "Tpaddings: {int32, int64} = DT_INT32"


def _pad_op(name: str, extra: str = "", attrs: tuple[str, ...] = ()) -> OpDef:
    return register_op(
        name,
        inputs=f"input: T, paddings: Tpaddings{extra}",
        outputs="output: T",
        attrs=["T: type", _PADDINGS, *attrs],
        static_inputs=("paddings",),
    )


_MODE = "mode: {'REFLECT', 'SYMMETRIC'}"
pad_op = _pad_op("Pad")
pad_v2_op = _pad_op("PadV2", ", constant_values: T")
mirror_pad_op = _pad_op("MirrorPad", attrs=(_MODE,))
mirror_pad_grad_op = _pad_op("MirrorPadGrad", attrs=(_MODE,))


def _amounts(paddings: np.ndarray, rank: int) -> list[tuple[int, int]]:
    if paddings.shape != (rank, 2):
        raise ValueError(
            f"paddings must have the shape ({rank}, 2) for a tensor of rank {rank}, not "
            f"{format_dims(paddings.shape)}"
        )
    if (paddings < 0).any():
        raise ValueError(f"paddings must not be negative, but are {paddings.tolist()}")
    return [(int(before), int(after)) for before, after in paddings]


def _known_amounts(paddings: Tensor, rank: int) -> list[tuple[int, int] | None]:
    """The pairs that are known, where only some of them depend on data."""
    if paddings.op.type != "Pack" or len(paddings.op.inputs) != rank or paddings.op.attrs["axis"]:
        return [None] * rank
    known = [constant_value(pair) for pair in paddings.op.inputs]
    return [None if pair is None else (int(pair[0]), int(pair[1])) for pair in known]


def _padded_dims(x: Tensor, paddings: Tensor, sign: int = 1) -> Dims:
    if paddings.dims is not None and (len(paddings.dims) != 2 or paddings.dims[1] not in (2, None)):
        raise ValueError(f"paddings must have the shape (rank, 2), not {paddings.shape}")
    rank = len(x.dims) if x.dims is not None else (paddings.dims or (None,))[0]
    if rank is None:
        return None
    if paddings.dims is not None and paddings.dims[0] not in (rank, None):
        raise ValueError(f"paddings must have the shape ({rank}, 2), not {paddings.shape}")
    if x.dims is None:
        return (None,) * rank
    amounts = constant_value(paddings)
    if amounts is None:
        return tuple(
            None if d is None or pair is None else d + sign * sum(pair)
            for d, pair in zip(x.dims, _known_amounts(paddings, rank), strict=True)
        )
    return tuple(
        None if d is None else d + sign * (before + after)
        for d, (before, after) in zip(x.dims, _amounts(amounts, rank), strict=True)
    )


def _limited(amounts: list[tuple[int, int]], shape: tuple[int, ...], mode: str) -> None:
    for axis, (pair, dim) in enumerate(zip(amounts, shape, strict=True)):
        most = dim - (mode == "REFLECT")
        if max(pair) > max(most, 0):
            raise ValueError(
                f"paddings {pair} of dimension {axis} must be at most {most}: "
                f"{mode} repeats no more of it, of size {dim}"
            )


@pad_op.shape
def _(x, paddings):
    return _padded_dims(x, paddings)


@pad_v2_op.shape
def _(x, paddings, constant_values):
    return _padded_dims(x, paddings)


@mirror_pad_op.shape
def _(x, paddings, *, mode):
    amounts = constant_value(paddings)
    if amounts is not None and x.dims is not None and None not in x.dims:
        _limited(_amounts(amounts, len(x.dims)), x.dims, mode)
    return _padded_dims(x, paddings)


@mirror_pad_grad_op.shape
def _(x, paddings):
    return _padded_dims(x, paddings, -1)


def _pad(xp: Any, x: Any, paddings: Any, value: Any) -> Any:
    amounts = at_run_time(_amounts, paddings, x.ndim)
    if xp is np:
        shape = [before + d + after for (before, after), d in zip(amounts, x.shape, strict=True)]
        out = np.full(shape, value, x.dtype)
        inner: list[Any] = [
            slice(before, before + d) for (before, _), d in zip(amounts, x.shape, strict=True)
        ]
        out[(*inner, ...)] = x
        return out
    from jax import lax

    return lax.pad(xp.asarray(x), value, [(before, after, 0) for before, after in amounts])


@pad_op.kernel
def _(xp, x, paddings):
    return _pad(xp, x, paddings, b"" if x.dtype == object else xp.zeros((), x.dtype))


@pad_v2_op.kernel
def _(xp, x, paddings, constant_values):
    return _pad(xp, x, paddings, constant_values)


@mirror_pad_op.kernel
def _(xp, x, paddings, *, mode):
    amounts = at_run_time(_amounts, paddings, x.ndim)
    at_run_time(_limited, amounts, x.shape, mode)
    return xp.pad(x, amounts, mode=mode.lower()) if amounts else x


@mirror_pad_grad_op.kernel
def _(xp, grad, paddings, *, mode):
    """Folds each border back onto the elements that it mirrored."""
    skip = int(mode == "REFLECT")
    for axis, (before, after) in enumerate(at_run_time(_amounts, paddings, grad.ndim)):
        if before == after == 0:
            continue
        size = grad.shape[axis] - before - after

        def part(start: int, length: int, axis: int = axis, x: Any = grad) -> Any:
            return x[(*(slice(None),) * axis, slice(start, start + length))]

        def spread(border: Any, start: int, axis: int = axis, size: int = size) -> Any:
            """Zeros with the border, reversed, from ``start`` on."""
            amounts = [(0, 0)] * border.ndim
            amounts[axis] = (start, size - start - border.shape[axis])
            return xp.pad(xp.flip(border, axis), amounts)

        left = spread(part(0, before), skip)
        right = spread(part(before + size, after), size - skip - after)
        grad = part(before, size) + left + right
    return grad


def _unpad(op: Any, grad: Any) -> Tensor:
    x, paddings = op.inputs[:2]
    before = paddings[:, 0]
    return get_op_def("Slice")(grad, before, shape_of(x, out_type=paddings.dtype.base_dtype))


@pad_op.gradient
def _(op, grad):
    return [_unpad(op, grad), None]


@pad_v2_op.gradient
def _(op, grad):
    inside = _unpad(op, grad)
    total = get_op_def("Sum")
    from runnel.ops.ranges import range as positions

    everywhere = positions(get_op_def("Rank")(grad))
    return [inside, None, total(grad, everywhere) - total(inside, everywhere)]


@mirror_pad_op.gradient
def _(op, grad):
    return [mirror_pad_grad_op(grad, op.inputs[1], mode=op.attrs["mode"]), None]


@mirror_pad_grad_op.gradient
def _(op, grad):
    return [mirror_pad_op(grad, op.inputs[1], mode=op.attrs["mode"]), None]


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """``tensor`` with ``paddings[d] = [before, after]`` elements added in each dimension.

    ``mode`` is "CONSTANT" (filled with ``constant_values``), "REFLECT" (mirrored at the border
    element) or "SYMMETRIC" (mirrored including it).

    Example:
        >>> tf.pad([[1, 2]], [[0, 1], [2, 0]])  # [[0, 0, 1, 2], [0, 0, 0, 0]]
        >>> tf.pad([1, 2, 3], [[2, 0]], "REFLECT")  # [3, 2, 1, 2, 3]
    """
    upper = mode.upper()
    if upper == "CONSTANT":
        if not isinstance(constant_values, Tensor) and constant_values == 0:
            return pad_op(tensor, paddings, name=name)
        return pad_v2_op(tensor, paddings, constant_values, name=name)
    if upper in ("REFLECT", "SYMMETRIC"):
        return mirror_pad_op(tensor, paddings, mode=upper, name=name)
    raise ValueError(f"Unknown padding mode: {mode} (CONSTANT, REFLECT and SYMMETRIC are known)")
