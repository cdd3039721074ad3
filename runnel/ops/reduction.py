"""Reductions over axes: sum, mean, product, extrema, logic and norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import constant_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shapes import Dims
from runnel.ops.arithmetic import conjugate, mul_op
from runnel.ops.half_precision import narrow, widen

_INDEX = "Tidx: {int32, int64} = DT_INT32"


def normalized_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """``axes`` (an array of any shape) counted from the front, in order; checked."""
    array = np.asarray(axes)
    if array.ndim == 0 and -rank <= (axis := int(array)) < rank:
        return (axis % rank,)
    listed = array.tolist() if array.ndim == 1 else array.ravel().tolist()
    if listed == list(range(rank)) or (len(listed) == 1 and 0 <= listed[0] < rank):
        return tuple(listed)
    normal = []
    for axis in listed:
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {rank} dimensions")
        normal.append(axis % rank)
    if len(set(normal)) != len(normal):
        raise ValueError(f"Invalid reduction arguments: axes {normal} contain a duplicate")
    return tuple(sorted(normal))


def reduced_dims(x: Tensor, axes: Tensor, *, keep_dims: bool) -> Dims:
    """The static shape of ``x`` reduced over ``axes``."""
    dims = x.dims
    if dims is None:
        return None
    known = constant_value(axes)
    if known is None:
        return (None,) * len(dims) if keep_dims else None
    chosen = normalized_axes(known, len(dims))
    if keep_dims:
        return tuple([1 if i in chosen else d for i, d in enumerate(dims)])
    return tuple([d for i, d in enumerate(dims) if i not in chosen])


def _register(
    name: str, compute: Callable[..., Any], types: str | None = "numbertype", **how: Any
) -> OpDef:
    """An op that reduces its first input over the axes that its second lists.

    ``compute(xp, x, axes, keep_dims)`` is called with at least one axis.
    """
    kind = "bool" if types is None else "T"
    op_def = register_op(
        name,
        inputs=f"input: {kind}, reduction_indices: Tidx",
        outputs=f"output: {kind}",
        attrs=["keep_dims: bool = false", *([] if types is None else [f"T: {types}"]), _INDEX],
        static_inputs=("reduction_indices",),
        **how,
    )
    op_def.shape(reduced_dims)

    @op_def.kernel
    def _(xp, x, axes, *, keep_dims):
        return compute(xp, x, normalized_axes(axes, x.ndim), keep_dims)

    return op_def


def _sum(xp: Any, x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    if not axes:
        return x
    if xp is np and x.dtype.char in "fd":
        if x.ndim > 1 and x.shape[-1] < _SHORT and x.size >= _MANY:
            x, axes, keep_dims = _in_long_rows(x, axes, keep_dims)
        return x.sum(axes, None, None, keep_dims)
    wide = widen(x)
    return narrow(xp.sum(wide, axis=axes, keepdims=keep_dims, dtype=wide.dtype), x.dtype)


_SHORT, _MANY = 64, 4096
_LONG = 512
"""Elements of a row that NumPy adds to another at full speed."""


def _in_long_rows(
    x: np.ndarray, axes: tuple[int, ...], keep_dims: bool
) -> tuple[np.ndarray, tuple[int, ...], bool]:
    """What to sum instead of ``x``, over which axes: where only short rows stay, NumPy is slow.

    Equal numbers of rows, one behind the other, are rows of their own; their sum comes first.
    """
    stay = x.shape[-1]
    count = x.size // stay
    together = math.gcd(count, 1 << (_LONG // max(stay, 1)).bit_length())
    if axes != tuple(range(x.ndim - 1)) or not x.flags.c_contiguous or together < 4:
        return x, axes, keep_dims
    part = x.reshape(-1, together * stay).sum(0)
    shape = (*(1,) * (x.ndim - 2), together, stay) if keep_dims else (together, stay)
    return part.reshape(shape), (len(shape) - 2,), keep_dims


def _mean(xp: Any, x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    if not axes:
        return x
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    if x.dtype.kind in "iu":
        wide_type = np.dtype(np.int64 if x.dtype.kind == "i" else np.uint64)
        total = xp.sum(x, axis=axes, keepdims=keep_dims, dtype=wide_type)
        divisor = np.array(max(count, 1), wide_type)
        # Integers are divided as in C: towards zero.
        return xp.floor_divide(total - xp.fmod(total, divisor), divisor).astype(x.dtype)
    wide = widen(x)
    total = _sum(xp, wide, axes, keep_dims)
    return narrow(total / np.array(count, wide.dtype), x.dtype)


def _product(xp: Any, x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    wide = widen(x)
    return narrow(xp.prod(wide, axis=axes, keepdims=keep_dims, dtype=wide.dtype), x.dtype)


def _extremum(method: str) -> Callable[..., Any]:
    def compute(xp, x, axes, keep_dims):
        if not axes:
            return x
        if x.dtype.kind in "iu":
            bounds = np.iinfo(x.dtype)
            worst: float = bounds.min if method == "max" else bounds.max
        else:
            worst = -np.inf if method == "max" else np.inf
        start = np.array(worst, x.dtype)
        return getattr(xp, method)(x, axis=axes, keepdims=keep_dims, initial=start)

    return compute


def _euclidean_norm(xp: Any, x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    wide = widen(x)
    squares = wide * xp.conjugate(wide) if x.dtype.kind == "c" else wide * wide
    total = xp.sum(squares, axis=axes, keepdims=keep_dims, dtype=wide.dtype)
    if x.dtype.kind in "iu":
        total = total.astype(np.float64)
    return xp.sqrt(total).astype(x.dtype)


sum_op = _register("Sum", _sum)
mean_op = _register("Mean", _mean)
prod_op = _register("Prod", _product)
max_op = _register("Max", _extremum("max"), "{realnumbertype}")
min_op = _register("Min", _extremum("min"), "{realnumbertype}")
euclidean_norm_op = _register("EuclideanNorm", _euclidean_norm)
all_op = _register(
    "All",
    lambda xp, x, axes, keep: xp.all(x, axis=axes, keepdims=keep),
    None,
    differentiable=False,
)
any_op = _register(
    "Any",
    lambda xp, x, axes, keep: xp.any(x, axis=axes, keepdims=keep),
    None,
    differentiable=False,
)


# Gradients ------------------------------------------------------------------------------------


def kept_shape(x: Tensor, axes: Tensor) -> Any:
    """The shape of ``x`` with 1 in place of the reduced axes: a tuple, or a tensor."""
    known = constant_value(axes)
    if x.dims is not None and known is not None:
        chosen = normalized_axes(known, len(x.dims))
        kept = tuple(1 if i in chosen else d for i, d in enumerate(x.dims))
        # One unknown size can be left to Reshape to find.
        if sum(d is None for d in kept) <= 1:
            return [-1 if d is None else d for d in kept]
    one = constant_tensor(1, dtypes.int32)
    return get_op_def("SelectV2")(_reduced_positions(x, axes), one, get_op_def("Shape")(x))


def _reduced_positions(x: Tensor, axes: Tensor) -> Tensor:
    """For each dimension of ``x`` whether it is one of ``axes``."""
    rank = get_op_def("Rank")(x)
    axes = get_op_def("Cast")(axes, DstT=dtypes.int32) if axes.dtype is dtypes.int64 else axes
    chosen = get_op_def("FloorMod")(get_op_def("Reshape")(axes, [-1]), rank)
    column = get_op_def("ExpandDims")(_positions(rank), 1)
    return any_op(get_op_def("Equal")(column, chosen), [1])


def _positions(rank: Tensor) -> Tensor:
    zero, one = constant_tensor(0, dtypes.int32), constant_tensor(1, dtypes.int32)
    return get_op_def("Range")(zero, rank, one)


def _spread(op: Any, value: Tensor) -> Tensor:
    """``value``, of the shape of the output of ``op``, with the reduced axes put back as 1."""
    if op.attrs["keep_dims"]:
        return value
    x, axes = op.inputs
    if value.dims == ():
        return value  # a scalar broadcasts by itself
    return get_op_def("Reshape")(value, kept_shape(x, axes))


def _broadcast_to_input(op: Any, grad: Tensor) -> Tensor:
    x = op.inputs[0]
    spread = _spread(op, grad)
    if x.dims is not None and None not in x.dims:
        if spread.dims == x.dims:
            return spread
        return get_op_def("BroadcastTo")(spread, constant_tensor(list(x.dims), dtypes.int32))
    return get_op_def("BroadcastTo")(spread, get_op_def("Shape")(x))


@sum_op.gradient
def _(op, grad):
    return [_broadcast_to_input(op, grad), None]


def _reduced_count(op: Any) -> Tensor:
    """How many elements of the input go into one of the output, in the input's type."""
    x, y = op.inputs[0], op.outputs[0]
    kind = x.dtype.base_dtype
    known = constant_value(op.inputs[1])
    if x.dims is not None and known is not None:
        sizes = [x.dims[axis] for axis in normalized_axes(known, len(x.dims))]
        if None not in sizes:
            return constant_tensor(int(np.prod(sizes, dtype=np.int64)), kind)
    size = get_op_def("Size")
    count = get_op_def("FloorDiv")(
        size(x), get_op_def("Maximum")(size(y), constant_tensor(1, dtypes.int32))
    )
    return get_op_def("Cast")(count, DstT=kind)


