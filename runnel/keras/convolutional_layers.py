"""Layers of Keras with windows: convolutions, pooling; and those that resize, pad and crop."""

from __future__ import annotations

from typing import Any

from runnel import layers as of_graphs
from runnel.graph.shapes import as_dims
from runnel.keras import activations
from runnel.keras.layer import Layer
from runnel.layers.windows import numbers
from runnel.ops.array_shape import reshape, shape
from runnel.ops.bias import bias_add
from runnel.ops.convolution.depthwise_convolution import depthwise_conv2d
from runnel.ops.image.resize import resize_bilinear, resize_nearest_neighbor
from runnel.ops.joining import stack
from runnel.ops.padding import pad, tile
from runnel.ops.reduce_functions import reduce_max, reduce_mean


class Conv1D(of_graphs.Conv1D, Layer):
    """A convolution of sequences."""


class Conv2D(of_graphs.Conv2D, Layer):
    """A convolution of images.

    Example:
        >>> tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu")(images)
    """


class Conv3D(of_graphs.Conv3D, Layer):
    """A convolution of volumes."""


class Conv2DTranspose(of_graphs.Conv2DTranspose, Layer):
    """The transpose of a convolution of images."""


class Conv3DTranspose(of_graphs.Conv3DTranspose, Layer):
    """The transpose of a convolution of volumes."""


class SeparableConv1D(of_graphs.SeparableConv1D, Layer):
    """A convolution of each channel, then of all at each place of a sequence."""


class SeparableConv2D(of_graphs.SeparableConv2D, Layer):
    """A convolution of each channel, then of all at each pixel."""


