"""The functions that pool: the largest, or the mean, of what a window sees as it slides."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.convolution.dilated_windows import with_space_to_batch
from runnel.ops.convolution.pooling import avg_pool3d_op, avg_pool_op, max_pool3d_op, max_pool_op
from runnel.ops.convolution.sliding_window import along_space, spatial_axes
from runnel.ops.convolution.window_arguments import (
    layout,
    named_padding,
    padding_attributes,
    per_axis,
)
from runnel.ops.reduce_functions import one_of


def _window(ksize: Any, strides: Any, data_format: str) -> dict[str, Any]:
    return {
        "ksize": per_axis("ksize", ksize, data_format),
        "strides": per_axis("strides", strides, data_format),
        "data_format": data_format,
    }


def _max_pool_2d(
    x: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: str
) -> Tensor:
    window = _window(ksize, strides, layout(data_format, 2))
    return max_pool_op(x, **window, **padding_attributes(padding), name=name)


def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,  # noqa: A002
) -> Tensor:
    """The largest element that a window of ``ksize`` sees in each channel of images.

    ``ksize`` and ``strides`` are a number, or one for each spatial dimension or for every
    dimension; ``padding`` is "SAME", "VALID" or a list with a pair (before, after) for each
    dimension. What is padded is never the largest.

    Example:
        >>> tf.nn.max_pool(tf.zeros([8, 28, 28, 3]), 2, 2, "SAME").shape.as_list()
        [8, 14, 14, 3]
    """
    value = one_of("input", input, "value", value)
    with name_scope(name, "MaxPool", [value]) as scope:
        return _max_pool_2d(value, ksize, strides, padding, data_format, scope)


def max_pool2d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """``max_pool`` by its later name."""
    with name_scope(name, "MaxPool2d", [input]) as scope:
        return _max_pool_2d(input, ksize, strides, padding, data_format, scope)


def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,  # noqa: A002
) -> Tensor:
    """The mean of what a window of ``ksize`` sees in each channel of images.

    ``padding`` is "SAME" or "VALID"; what is padded does not count.

    Example:
        >>> tf.nn.avg_pool(tf.zeros([8, 28, 28, 3]), 2, 2, "SAME").shape.as_list()
        [8, 14, 14, 3]
    """
    value = one_of("input", input, "value", value)
    with name_scope(name, "AvgPool", [value]) as scope:
        window = _window(ksize, strides, layout(data_format, 2))
        return avg_pool_op(value, **window, padding=named_padding(padding, "avg_pool"), name=scope)


avg_pool2d = avg_pool


def _pool_sequence(
    op_def: OpDef, x: Any, ksize: Any, strides: Any, data_format: str | None, **rest: Any
) -> Tensor:
    """Pooling over sequences: over images of height 1."""
    sequence = layout(data_format, 1)
    axis = 1 if sequence == "NWC" else 2
    window = _window(ksize, strides, sequence)
    result = op_def(
        expand_dims(x, axis),
        ksize=[1, *window["ksize"]],
        strides=[1, *window["strides"]],
        data_format="NHWC" if sequence == "NWC" else "NCHW",
        **rest,
    )
    return squeeze(result, [axis])


def max_pool1d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The largest element that a window sees in each channel of sequences.

    Example:
        >>> tf.nn.max_pool1d(tf.zeros([8, 100, 3]), 2, 2, "SAME").shape.as_list()
        [8, 50, 3]
    """
    with name_scope(name, "MaxPool1d", [input]) as scope:
        amounts = padding_attributes(padding, 3)
        if amounts["explicit_paddings"]:
            amounts["explicit_paddings"] = [0, 0, *amounts["explicit_paddings"]]
        return _pool_sequence(
            max_pool_op, input, ksize, strides, data_format, **amounts, name=scope
        )


def avg_pool1d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The mean of what a window sees in each channel of sequences.

    Example:
        >>> tf.nn.avg_pool1d(tf.zeros([8, 100, 3]), 2, 2, "SAME").shape.as_list()
        [8, 50, 3]
    """
    with name_scope(name, "AvgPool1D", [input]) as scope:
        padding = named_padding(padding, "avg_pool1d")
        return _pool_sequence(
            avg_pool_op, input, ksize, strides, data_format, padding=padding, name=scope
        )


def max_pool3d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element that a window sees in each channel of volumes.

    Example:
        >>> tf.nn.max_pool3d(tf.zeros([2, 8, 8, 8, 3]), 2, 2, "SAME").shape.as_list()
        [2, 4, 4, 4, 3]
    """
    with name_scope(name, "MaxPool3D", [input]) as scope:
        window = _window(ksize, strides, layout(data_format, 3))
        padding = named_padding(padding, "max_pool3d")
        return max_pool3d_op(input, **window, padding=padding, name=scope)


