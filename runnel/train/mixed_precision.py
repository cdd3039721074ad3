"""Turning mixed precision on for a graph: one line around the optimizer."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.graph import get_default_graph
from runnel.train.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from runnel.train.optimizer import Optimizer

_AUTOMATIC = "automatic"


def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: Any = _AUTOMATIC, dtype: Any = dtypes.float16
) -> Optimizer:
    """Run the default graph's products in ``dtype``; the returned optimizer scales the loss.

    Matrix products, convolutions and what lies between them are computed in float16 (or
    ``dtype=tf.bfloat16``, an argument that TensorFlow does not have); variables, their updates,
    sums and losses stay in float32. Sessions may switch it on and off for themselves:
    ``ConfigProto.graph_options.rewrite_options.auto_mixed_precision`` (float16) and
    ``auto_mixed_precision_onednn_bfloat16``.

    ``loss_scale`` is a number, "dynamic", a ``LossScale``, or None for no scaling. It defaults to
    "dynamic" for float16 and to None for bfloat16, whose range is that of float32.

    Example:
        >>> optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
        ...     tf.train.MomentumOptimizer(0.1, 0.9), dtype=tf.bfloat16)
        >>> train = optimizer.minimize(loss)
    """
    if not isinstance(opt, Optimizer):
        raise ValueError(f"opt must be a tf.train.Optimizer, but is {opt!r}")
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError("opt scales its loss already; give the optimizer that it wraps")
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.float16, dtypes.bfloat16):
        raise ValueError(f"dtype must be tf.float16 or tf.bfloat16, but is {dtype.name}")
    get_default_graph().set_mixed_precision(dtype)
    if loss_scale == _AUTOMATIC:
        loss_scale = "dynamic" if dtype is dtypes.float16 else None
    return opt if loss_scale is None else MixedPrecisionLossScaleOptimizer(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """Run the default graph's products in the precision in which they are described again."""
    get_default_graph().set_mixed_precision(None)
