"""Running sums, also of exponentials, and products along an axis; histograms of small integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.ops.arithmetic import FLOATS, conjugate, mul_op
from runnel.ops.half_precision import narrow, widen


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"Expected scan axis in the range [{-rank}, {rank}), but got {axis}")
    return axis % rank


def _register_scan(
    name: str,
    scan: Callable[..., Any],
    neutral: float,
    types: str = "numbertype",
) -> OpDef:
    """An op of partial results along an axis: ``scan(xp, x, axis)`` gives the inclusive ones.

    ``neutral`` is the result of no elements.
    """
    op_def = register_op(
        name,
        inputs="x: T, axis: Tidx",
        outputs="out: T",
        attrs=[
            "exclusive: bool = false",
            "reverse: bool = false",
            f"T: {types}",
            "Tidx: {int32, int64} = DT_INT32",
        ],
        static_inputs=("axis",),
    )

    @op_def.shape
    def _(x, axis):
        known = constant_value(axis)
        if known is not None and x.dims is not None:
            _axis(int(known), len(x.dims))
        return x.dims

    @op_def.kernel
    def _(xp, x, axis, *, exclusive, reverse):
        along = _axis(int(axis), x.ndim)
        values = widen(x)
        if reverse:
            values = xp.flip(values, along)
        if exclusive and values.shape[along]:
            # Each result is of the elements before: shift by one, the neutral element first.
            head = list(values.shape)
            head[along] = 1
            keep = [slice(None)] * values.ndim
            keep[along] = slice(0, -1)
            first = xp.full(tuple(head), neutral, values.dtype)
            values = xp.concatenate([first, values[tuple(keep)]], axis=along)
        out = narrow(scan(xp, values, along), x.dtype)
        return xp.flip(out, along) if reverse else out

    return op_def


def _cumulative_logsumexp(xp: Any, x: Any, axis: int) -> Any:
    if xp is np:
        return np.logaddexp.accumulate(x, axis=axis)
    import jax

    return jax.lax.cumlogsumexp(x, axis=axis)


cumsum_op = _register_scan("Cumsum", lambda xp, x, axis: xp.cumsum(x, axis=axis, dtype=x.dtype), 0)
cumprod_op = _register_scan(
    "Cumprod", lambda xp, x, axis: xp.cumprod(x, axis=axis, dtype=x.dtype), 1
)
cumulative_logsumexp_op = _register_scan(
    "CumulativeLogsumexp", _cumulative_logsumexp, -np.inf, f"{{{FLOATS}}}"
)


@cumsum_op.gradient
def _(op, grad):
    flags = {"exclusive": op.attrs["exclusive"], "reverse": not op.attrs["reverse"]}
    return [cumsum_op(grad, op.inputs[1], **flags), None]


@cumprod_op.gradient
def _(op, grad):
    x, axis = op.inputs
    weighted = mul_op(conjugate(op.outputs[0]), grad)
    flags = {"exclusive": op.attrs["exclusive"], "reverse": not op.attrs["reverse"]}
    total = cumsum_op(weighted, axis, **flags)
    return [get_op_def("DivNoNan")(total, conjugate(x)), None]


@cumulative_logsumexp_op.gradient
def _(op, grad):
    # The sum of grad / exp(output) from each place on, times exp(x): of logarithms, which do not
    # overflow, so what is positive and what is negative are summed apart.
    return [_exponential_sum(op, grad) - _exponential_sum(op, get_op_def("Neg")(grad)), None]


def _exponential_sum(op: Operation, grad: Tensor) -> Tensor:
    x, axis = op.inputs
    kind = x.dtype.base_dtype
    choose = get_op_def("SelectV2")
    positive = get_op_def("Greater")(grad, constant_tensor(0, kind))
    logarithm = get_op_def("Log")(choose(positive, grad, constant_tensor(1, kind)))
    shares = choose(positive, logarithm, constant_tensor(-np.inf, kind))
    flags = {"exclusive": op.attrs["exclusive"], "reverse": not op.attrs["reverse"]}
    total = cumulative_logsumexp_op(shares - op.outputs[0], axis, **flags)
    return get_op_def("Exp")(total + x)


bincount_op = register_op(
    "Bincount",
    inputs="arr: int32, size: int32, weights: T",
    outputs="bins: T",
    attrs="T: {int32, int64, float, double}",
    host=True,
    differentiable=False,
)


@bincount_op.shape
def _(arr, size, weights):
    known = constant_value(size)
    if known is None:
        return (None,)
    if known < 0:
        raise ValueError(f"Size must be non-negative, not {int(known)}")
    return (int(known),)


@bincount_op.kernel
def _(xp, arr, size, weights, *, check):
    check(int(size) >= 0, lambda: f"size ({int(size)}) must be non-negative")
    values = np.asarray(arr).reshape(-1)
    check(
        values.size == 0 or values.min() >= 0,
        lambda: f"Input arr must be non-negative, but holds {values.min()}",
    )
    inside = values < int(size)
    bins = np.zeros(int(size), weights.dtype)
    if weights.size:
        check(
            weights.shape == arr.shape,
            lambda: f"weights {list(weights.shape)} must have the shape of arr {list(arr.shape)}",
        )
        np.add.at(bins, values[inside], weights.reshape(-1)[inside])
    else:
        np.add.at(bins, values[inside], np.ones((), weights.dtype))
    return bins


# Functions ------------------------------------------------------------------------------------


def cumsum(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The running sum along ``axis``; ``exclusive`` leaves out the element itself.

    Example:
        >>> tf.Session().run(tf.cumsum([1, 2, 3]))
        array([1, 3, 6], dtype=int32)
    """
    with name_scope(name, "Cumsum", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumsum_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


def cumprod(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The running product along ``axis``; ``exclusive`` leaves out the element itself."""
    with name_scope(name, "Cumprod", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumprod_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


def cumulative_logsumexp(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """``log(cumsum(exp(x)))``, but without overflow; ``exclusive`` leaves out the element itself.

    Example:
        >>> tf.Session().run(tf.math.cumulative_logsumexp([0.0, 0.0]))
        array([0.       , 0.6931472], dtype=float32)
    """
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumulative_logsumexp_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in ``arr`` (or the sum of its ``weights``).

    Example:
        >>> tf.Session().run(tf.bincount([1, 1, 3]))
        array([0, 2, 0, 1], dtype=int32)
    """
    with name_scope(name, "bincount", [arr]):
        values = convert_to_tensor(arr, dtype=dtypes.int32, name="arr")
        from runnel.ops.casting import cast
        from runnel.ops.reduce_functions import reduce_max

        has_values = get_op_def("Greater")(get_op_def("Size")(values), 0)
        size = cast(has_values, dtypes.int32) * (reduce_max(values) + 1)
        if minlength is not None:
            low = convert_to_tensor(minlength, dtype=dtypes.int32, name="minlength")
            size = get_op_def("Maximum")(low, size)
        if maxlength is not None:
            high = convert_to_tensor(maxlength, dtype=dtypes.int32, name="maxlength")
            size = get_op_def("Minimum")(high, size)
        if weights is None:
            amounts = constant_tensor(np.zeros(0, as_dtype(dtype).np_dtype))
        else:
            amounts = convert_to_tensor(weights, name="weights")
        return bincount_op(values, size, amounts)
