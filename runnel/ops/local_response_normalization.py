"""Local response normalisation: each activation divided by those of its neighbouring channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims, merge_dims
from runnel.ops.arithmetic import multiply
from runnel.ops.arithmetic import pow as power
from runnel.ops.array_shape import reshape, shape
from runnel.ops.blas_threads import multiply as multiply_matrices
from runnel.ops.constants import constant
from runnel.ops.elementwise import square
from runnel.ops.half_precision import narrow, widen
from runnel.ops.matmul import matmul

_ATTRS = [
    "depth_radius: int = 5",
    "bias: float = 1.0",
    "alpha: float = 1.0",
    "beta: float = 0.5",
    "T: {half, bfloat16, float} = DT_FLOAT",
]

lrn_op = register_op("LRN", inputs="input: T", outputs="output: T", attrs=_ATTRS)
lrn_grad_op = register_op(
    "LRNGrad",
    inputs="input_grads: T, input_image: T, output_image: T",
    outputs="output: T",
    attrs=_ATTRS,
)


def _require_rank_4(tensor: Tensor) -> None:
    if tensor.dims is not None and len(tensor.dims) != 4:
        raise ValueError(f"The input must have rank 4, not shape {format_dims(tensor.dims)},")


@lrn_op.shape
def _(x):
    _require_rank_4(x)
    return x.dims if x.dims is not None else (None,) * 4


@lrn_grad_op.shape
def _(grad, x, y):
    _require_rank_4(x)
    return merge_dims(merge_dims(grad.dims, x.dims), merge_dims(x.dims, y.dims))


_WIDEST = 128
"""Channels up to which NumPy multiplies by a band matrix faster than it adds shifted arrays."""


def _window_sum(xp: Any, x: Any, radius: int) -> Any:
    """For each channel, the sum over the channels at most ``radius`` away."""
    channels = x.shape[-1]
    radius = min(radius, channels - 1) if channels else 0
    if xp is np and 0 < channels <= _WIDEST:
        at = np.arange(channels)
        near = (np.abs(at[:, None] - at) <= radius).astype(x.dtype)
        sums = multiply_matrices(np.matmul, x.reshape(-1, channels), near).reshape(x.shape)
        if np.isfinite(sums).all():  # else a channel that is not taints those that are far from it
            return sums
    padded = xp.pad(x, [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    # Shifted additions, which XLA fuses into one loop; differences of running sums would cancel.
    total = padded[..., :channels]
    for start in range(1, 2 * radius + 1):
        total = total + padded[..., start : start + channels]
    return total


def _inverse_power(xp: Any, norm: Any, beta: float) -> Any:
    """``norm ** -beta``; XLA's own power is several times slower on a CPU (JAX 0.10)."""
    return 1 / xp.sqrt(norm) if beta == 0.5 else xp.exp(-beta * xp.log(norm))


@lrn_op.kernel
def _(xp, x, *, depth_radius, bias, alpha, beta):
    if x.ndim != 4:
        raise InvalidArgumentError(None, None, f"The input must have rank 4, not shape {x.shape}")
    wide = widen(x)
    norm = bias + alpha * _window_sum(xp, xp.square(wide), depth_radius)
    return narrow(wide * _inverse_power(xp, norm, beta), x.dtype)


@lrn_grad_op.kernel
def _(xp, grad, x, y, *, depth_radius, bias, alpha, beta):
    g, wide = widen(grad), widen(x)
    norm = bias + alpha * _window_sum(xp, xp.square(wide), depth_radius)
    # A window holds a channel when that channel's window holds it: the sum is its own transpose.
    others = _window_sum(xp, g * widen(y) / norm, depth_radius)
    direct = g * _inverse_power(xp, norm, beta)
    return narrow(direct - 2 * alpha * beta * wide * others, x.dtype)


def _settings(op: Any) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("depth_radius", "bias", "alpha", "beta")}


@lrn_op.gradient
def _(op, grad):
    return lrn_grad_op(grad, op.inputs[0], op.outputs[0], **_settings(op))


@lrn_grad_op.formula
def _(op, g, x, y):
    if op.inputs[1].dims is None or op.inputs[1].dims[-1] is None:
        raise LookupError(
            f"The second derivative of {op.name!r} (LRN) needs a statically known number of "
            "channels; give the image's last dimension with set_shape."
        )
    settings = _settings(op)
    alpha, beta = settings["alpha"], settings["beta"]
    channels = op.inputs[1].dims[-1]
    at = np.arange(channels)
    near = np.abs(at[:, None] - at) <= settings["depth_radius"]
    band = constant(near.astype(x.dtype.base_dtype.np_dtype))

    def window_sum(t: Tensor) -> Tensor:
        return reshape(matmul(reshape(t, [-1, channels]), band), shape(t))

    norm = settings["bias"] + alpha * window_sum(square(x))
    inner = g * power(norm, -beta)
    return inner - multiply(2 * alpha * beta * x, window_sum(g * y / norm))


def local_response_normalization(
    input: Any,  # noqa: A002
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """``input / (bias + alpha * sum of squares over 2 * depth_radius + 1 channels) ** beta``.

    For images of rank 4 with channels last (Krizhevsky et al., 2012, section 3.3).

    Example:
        >>> y = tf.nn.local_response_normalization(images, depth_radius=4, alpha=0.001 / 9)
    """
    return lrn_op(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


lrn = local_response_normalization
