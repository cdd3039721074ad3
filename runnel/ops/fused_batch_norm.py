"""Batch normalisation as one op, with its gradients to any order.

The statistics are computed in two passes, the mean first and then the mean of the squared
distances to it: ``E[x^2] - E[x]^2`` loses every digit of the variance when the mean is large. XLA
fuses each pass into one loop over ``x``. Where `runnel.native` is built, `runnel.ops.channel_sums`
has both in one on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops import channel_sums
from runnel.ops.array_shape import reshape
from runnel.ops.casting import cast
from runnel.ops.constants import constant
from runnel.ops.elementwise import rsqrt, square
from runnel.ops.half_precision import narrow, widen
from runnel.ops.reduce_functions import reduce_mean, reduce_sum

# cuDNN takes no smaller one, and a model must not change with the device.
_LEAST_EPSILON = 1.001e-5

_EPSILON = "epsilon: float = 0.0001"
_FACTOR = "exponential_avg_factor: float = 1.0"
_TRAINING = "is_training: bool = true"
_LAYOUT_2D = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_LAYOUT_3D = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"


def _forward(name: str, types: list[str], layout: str, reserved: int) -> OpDef:
    """FusedBatchNorm, of which V2 has 16-bit ``x`` and V3 volumes and one more output."""
    u = "U" if len(types) == 2 else "T"
    spaces = "".join(f", reserve_space_{i + 1}: {u}" for i in range(reserved))
    return register_op(
        name,
        inputs=f"x: T, scale: {u}, offset: {u}, mean: {u}, variance: {u}",
        outputs=f"y: T, batch_mean: {u}, batch_variance: {u}{spaces}",
        attrs=[*types, _EPSILON, _FACTOR, layout, _TRAINING],
    )


def _backward(name: str, types: list[str], layout: str, reserved: int) -> OpDef:
    u, scale = ("U", "float") if len(types) == 2 else ("T", "T")
    spaces = "".join(f", reserve_space_{i + 1}: {u}" for i in range(reserved))
    rest = (f"reserve_space_{reserved + 1}", f"reserve_space_{reserved + 2}")
    empty = "".join(f", {name}: {u}" for name in rest)
    return register_op(
        name,
        inputs=f"y_backprop: T, x: T, scale: {scale}{spaces}",
        outputs=f"x_backprop: T, scale_backprop: {u}, offset_backprop: {u}{empty}",
        attrs=[*types, _EPSILON, layout, _TRAINING],
        empty_outputs=rest,
    )


_SINGLE = ["T: {float}"]
_MIXED = ["T: {half, bfloat16, float}", "U: {float}"]
_MIXED_V3 = ["T: {half, bfloat16, float}", "U: {bfloat16, float}"]

fused_batch_norm_op = _forward("FusedBatchNorm", _SINGLE, _LAYOUT_2D, 2)
fused_batch_norm_v2_op = _forward("FusedBatchNormV2", _MIXED, _LAYOUT_2D, 2)
fused_batch_norm_v3_op = _forward("FusedBatchNormV3", _MIXED_V3, _LAYOUT_3D, 3)
fused_batch_norm_grad_op = _backward("FusedBatchNormGrad", _SINGLE, _LAYOUT_2D, 2)
fused_batch_norm_grad_v2_op = _backward("FusedBatchNormGradV2", _MIXED, _LAYOUT_2D, 2)
fused_batch_norm_grad_v3_op = _backward("FusedBatchNormGradV3", _MIXED, _LAYOUT_3D, 3)


# Shapes -----------------------------------------------------------------------------------------


def _channel_axis(data_format: str) -> int:
    return 1 if data_format.startswith("NC") else len(data_format) - 1


def _with_channels(x: Tensor, vectors: dict[str, Tensor], data_format: str) -> tuple[Dims, Dims]:
    """The shape of ``x`` and that of a vector with one element for each of its channels."""
    rank = len(data_format)
    axis = _channel_axis(data_format)
    dims = x.dims if x.dims is not None else (None,) * rank
    if len(dims) != rank:
        raise ValueError(
            f"x must have rank {rank} in the layout {data_format}, not shape {format_dims(dims)},"
        )
    channels: Dims = (dims[axis],)
    for what, vector in vectors.items():
        try:
            channels = merge_dims(channels, vector.dims)
        except ValueError:
            raise ValueError(
                f"{what} must be a vector with one element for each of the {dims[axis]} channels "
                f"(dimension {axis} of x {format_dims(dims)}), not of shape "
                f"{format_dims(vector.dims)},"
            ) from None
    assert channels is not None
    return (*dims[:axis], channels[0], *dims[axis + 1 :]), channels


def _forward_dims(
    x: Tensor,
    scale: Tensor,
    offset: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    data_format: str,
    is_training: bool,
    exponential_avg_factor: float,
) -> list[Dims]:
    vectors = {"scale": scale, "offset": offset}
    if not is_training or exponential_avg_factor != 1.0:
        vectors |= {"mean": mean, "variance": variance}
    dims, channels = _with_channels(x, vectors, data_format)
    return [dims, channels, channels, channels, channels]


fused_batch_norm_op.shape(_forward_dims)
fused_batch_norm_v2_op.shape(_forward_dims)


@fused_batch_norm_v3_op.shape
def _(x, scale, offset, mean, variance, *, data_format, is_training, exponential_avg_factor):
    how = {"is_training": is_training, "exponential_avg_factor": exponential_avg_factor}
    dims = _forward_dims(x, scale, offset, mean, variance, data_format=data_format, **how)
    return [*dims, None]  # the last one's content is each device's own affair


for _op in (fused_batch_norm_grad_op, fused_batch_norm_grad_v2_op, fused_batch_norm_grad_v3_op):

    @_op.shape
    def _(y_backprop, x, scale, mean, variance, *others, data_format):
        vectors = {"scale": scale, "reserve_space_1": mean, "reserve_space_2": variance}
        dims, channels = _with_channels(x, vectors, data_format)
        return [merge_dims(dims, y_backprop.dims), channels, channels, (0,), (0,)]


# Kernels ----------------------------------------------------------------------------------------


class _Layout:
    """Reductions to channels and broadcasts from them, for one concrete ``x``."""

    def __init__(self, x: Any, data_format: str, platform: str) -> None:
        if x.ndim != len(data_format):
            raise InvalidArgumentError(
                None,
                None,
                f"x must have rank {len(data_format)} in the layout {data_format}, not shape "
                f"{x.shape}",
            )
        channel = _channel_axis(data_format)
        self.channels = x.shape[channel]
        self.others = tuple(i for i in range(x.ndim) if i != channel)
        self.count = int(np.prod([x.shape[i] for i in self.others]))
        self._column = (-1, *[1] * (x.ndim - channel - 1))
        self._platform = platform
        self._channels_last = channel == x.ndim - 1

    def moments(self, xp: Any, x: Any) -> tuple[Any, Any]:
        """The mean and the variance of each channel."""
        if channel_sums.can_sum(xp, x, self._platform, self._channels_last):
            return channel_sums.moments(x)
        mean = xp.sum(x, axis=self.others) / self.count
        variance = xp.sum(xp.square(x - self.spread(mean)), axis=self.others) / self.count
        return mean, variance

    def gradient_sums(self, xp: Any, g: Any, x: Any, mean: Any) -> tuple[Any, Any]:
        """For each channel, the sum of ``g`` and that of ``g * (x - mean)``."""
        if channel_sums.can_sum(xp, x, self._platform, self._channels_last):
            return channel_sums.gradient_sums(g, x, mean)
        along = xp.sum(g * (x - self.spread(mean)), axis=self.others)
        return xp.sum(g, axis=self.others), along

    def spread(self, vector: Any) -> Any:
        return vector.reshape(self._column)

    def require(self, **vectors: Any) -> None:
        for name, vector in vectors.items():
            if vector.shape != (self.channels,):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{name} must be a vector with one element for each of the {self.channels} "
                    f"channels, not of shape {vector.shape}",
                )


def _computed_once(xp: Any, *vectors: Any) -> Any:
    """``vectors`` as values of their own.

    XLA would otherwise fuse a root and a division for each channel into the loop over all
    elements; on a CPU a training step is then several times slower (JAX 0.10).
    """
    if xp is np:
        return vectors
    from jax import lax

    return lax.optimization_barrier(vectors)


def _inverse_deviation(xp: Any, variance: Any, epsilon: float) -> Any:
    return 1 / xp.sqrt(variance + epsilon)


def _register_forward_kernel(op_def: OpDef, spare_outputs: int) -> None:
    @op_def.kernel
    def _(
        xp,
        x,
        scale,
        offset,
        *old,
        epsilon,
        exponential_avg_factor,
        data_format,
        is_training,
        platform,
    ):
        layout = _Layout(x, data_format, platform)
        layout.require(scale=scale, offset=offset)
        if not is_training or exponential_avg_factor != 1.0:
            layout.require(mean=old[0], variance=old[1])
        if is_training:
            used, kept = _statistics(xp, layout, widen(x), exponential_avg_factor, *old)
        else:
            used = kept = widen(old[0]), widen(old[1])
        gain = _inverse_deviation(xp, used[1], epsilon) * widen(scale)
        gain, middle = _computed_once(xp, gain, used[0])
        centered = widen(x) - layout.spread(middle)
        y = narrow(centered * layout.spread(gain) + layout.spread(widen(offset)), x.dtype)
        vectors = [narrow(v, scale.dtype) for v in (*kept, *used)]
        return (y, *vectors, *[xp.zeros(0, scale.dtype)] * spare_outputs)


def _statistics(
    xp: Any, layout: _Layout, x: Any, factor: float, old_mean: Any, old_variance: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The batch's mean and variance to normalise with, and those to keep for inference."""
    count = layout.count
    if count == 0:
        nothing = xp.zeros(layout.channels, x.dtype)
        return (nothing, nothing), (nothing + xp.nan, nothing + xp.nan)
    mean, variance = layout.moments(xp, x)
    # What is kept estimates the population's variance (Bessel's correction).
    kept = mean, variance * (count / max(count - 1, 1))
    if factor != 1.0:
        kept = (
            (1.0 - factor) * widen(old_mean) + factor * kept[0],
            (1.0 - factor) * widen(old_variance) + factor * kept[1],
        )
    return (mean, variance), kept


