"""Pooling of ``tf.contrib.layers``."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope, layer_of
from runnel.contrib.layers.scoping import as_input, channels, collect_named_outputs
from runnel.graph.graph import name_scope
from runnel.layers.pooling import (
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling2D,
    MaxPooling3D,
)
from runnel.ops.convolution.pool_functions import pool as pool_windows


def _pooled(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str | None = None,
    outputs_collections: Any = None,
    scope: Any = None,
    *,
    made: Any,
    default_name: str,
) -> Any:
    inputs = as_input(inputs)
    with name_scope(scope, default_name, [inputs]) as opened:
        layer = made(kernel_size, stride, padding, channels(data_format))
        outputs = layer.call(inputs)
        return collect_named_outputs(outputs_collections, opened, outputs)


max_pool2d = layer_of(
    _pooled,
    "max_pool2d",
    "The largest of each window of an image.",
    made=MaxPooling2D,
    default_name="MaxPool2D",
)
avg_pool2d = layer_of(
    _pooled,
    "avg_pool2d",
    "The mean of each window of an image.",
    made=AveragePooling2D,
    default_name="AvgPool2D",
)
max_pool3d = layer_of(
    _pooled,
    "max_pool3d",
    "The largest of each window of a volume.",
    made=MaxPooling3D,
    default_name="MaxPool3D",
)
avg_pool3d = layer_of(
    _pooled,
    "avg_pool3d",
    "The mean of each window of a volume.",
    made=AveragePooling3D,
    default_name="AvgPool3D",
)


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """``AVG`` or ``MAX`` over windows of as many dimensions as the inputs have."""
    inputs = as_input(inputs)
    rank = len(inputs.shape) - 2

    def each(value: Any) -> list[int]:
        return [value] * rank if isinstance(value, int) else list(value)

    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as opened:
        outputs = pool_windows(
            inputs,
            each(kernel_size),
            pooling_type,
            padding,
            dilation_rate=each(dilation_rate),
            strides=each(stride),
            data_format=data_format,
        )
        return collect_named_outputs(outputs_collections, opened, outputs)
