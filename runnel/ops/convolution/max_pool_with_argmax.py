"""Max-pooling that also says where each maximum was."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, merge_dims
from runnel.ops.array_shape import at_run_time
from runnel.ops.convolution.pool_lowering import first_maximum, max_pool, pooling_window
from runnel.ops.convolution.window_arguments import named_padding, per_axis
from runnel.ops.convolution.window_dims import merge_gradient, pooling_dims
from runnel.ops.fill import zeros_like
from runnel.ops.reduce_functions import one_of

_WINDOW = ["ksize: list(int) >= 4", "strides: list(int) >= 4"]
_PADDING = "padding: {'SAME', 'VALID'}"
_BATCH = "include_batch_in_index: bool = false"
_INDICES = "{int32, int64}"

max_pool_with_argmax_op = register_op(
    "MaxPoolWithArgmax",
    inputs="input: T",
    outputs="output: T, argmax: Targmax",
    attrs=[
        *_WINDOW,
        f"Targmax: {_INDICES} = DT_INT64",
        _PADDING,
        _BATCH,
        "T: realnumbertype",
    ],
)
_BACKWARD = {
    "inputs": "input: T, grad: T, argmax: Targmax",
    "outputs": "output: T",
    "attrs": [*_WINDOW, _PADDING, _BATCH, f"Targmax: {_INDICES}", "T: realnumbertype"],
}
grad_op = register_op("MaxPoolGradWithArgmax", **_BACKWARD)
grad_grad_op = register_op("MaxPoolGradGradWithArgmax", **_BACKWARD)


def _pooled(x: Dims, ksize: Any, strides: Any, padding: str) -> Dims:
    return pooling_dims(x, ksize=ksize, strides=strides, padding=padding, data_format="NHWC")


@max_pool_with_argmax_op.shape
def _(x, *, ksize, strides, padding):
    dims = _pooled(x.dims, ksize, strides, padding)
    return [dims, dims]


@grad_op.shape
def _(x, grad, argmax, *, ksize, strides, padding):
    merge_gradient(merge_dims(grad.dims, argmax.dims), _pooled(x.dims, ksize, strides, padding))
    return x.dims


@grad_grad_op.shape
def _(x, grad, argmax, *, ksize, strides, padding):
    dims = _pooled(merge_gradient(grad.dims, x.dims), ksize, strides, padding)
    return merge_dims(dims, argmax.dims)


@max_pool_with_argmax_op.kernel
def _(xp, x, *, ksize, strides, padding, include_batch_in_index, Targmax):  # noqa: N803
    attributes = {"ksize": ksize, "strides": strides, "padding": padding, "data_format": "NHWC"}
    window, _ = at_run_time(partial(pooling_window, x.shape, **attributes))
    tap = first_maximum(xp, x, window).astype(np.int64)
    _, height, width, channels = x.shape
    rows, columns = (
        step * np.arange(count) - before
        for step, count, (before, _) in zip(window.strides, window.output_sizes, window.padding)
    )
    row = rows[:, None, None] + tap // window.window[1]
    column = columns[:, None] + tap % window.window[1]
    if include_batch_in_index:
        row = row + height * np.arange(x.shape[0])[:, None, None, None]
    argmax = (row * width + column) * channels + np.arange(channels)
    return max_pool(xp, x, **attributes), argmax.astype(Targmax.np_dtype)


def _flat(xp: Any, argmax: Any, shape: tuple[int, ...], with_batch: bool, check: Any) -> Any:
    """Indices into the whole flattened input."""
    each = int(np.prod(shape[1:]))
    limit = each * shape[0] if with_batch else each
    check(
        xp.all((argmax >= 0) & (argmax < limit)),
        lambda: f"argmax must be within [0, {limit}), the elements of an input of {list(shape)}",
    )
    indices = argmax.astype(np.int64)
    if with_batch:
        return indices
    return indices + (each * np.arange(shape[0])).reshape(-1, 1, 1, 1)


@grad_op.kernel
def _(xp, x, grad, argmax, *, include_batch_in_index, check):
    indices = _flat(xp, argmax, x.shape, include_batch_in_index, check).reshape(-1)
    if xp is np:
        total = np.zeros(x.size, grad.dtype)
        np.add.at(total, indices, grad.reshape(-1))
    else:
        total = xp.zeros(x.size, grad.dtype).at[indices].add(grad.reshape(-1), mode="drop")
    return total.reshape(x.shape)


@grad_grad_op.kernel
def _(xp, x, grad, argmax, *, include_batch_in_index, check):
    indices = _flat(xp, argmax, x.shape, include_batch_in_index, check)
    return xp.take(grad.reshape(-1), indices, mode="clip")


def _settings(op: Any) -> dict[str, Any]:
    shared = ("ksize", "strides", "padding", "include_batch_in_index")
    return {name: op.attrs[name] for name in shared}


@max_pool_with_argmax_op.gradient
def _(op, grad, _):
    return grad_op(op.inputs[0], grad, op.outputs[1], **_settings(op))


@grad_op.gradient
def _(op, grad):
    x, _, argmax = op.inputs
    return [zeros_like(x), grad_grad_op(x, grad, argmax, **_settings(op)), None]


@grad_grad_op.gradient
def _(op, grad):
    x, _, argmax = op.inputs
    return [zeros_like(x), grad_op(x, grad, argmax, **_settings(op)), None]


class MaxPoolWithArgmax(NamedTuple):
    """The maxima, and for each its place in the flattened input."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,  # noqa: N803
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmax:
    """``max_pool``, and the place of each maximum in the flattened image (or batch of images).

    Example:
        >>> y, at = tf.nn.max_pool_with_argmax([[[[1.0], [3.0]], [[2.0], [0.0]]]], 2, 2, "SAME")
        >>> tf.Session().run(at).item()
        1
    """
    if data_format != "NHWC":
        raise ValueError(f"data_format must be NHWC, but got {data_format!r}")
    indices = one_of("output_dtype", output_dtype, "Targmax", Targmax) or dtypes.int64
    return MaxPoolWithArgmax(
        *max_pool_with_argmax_op(
            input,
            ksize=per_axis("ksize", ksize, data_format),
            strides=per_axis("strides", strides, data_format),
            padding=named_padding(padding, "max_pool_with_argmax"),
            Targmax=indices,
            include_batch_in_index=include_batch_in_index,
            name=name,
        )
    )