_register_forward_kernel(fused_batch_norm_op, 0)
_register_forward_kernel(fused_batch_norm_v2_op, 0)
_register_forward_kernel(fused_batch_norm_v3_op, 1)


def _backpropagate(
    xp: Any,
    y_backprop: Any,
    x: Any,
    scale: Any,
    mean: Any,
    variance: Any,
    *others: Any,
    epsilon: float,
    data_format: str,
    is_training: bool,
    platform: str,
) -> tuple[Any, Any, Any, Any, Any]:
    layout = _Layout(x, data_format, platform)
    layout.require(scale=scale, reserve_space_1=mean, reserve_space_2=variance)
    g, wide, u = widen(y_backprop), widen(x), mean.dtype
    spread = layout.spread
    inverse = _inverse_deviation(xp, widen(variance), epsilon)
    centered = wide - spread(widen(mean))
    offset_grad, along = layout.gradient_sums(xp, g, wide, widen(mean))
    gain = inverse * widen(scale)
    if is_training and layout.count:
        # Without what only shifts or only stretches the batch: the statistics undo that.
        shift, slope = offset_grad / layout.count, inverse * inverse * along / layout.count
        gain, shift, slope = _computed_once(xp, gain, shift, slope)
        x_grad = spread(gain) * (g - spread(shift) - centered * spread(slope))
    else:
        (gain,) = _computed_once(xp, gain)
        x_grad = spread(gain) * g
    empty = xp.zeros(0, u)
    scale_grad = narrow(along * inverse, u)
    return narrow(x_grad, x.dtype), scale_grad, narrow(offset_grad, u), empty, empty