def avg_pool3d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of what a window sees in each channel of volumes.

    Example:
        >>> tf.nn.avg_pool3d(tf.zeros([2, 8, 8, 8, 3]), 2, 2, "SAME").shape.as_list()
        [2, 4, 4, 4, 3]
    """
    with name_scope(name, "AvgPool3D", [input]) as scope:
        window = _window(ksize, strides, layout(data_format, 3))
        padding = named_padding(padding, "avg_pool3d")
        return avg_pool3d_op(input, **window, padding=padding, name=scope)


# Over any number of dimensions ------------------------------------------------------------------

_MAX: dict[int, Any] = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_AVG: dict[int, Any] = {1: avg_pool1d, 2: avg_pool, 3: avg_pool3d}


def _spatial(x: Tensor, data_format: str | None) -> int:
    rank = len(x.dims) if x.dims is not None else len(data_format or "")
    if not 3 <= rank <= 5:
        raise ValueError(
            "pooling needs an input of 3, 4 or 5 dimensions, or a data_format that says how many; "
            f"the input's shape is {format_dims(x.dims)}"
        )
    return rank - 2


def max_pool_v2(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Max-pooling over sequences, images or volumes, by the rank of ``input``.

    Example:
        >>> tf.nn.max_pool_v2(tf.zeros([8, 100, 3]), 2, 2, "SAME").shape.as_list()
        [8, 50, 3]
    """
    x = convert_to_tensor(input, name="input")
    function = _MAX[_spatial(x, data_format)]
    return function(x, ksize, strides, padding, data_format=data_format, name=name)


def avg_pool_v2(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Average-pooling over sequences, images or volumes, by the rank of ``input``.

    Example:
        >>> tf.nn.avg_pool_v2(tf.zeros([8, 100, 3]), 2, 2, "SAME").shape.as_list()
        [8, 50, 3]
    """
    x = convert_to_tensor(input, name="input")
    function = _AVG[_spatial(x, data_format)]
    return function(x, ksize, strides, padding, data_format=data_format, name=name)


def pool(
    input: Any,  # noqa: A002
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling of a type, "MAX" or "AVG", with a window of 1, 2 or 3 dimensions.

    ``strides`` and ``dilation_rate`` have a number for each spatial dimension; only one of them
    may be other than 1, and a dilated window needs padding "VALID".

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> y = tf.nn.pool(images, [2, 2], "MAX", "VALID", dilation_rate=[2, 2])
        >>> y.shape.as_list()
        [8, 26, 26, 3]
    """
    rate = one_of("dilations", dilations, "dilation_rate", dilation_rate)
    functions = {"MAX": _MAX, "AVG": _AVG}.get(pooling_type)
    if functions is None:
        raise ValueError(f"pooling_type must be 'MAX' or 'AVG', but got {pooling_type!r}")
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        spatial = len(window_shape)
        if spatial not in functions:
            raise ValueError(f"window_shape must have 1, 2 or 3 sizes, but got {window_shape!r}")
        data_format = layout(data_format, spatial)
        spacing = along_space(
            "dilation_rate", per_axis("dilation_rate", rate, data_format), data_format
        )
        steps = along_space("strides", per_axis("strides", strides, data_format), data_format)
        if max(spacing) > 1 and max(steps) > 1:
            raise ValueError(
                f"strides and dilation_rate cannot both be more than 1, but got {list(steps)} and "
                f"{list(spacing)}"
            )
        if max(spacing) > 1 and padding == "SAME":
            raise ValueError(
                f"padding 'SAME' needs a dilation_rate of 1, but got {list(spacing)}: use 'VALID'"
            )
        if any(step > size for step, size in zip(steps, window_shape)):
            raise ValueError(
                f"strides {list(steps)} must not exceed the window {list(window_shape)}"
            )

        def pool_part(part: Tensor, _: int, part_padding: Any) -> Tensor:
            return functions[spatial](
                part, list(window_shape), list(steps), part_padding, data_format, name=scope
            )

        return with_space_to_batch(
            x,
            spacing,
            padding,
            pool_part,
            filter_shape=window_shape,
            spatial_dims=spatial_axes(data_format),
        )