class DepthwiseConv2D(Layer):
    """A convolution of each channel by itself, with ``depth_multiplier`` outputs for each."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.kernel_size = numbers(kernel_size, 2, "kernel_size")
        self.strides = numbers(strides, 2, "strides")
        self.padding, self.depth_multiplier = padding.lower(), depth_multiplier
        self._channels_first = data_format == "channels_first"
        self.activation, self.use_bias = activations.get(activation), use_bias
        self._kernel = depthwise_initializer, depthwise_regularizer, depthwise_constraint
        self._bias = bias_initializer, bias_regularizer, bias_constraint

    def build(self, input_shape: Any) -> None:
        channels = (as_dims(input_shape) or ())[1 if self._channels_first else -1]
        if channels is None:
            raise ValueError(f"The channels of the inputs to layer {self.name!r} must be known")
        initializer, regularizer, constraint = self._kernel
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
        )
        self.bias = None
        if self.use_bias:
            initializer, regularizer, constraint = self._bias
            self.bias = self.add_weight(
                "bias",
                [channels * self.depth_multiplier],
                initializer=initializer,
                regularizer=regularizer,
                constraint=constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        window = [1, 1, *self.strides] if self._channels_first else [1, *self.strides, 1]
        form = "NCHW" if self._channels_first else "NHWC"
        outputs = depthwise_conv2d(
            inputs, self.depthwise_kernel, window, self.padding.upper(), data_format=form
        )
        if self.use_bias:
            outputs = bias_add(outputs, self.bias, data_format=form)
        return self.activation(outputs)


# Pooling --------------------------------------------------------------------------------------


def _pooling(kind: str, rank: int) -> type[Layer]:
    base: Any = getattr(of_graphs, f"{kind}Pooling{rank}D")

    def __init__(
        self: Any,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        form = data_format or "channels_last"
        base.__init__(self, pool_size, strides, padding, form, **kwargs)

    members = {"__init__": __init__, "__module__": __name__, "__doc__": base.__doc__}
    return type(base.__name__, (base, Layer), members)


MaxPooling1D, MaxPooling2D, MaxPooling3D = (_pooling("Max", rank) for rank in (1, 2, 3))
AveragePooling1D, AveragePooling2D, AveragePooling3D = (
    _pooling("Average", rank) for rank in (1, 2, 3)
)


class _Global(Layer):
    """One value for each channel; ``rank`` is the number of spatial dimensions."""

    rank = 2
    reduced: Any = staticmethod(reduce_mean)

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._first = 2 if data_format == "channels_first" else 1

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return self.reduced(inputs, axis=list(range(self._first, self._first + self.rank)))


class GlobalAveragePooling1D(_Global):
    """The mean over a sequence."""

    rank = 1


class GlobalAveragePooling2D(_Global):
    """The mean over an image."""


class GlobalAveragePooling3D(_Global):
    """The mean over a volume."""

    rank = 3


class GlobalMaxPooling1D(GlobalAveragePooling1D):
    """The largest of a sequence."""

    reduced = staticmethod(reduce_max)


class GlobalMaxPooling2D(GlobalAveragePooling2D):
    """The largest of an image."""

    reduced = staticmethod(reduce_max)


class GlobalMaxPooling3D(GlobalAveragePooling3D):
    """The largest of a volume."""

    reduced = staticmethod(reduce_max)


# Other sizes ----------------------------------------------------------------------------------


class UpSampling1D(Layer):
    """Each step ``size`` times."""

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = int(size)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return repeated(inputs, self.size, 1)


def repeated(x: Any, times: int, axis: int) -> Any:
    """Every element along ``axis`` ``times`` times, one copy after the other."""
    dims = list(x.dims)
    axis %= len(dims)
    given = shape(x)
    whole = [given[i] if d is None else d for i, d in enumerate(dims)]
    spread = reshape(x, [*whole[: axis + 1], 1, *whole[axis + 1 :]])
    copies = tile(spread, [times if i == axis + 1 else 1 for i in range(len(dims) + 1)])
    outputs = reshape(copies, [*whole[:axis], whole[axis] * times, *whole[axis + 1 :]])
    known = dims[axis]
    outputs.set_shape([*dims[:axis], None if known is None else known * times, *dims[axis + 1 :]])
    return outputs


class UpSampling2D(Layer):
    """Each pixel ``size`` times in both directions; ``interpolation`` may be "bilinear"."""

    def __init__(
        self,
        size: Any = (2, 2),
        data_format: str | None = None,
        interpolation: str = "nearest",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError(f"interpolation must be nearest or bilinear, not {interpolation!r}")
        self.size = numbers(size, 2, "size")
        self._begin = 2 if data_format == "channels_first" else 1
        self.interpolation = interpolation

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self._begin == 2:
            if self.interpolation != "nearest":
                raise ValueError("UpSampling2D interpolates channels_last images only")
            return repeated(repeated(inputs, self.size[0], 2), self.size[1], 3)
        height, width = inputs.dims[1:3]
        given = shape(inputs)
        wanted = stack(
            [
                (given[1] if height is None else height) * self.size[0],
                (given[2] if width is None else width) * self.size[1],
            ]
        )
        if self.interpolation == "nearest":
            outputs = resize_nearest_neighbor(inputs, wanted)
        else:
            outputs = resize_bilinear(inputs, wanted, half_pixel_centers=True)
        known = [
            None if d is None else d * n for d, n in zip((height, width), self.size, strict=True)
        ]
        outputs.set_shape([inputs.dims[0], *known, inputs.dims[3]])
        return outputs


class UpSampling3D(Layer):
    """Each voxel ``size`` times in all directions."""

    def __init__(
        self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.size = numbers(size, 3, "size")
        self._begin = 2 if data_format == "channels_first" else 1

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        for i, times in enumerate(self.size):
            inputs = repeated(inputs, times, self._begin + i)
        return inputs


def _pairs(given: Any, rank: int) -> list[tuple[int, int]]:
    """``padding`` or ``cropping`` of Keras: a number, one for each dimension, or pairs."""
    if isinstance(given, int):
        return [(given, given)] * rank
    listed = [given] if rank == 1 and len(given) == 2 and isinstance(given[0], int) else given
    if len(listed) != rank:
        raise ValueError(f"Expected {rank} numbers or pairs, but got {given!r}")
    return [(n, n) if isinstance(n, int) else (int(n[0]), int(n[1])) for n in listed]


class _Border(Layer):
    rank = 2

    def __init__(self, amounts: Any, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pairs = _pairs(amounts, self.rank)
        self._begin = 2 if data_format == "channels_first" else 1


class ZeroPadding2D(_Border):
    """Zeros around each image."""

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kw: Any) -> None:
        super().__init__(padding, data_format, **kw)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        rest = len(inputs.dims) - self._begin - self.rank
        return pad(inputs, [(0, 0)] * self._begin + self._pairs + [(0, 0)] * rest)


class ZeroPadding1D(ZeroPadding2D):
    """Zeros before and after each sequence."""

    rank = 1

    def __init__(self, padding: Any = 1, **kwargs: Any) -> None:
        super().__init__(padding, **kwargs)


class ZeroPadding3D(ZeroPadding2D):
    """Zeros around each volume."""

    rank = 3

    def __init__(self, padding: Any = (1, 1, 1), data_format: str | None = None, **kw: Any) -> None:
        super().__init__(padding, data_format, **kw)


class Cropping2D(_Border):
    """Images without their borders."""

    def __init__(
        self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cropping, data_format, **kwargs)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        inner = [slice(before, -after or None) for before, after in self._pairs]
        return inputs[(*[slice(None)] * self._begin, *inner)]


class Cropping1D(Cropping2D):
    """Sequences without their ends."""

    rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, **kwargs)


class Cropping3D(Cropping2D):
    """Volumes without their borders."""

    rank = 3

    def __init__(self, cropping: Any = 1, data_format: str | None = None, **kw: Any) -> None:
        super().__init__(cropping, data_format, **kw)