for _op in (fused_batch_norm_grad_op, fused_batch_norm_grad_v2_op, fused_batch_norm_grad_v3_op):
    _op.kernel(_backpropagate)


# Gradients --------------------------------------------------------------------------------------

_BACKWARD = {
    "FusedBatchNorm": fused_batch_norm_grad_op,
    "FusedBatchNormV2": fused_batch_norm_grad_v2_op,
    "FusedBatchNormV3": fused_batch_norm_grad_v3_op,
}


def _first_order(op: Any, grad: Tensor, *others: Any) -> list[Tensor | None]:
    """From the gradient of ``y`` only: the statistics are kept, not differentiated."""
    x, scale, _, mean, variance = op.inputs
    reserved = list(op.outputs[3:])
    if not op.attrs["is_training"]:
        reserved[:2] = mean, variance
    u = scale.dtype.base_dtype
    x_grad, scale_grad, offset_grad, _, _ = _BACKWARD[op.type](
        grad,
        x,
        cast(scale, dtypes.float32),
        *[cast(r, dtypes.float32) for r in reserved],
        epsilon=op.attrs["epsilon"],
        data_format=op.attrs["data_format"],
        is_training=op.attrs["is_training"],
    )
    return [x_grad, cast(scale_grad, u), cast(offset_grad, u), None, None]


