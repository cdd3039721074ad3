"""Rounding to the steps of a quantized type, for training what will run quantized.

The range is moved (*nudged*) so that zero is exactly one of the steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims

_BITS = ["num_bits: int = 8", "narrow_range: bool = false"]
_RANGE = ["min: float = -6.0", "max: float = 6.0"]

args_op = register_op(
    "FakeQuantWithMinMaxArgs",
    inputs="inputs: float",
    outputs="outputs: float",
    attrs=[*_RANGE, *_BITS],
)
args_gradient_op = register_op(
    "FakeQuantWithMinMaxArgsGradient",
    inputs="gradients: float, inputs: float",
    outputs="backprops: float",
    attrs=[*_RANGE, *_BITS],
    differentiable=False,
)


def _vars_ops(suffix: str) -> tuple[OpDef, OpDef]:
    forward = register_op(
        f"FakeQuantWithMinMaxVars{suffix}",
        inputs="inputs: float, min: float, max: float",
        outputs="outputs: float",
        attrs=_BITS,
    )
    backward = register_op(
        f"FakeQuantWithMinMaxVars{suffix}Gradient",
        inputs="gradients: float, inputs: float, min: float, max: float",
        outputs="backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float",
        attrs=_BITS,
        differentiable=False,
    )
    return forward, backward


vars_op, vars_gradient_op = _vars_ops("")
per_channel_op, per_channel_gradient_op = _vars_ops("PerChannel")


def _nudged(xp: Any, low: Any, high: Any, num_bits: int, narrow: bool) -> tuple[Any, Any, Any]:
    """The range that has zero among its steps, and the size of a step."""
    low, high = xp.asarray(low, np.float32), xp.asarray(high, np.float32)
    first, last = np.float32(1 if narrow else 0), np.float32((1 << num_bits) - 1)
    scale = (high - low) / (last - first)
    zero = first - low / xp.where(scale == 0, np.float32(1), scale)
    zero = xp.clip(xp.floor(zero + np.float32(0.5)), first, last)
    return (first - zero) * scale, (last - zero) * scale, scale


def _quantized(xp: Any, x: Any, low: Any, high: Any, num_bits: int, narrow: bool) -> Any:
    first, last, scale = _nudged(xp, low, high, num_bits, narrow)
    steps = np.float32(1) / xp.where(scale == 0, np.float32(1), scale)
    half = np.float32(0.5)
    zero = xp.floor(-first * steps + half)
    rounded = xp.floor((xp.clip(x, first, last) - first) * steps - zero + half) * scale
    return xp.where(scale == 0, xp.zeros_like(x), rounded)


def _inside(xp: Any, x: Any, low: Any, high: Any, num_bits: int, narrow: bool) -> Any:
    """Where ``x`` is in the range; everywhere, if the range is empty; and below and above it."""
    first, last, scale = _nudged(xp, low, high, num_bits, narrow)
    below, above = (x < first) & (scale != 0), (x > last) & (scale != 0)
    return ~(below | above), below, above


def _check(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise ValueError(f"num_bits must be from 2 to 16, not {num_bits}")


@args_op.shape
def _(x, *, min, max, num_bits):  # noqa: A002
    _check(num_bits)
    if min >= max:
        raise ValueError(f"min must be less than max, but they are {min} and {max}")
    return x.dims


@args_op.kernel
def _(xp, x, *, min, max, num_bits, narrow_range):  # noqa: A002
    return _quantized(xp, x, min, max, num_bits, narrow_range)


@args_gradient_op.shape
def _(grad, x):
    return x.dims


@args_gradient_op.kernel
def _(xp, grad, x, *, min, max, num_bits, narrow_range):  # noqa: A002
    inside, _, _ = _inside(xp, x, min, max, num_bits, narrow_range)
    return xp.where(inside, grad, xp.zeros_like(grad))


@args_op.gradient
def _(op, grad):
    return args_gradient_op(grad, op.inputs[0], **_settings(op, "min", "max"))


def _settings(op: Any, *names: str) -> dict[str, Any]:
    return {name: op.attrs[name] for name in (*names, "num_bits", "narrow_range")}


def _require_scalar(name: str, dims: Dims) -> None:
    if dims:
        raise ValueError(f"{name} must be a scalar, not of shape {format_dims(dims)}")


@vars_op.shape
def _(x, low, high, *, num_bits):
    _check(num_bits)
    _require_scalar("min", low.dims)
    _require_scalar("max", high.dims)
    return x.dims


@per_channel_op.shape
def _(x, low, high, *, num_bits):
    _check(num_bits)
    for name, given in (("min", low), ("max", high)):
        if given.dims is None or x.dims is None:
            continue
        fits = len(given.dims) == 1 and bool(x.dims)
        if fits and None not in (given.dims[0], x.dims[-1]):
            fits = given.dims[0] == x.dims[-1]
        if not fits:
            raise ValueError(
                f"{name} must have a value for each channel of {format_dims(x.dims)}, but its "
                f"shape is {format_dims(given.dims)}"
            )
    return x.dims


for _op in (vars_op, per_channel_op):

    @_op.kernel
    def _(xp, x, low, high, *, num_bits, narrow_range):
        return _quantized(xp, x, low, high, num_bits, narrow_range)


for _op in (vars_gradient_op, per_channel_gradient_op):

    @_op.shape
    def _(grad, x, low, high):
        return [x.dims, low.dims, high.dims]


def _backprops(xp: Any, grad: Any, x: Any, low: Any, high: Any, bits: int, narrow: bool) -> Any:
    """The gradients of a value, and those of the range: sums of what lies outside of it."""
    axes = tuple(range(x.ndim - low.ndim))
    inside, below, above = _inside(xp, x, low, high, bits, narrow)
    zero = xp.zeros_like(grad)
    ends = (xp.where(where, grad, zero).sum(axes, dtype=grad.dtype) for where in (below, above))
    return xp.where(inside, grad, zero), *ends


for _op in (vars_gradient_op, per_channel_gradient_op):

    @_op.kernel
    def _(xp, grad, x, low, high, *, num_bits, narrow_range):
        return _backprops(xp, grad, x, low, high, num_bits, narrow_range)


@vars_op.gradient
def _(op, grad):
    return list(vars_gradient_op(grad, *op.inputs, **_settings(op)))


@per_channel_op.gradient
def _(op, grad):
    return list(per_channel_gradient_op(grad, *op.inputs, **_settings(op)))


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,  # noqa: A002
    max: float = 6,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """``inputs`` rounded to the steps of ``num_bits`` bits from ``min`` to ``max``.

    ``narrow_range`` leaves out the lowest step.

    Example:
        >>> tf.quantization.fake_quant_with_min_max_args([0.1, 7.0], num_bits=4)  # [0., 5.6]
    """
    return args_op(
        inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,  # noqa: A002
    max: float = 6,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`fake_quant_with_min_max_args`: nothing flows outside of the range."""
    return args_gradient_op(
        gradients, inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,  # noqa: A002
    max: Any,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like :func:`fake_quant_with_min_max_args`; ``min`` and ``max`` are tensors, and learned."""
    return vars_op(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,  # noqa: A002
    max: Any,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of :func:`fake_quant_with_min_max_vars`: of inputs, ``min`` and ``max``."""
    return vars_gradient_op(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,  # noqa: A002
    max: Any,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like :func:`fake_quant_with_min_max_vars`, with a range for each place of the last axis."""
    return per_channel_op(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,  # noqa: A002
    max: Any,  # noqa: A002
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of :func:`fake_quant_with_min_max_vars_per_channel`."""
    return per_channel_gradient_op(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )
