"""Pooling layers."""

from __future__ import annotations

from typing import Any

from runnel.layers.base import Layer
from runnel.layers.input_spec import InputSpec
from runnel.layers.windows import layout, numbers, window_length
from runnel.ops.convolution.pool_functions import avg_pool_v2, max_pool_v2


class _Pooling(Layer):
    rank: int
    kind: str

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = numbers(pool_size, self.rank, "pool_size")
        self.strides = numbers(pool_size if strides is None else strides, self.rank, "strides")
        self.padding = padding.lower()
        self.data_format = data_format.lower()
        self._layout = layout(self.data_format, self.rank)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Other than tf.nn.pool, these take strides beyond the window: every second pixel alone.
        pooled = max_pool_v2 if self.kind == "MAX" else avg_pool_v2
        return pooled(
            *(inputs, list(self.pool_size), list(self.strides), self.padding.upper()),
            data_format=self._layout,
            name="MaxPool" if self.kind == "MAX" and self.rank == 2 else None,
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        from runnel.graph.shapes import TensorShape, as_dims

        dims = list(as_dims(input_shape) or ())
        begin = 2 if self.data_format == "channels_first" else 1
        for i, (window, stride) in enumerate(zip(self.pool_size, self.strides, strict=True)):
            dims[begin + i] = window_length(dims[begin + i], window, self.padding, stride)
        return TensorShape(dims)


class MaxPooling1D(_Pooling):
    """The largest of each window of a sequence."""

    rank, kind = 1, "MAX"


class MaxPooling2D(_Pooling):
    """The largest of each window of an image."""

    rank, kind = 2, "MAX"


class MaxPooling3D(_Pooling):
    """The largest of each window of a volume."""

    rank, kind = 3, "MAX"


class AveragePooling1D(_Pooling):
    """The mean of each window of a sequence."""

    rank, kind = 1, "AVG"


class AveragePooling2D(_Pooling):
    """The mean of each window of an image."""

    rank, kind = 2, "AVG"


class AveragePooling3D(_Pooling):
    """The mean of each window of a volume."""

    rank, kind = 3, "AVG"


def max_pooling1d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`MaxPooling1D` layer that is made and applied at once."""
    return MaxPooling1D(pool_size, strides, *args, **kwargs)(inputs)


def max_pooling2d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`MaxPooling2D` layer that is made and applied at once.

    Example:
        >>> half = tf.layers.max_pooling2d(images, 2, 2)
    """
    return MaxPooling2D(pool_size, strides, *args, **kwargs)(inputs)


def max_pooling3d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`MaxPooling3D` layer that is made and applied at once."""
    return MaxPooling3D(pool_size, strides, *args, **kwargs)(inputs)


def average_pooling1d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """An :class:`AveragePooling1D` layer that is made and applied at once."""
    return AveragePooling1D(pool_size, strides, *args, **kwargs)(inputs)


def average_pooling2d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """An :class:`AveragePooling2D` layer that is made and applied at once."""
    return AveragePooling2D(pool_size, strides, *args, **kwargs)(inputs)


def average_pooling3d(inputs: Any, pool_size: Any, strides: Any, *args: Any, **kwargs: Any) -> Any:
    """An :class:`AveragePooling3D` layer that is made and applied at once."""
    return AveragePooling3D(pool_size, strides, *args, **kwargs)(inputs)