def _backward_as_graph(op: Any, y_backprop: Tensor, x: Tensor, scale: Tensor) -> list[Tensor]:
    attrs = op.attrs
    mean, variance = op.inputs[3:5]
    data_format = attrs["data_format"]
    channel = _channel_axis(data_format)
    rank = len(data_format)
    axes = [i for i in range(rank) if i != channel]

    def spread(vector: Tensor) -> Tensor:
        return reshape(vector, [-1, *[1] * (rank - channel - 1)])

    def average(t: Tensor) -> Tensor:
        return reduce_mean(t, axes, keepdims=True)

    g, wide = cast(y_backprop, dtypes.float32), cast(x, dtypes.float32)
    training = attrs["is_training"]
    centered = wide - (average(wide) if training else spread(mean))
    spread_variance = average(square(centered)) if training else spread(variance)
    inverse = rsqrt(spread_variance + attrs["epsilon"])
    normalized = centered * inverse
    along = g * normalized
    inner = g - average(g) - normalized * average(along) if training else g
    x_backprop = cast(spread(scale) * inverse * inner, x.dtype.base_dtype)
    return [x_backprop, reduce_sum(along, axes), reduce_sum(g, axes)]


for _op in (fused_batch_norm_op, fused_batch_norm_v2_op, fused_batch_norm_v3_op):
    _op.gradient(_first_order)
for _op in (fused_batch_norm_grad_op, fused_batch_norm_grad_v2_op, fused_batch_norm_grad_v3_op):
    _op.formula(_backward_as_graph)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """``x`` normalised for each channel to mean ``offset`` and deviation ``scale``.

    In training the mean and variance are the batch's own; they are returned (the variance with
    Bessel's correction) for a moving average. With ``is_training=False`` the given ``mean`` and
    ``variance`` are used and returned. Returns (y, mean, variance).

    Example:
        >>> x = tf.placeholder(tf.float32, [None, 28, 28, 8])
        >>> y, mean, variance = tf.nn.fused_batch_norm(x, tf.ones([8]), tf.zeros([8]))
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "mean and variance must both be given (as vectors with one element for each channel) "
            "when is_training is False or exponential_avg_factor is not 1."
        )
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, scale.dtype.base_dtype, name="offset")
    mean = constant([], scale.dtype.base_dtype) if mean is None else mean
    variance = constant([], scale.dtype.base_dtype) if variance is None else variance
    y, batch_mean, batch_variance, *_ = fused_batch_norm_v3_op(
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=max(epsilon, _LEAST_EPSILON),
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return y, batch_mean, batch_variance
