"""Initializers that scale with the size of a variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from runnel.graph.dtypes import as_dtype, float32
from runnel.graph.shapes import as_dims
from runnel.ops.sampling.random import random_uniform, truncated_normal


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = float32) -> Any:
    """Values that keep the scale of gradients about the same in all layers (Glorot and Bengio).

    Example:
        >>> tf.get_variable("w", [784, 10], initializer=tf.contrib.layers.xavier_initializer())
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = float32,
) -> Callable[..., Any]:
    """Values of the variance ``factor / n``, where ``mode`` says what ``n`` counts.

    ``FAN_IN`` counts the inputs of a unit, ``FAN_OUT`` its outputs, ``FAN_AVG`` the mean of both.
    The default is that of He et al. for layers with rectified outputs.
    """
    if not as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Any:
        kind = as_dtype(dtype)
        if not kind.is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        # A part of a variable is drawn as the whole would be.
        dims = as_dims(shape if partition_info is None else partition_info.full_shape)
        count = _fan(list(dims or ()), mode)
        if uniform:
            limit = math.sqrt(3.0 * factor / count)
            return random_uniform(shape, -limit, limit, kind, seed=seed)
        # Cutting off at two standard deviations lessens the variance; 1.3 makes up for it.
        stddev = math.sqrt(1.3 * factor / count)
        return truncated_normal(shape, 0.0, stddev, kind, seed=seed)

    return initializer


def _fan(dims: list[Any], mode: str) -> float:
    """How many inputs, or outputs, a unit of a variable has."""
    if not dims:
        return 1.0
    field = math.prod(dims[:-2])
    inputs = float(dims[-2] if len(dims) > 1 else dims[-1]) * field
    outputs = float(dims[-1]) * field
    counted = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2.0}
    return counted[mode]