@mean_op.gradient
def _(op, grad):
    return [get_op_def("RealDiv")(_broadcast_to_input(op, grad), _reduced_count(op)), None]


def _extremum_gradient(op: Any, grad: Tensor) -> list[Tensor | None]:
    x, axes = op.inputs
    y = _spread(op, op.outputs[0])
    chosen = get_op_def("Cast")(get_op_def("Equal")(y, x), DstT=grad.dtype.base_dtype)
    # Equal extrema share the gradient.
    count = sum_op(chosen, axes, keep_dims=True)
    share = get_op_def("RealDiv")(chosen, count)
    return [mul_op(share, _spread(op, grad)), None]


max_op.gradient(_extremum_gradient)
min_op.gradient(_extremum_gradient)


@euclidean_norm_op.gradient
def _(op, grad):
    norm, grad = _spread(op, op.outputs[0]), _spread(op, grad)
    return [mul_op(op.inputs[0], get_op_def("DivNoNan")(grad, norm)), None]


@prod_op.gradient
def _(op, grad):
    # The product of all the others, also where some are zero: the product of those before
    # times the product of those after, along one axis that holds everything reduced.
    x, axes = op.inputs
    shape = get_op_def("Shape")(x)
    reduced = _reduced_positions(x, axes)
    one, zero = constant_tensor(1, dtypes.int32), constant_tensor(0, dtypes.int32)
    select, size = get_op_def("SelectV2"), get_op_def("Prod")
    counts = [select(reduced, shape, one), select(reduced, one, shape)]
    transpose, reshape = get_op_def("Transpose"), get_op_def("Reshape")
    order, inverse = _reduced_first(x, axes, reduced)
    permuted = transpose(x, order)
    first = constant_tensor([0], dtypes.int32)
    flat = reshape(permuted, get_op_def("Pack")([size(count, first) for count in counts]))
    cumprod = get_op_def("Cumprod")
    before = cumprod(flat, zero, exclusive=True)
    after = cumprod(flat, zero, exclusive=True, reverse=True)
    others = reshape(mul_op(conjugate(before), conjugate(after)), get_op_def("Shape")(permuted))
    return [mul_op(_spread(op, grad), transpose(others, inverse)), None]


def _reduced_first(x: Tensor, axes: Tensor, reduced: Tensor) -> tuple[Any, Any]:
    """The order of dimensions in which the reduced ones come first, and its inverse."""
    known = constant_value(axes)
    if x.dims is not None and known is not None:
        chosen = normalized_axes(known, len(x.dims))
        order = [*chosen, *(i for i in range(len(x.dims)) if i not in chosen)]
        return order, [int(i) for i in np.argsort(order)]
    rank = get_op_def("Rank")(x)
    positions = _positions(rank)
    # The largest are those of reduced dimensions, the smaller the position the larger.
    negative = get_op_def("Neg")
    bonus = get_op_def("SelectV2")(reduced, rank, constant_tensor(0, dtypes.int32))
    sort = get_op_def("TopKV2")
    by_position = sort(get_op_def("AddV2")(negative(positions), bonus), rank)[1]
    return by_position, sort(negative(by_position), rank)[1]
