"""Convolutional layers: plain, separable and transposed, over one, two or three dimensions."""

from __future__ import annotations

from typing import Any

from runnel.graph.shapes import as_dims
from runnel.layers.base import Layer
from runnel.layers.by_name import as_activation, as_initializer
from runnel.layers.input_spec import InputSpec
from runnel.layers.windows import deconvolved, layout, numbers, window_length
from runnel.ops.array_shape import expand_dims, reshape, shape, squeeze
from runnel.ops.bias import bias_add
from runnel.ops.convolution.atrous_convolution import convolution
from runnel.ops.convolution.depthwise_convolution import separable_conv2d
from runnel.ops.convolution.transposed_convolution import conv2d_transpose, conv3d_transpose
from runnel.ops.joining import stack
from runnel.variables.initializers import Zeros


class _Convolution(Layer):
    """What all convolutional layers share; ``rank`` is the number of spatial dimensions."""

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs
        )
        self.filters = int(filters)
        self.kernel_size = numbers(kernel_size, self.rank, "kernel_size")
        self.strides = numbers(strides, self.rank, "strides")
        self.padding = padding.lower()
        self.data_format = data_format.lower()
        self._layout = layout(self.data_format, self.rank)
        self.dilation_rate = numbers(dilation_rate, self.rank, "dilation_rate")
        self.activation = as_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = as_initializer(kernel_initializer)
        self.bias_initializer = as_initializer(bias_initializer)
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _channel_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def _channels(self, input_shape: Any) -> int:
        dims = as_dims(input_shape)
        channels = dims[self._channel_axis] if dims else None
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self._channel_axis: channels})
        return channels

    def _add_kernel(self, dims: list[int]) -> Any:
        return self.add_weight(
            "kernel",
            shape=dims,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _add_bias(self) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.kernel = self._add_kernel([*self.kernel_size, channels, self.filters])
        self._add_bias()
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = convolution(
            inputs,
            self.kernel,
            padding=self.padding.upper(),
            strides=self.strides,
            dilation_rate=self.dilation_rate,
            data_format=self._layout,
            name=("conv1d", "Conv2D", "Conv3D")[self.rank - 1],
        )
        return self._finished(outputs)

    def _finished(self, outputs: Any) -> Any:
        """With the bias, and the activation."""
        if self.use_bias and self.data_format == "channels_first" and self.rank == 1:
            outputs = outputs + reshape(self.bias, [1, self.filters, 1])
        elif self.use_bias:
            form = "NCHW" if self.data_format == "channels_first" else "NHWC"
            outputs = bias_add(outputs, self.bias, data_format=form)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        from runnel.graph.shapes import TensorShape

        dims = list(as_dims(input_shape) or ())
        first = self._channel_axis == 1
        space = dims[2:] if first else dims[1:-1]
        new = [
            window_length(size, k, self.padding, s, d)
            for size, k, s, d in zip(
                space, self.kernel_size, self.strides, self.dilation_rate, strict=True
            )
        ]
        whole = [dims[0], self.filters, *new] if first else [dims[0], *new, self.filters]
        return TensorShape(whole)


class Conv1D(_Convolution):
    """A convolution over sequences [batch, length, channels]."""

    rank = 1


class Conv2D(_Convolution):
    """A convolution over images [batch, height, width, channels].

    Example:
        >>> tf.layers.Conv2D(32, 3, padding="same", activation=tf.nn.relu)(images)
    """

    rank = 2


class Conv3D(_Convolution):
    """A convolution over volumes [batch, depth, height, width, channels]."""

    rank = 3


# Separable --------------------------------------------------------------------------------------


class _Separable(_Convolution):
    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = Zeros,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = as_initializer(depthwise_initializer)
        self.pointwise_initializer = as_initializer(pointwise_initializer)
        self.depthwise_regularizer = depthwise_regularizer
        self.pointwise_regularizer = pointwise_regularizer
        self.depthwise_constraint = depthwise_constraint
        self.pointwise_constraint = pointwise_constraint

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        between = channels * self.depth_multiplier
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            shape=[*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            shape=[*([1] * self.rank), between, self.filters],
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )
        self._add_bias()
        Layer.build(self, input_shape)

    def _convolved(
        self, inputs: Any, kernels: tuple[Any, Any], strides: list[int], rate: list[int]
    ) -> Any:
        first = self.data_format == "channels_first"
        steps = [1, 1, *strides] if first else [1, *strides, 1]
        depthwise, pointwise = kernels
        return separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            strides=steps,
            padding=self.padding.upper(),
            rate=rate,
            data_format="NCHW" if first else "NHWC",
        )


class SeparableConv1D(_Separable):
    """A convolution of each channel by itself, then one that mixes them; over sequences."""

    rank = 1

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        axis = 2 if self.data_format == "channels_first" else 1
        kernels = expand_dims(self.depthwise_kernel, 0), expand_dims(self.pointwise_kernel, 0)
        stride, rate = self.strides[0], self.dilation_rate[0]
        outputs = self._convolved(expand_dims(inputs, axis), kernels, [stride] * 2, [1, rate])
        return self._finished(squeeze(outputs, [axis]))


class SeparableConv2D(_Separable):
    """A convolution of each channel by itself, then one that mixes them; over images."""

    rank = 2

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        kernels = self.depthwise_kernel, self.pointwise_kernel
        rate = list(self.dilation_rate)
        return self._finished(self._convolved(inputs, kernels, list(self.strides), rate))


# Transposed -------------------------------------------------------------------------------------


class _Transposed(_Convolution):
    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            *(filters, kernel_size, strides, padding, data_format, 1, activation, use_bias),
            *(kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer),
            *(activity_regularizer, kernel_constraint, bias_constraint, trainable, name),
            **kwargs,
        )

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.kernel = self._add_kernel([*self.kernel_size, self.filters, channels])
        self._add_bias()
        Layer.build(self, input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        first = self.data_format == "channels_first"
        given = shape(inputs)
        dims = as_dims(inputs.shape)
        assert dims is not None
        begin = 2 if first else 1
        space = [given[begin + i] for i in range(self.rank)]
        known = list(dims[begin : begin + self.rank])
        new = [
            deconvolved(size, k, self.padding, s)
            for size, k, s in zip(space, self.kernel_size, self.strides, strict=True)
        ]
        static = [
            None if size is None else deconvolved(size, k, self.padding, s)
            for size, k, s in zip(known, self.kernel_size, self.strides, strict=True)
        ]
        whole = [given[0], self.filters, *new] if first else [given[0], *new, self.filters]
        strides = [1, 1, *self.strides] if first else [1, *self.strides, 1]
        transpose = conv2d_transpose if self.rank == 2 else conv3d_transpose
        outputs = transpose(
            inputs,
            self.kernel,
            stack(whole),
            strides,
            padding=self.padding.upper(),
            data_format=self._layout,
        )
        ends = [self.filters, *static] if first else [*static, self.filters]
        outputs.set_shape([dims[0], *ends])
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        from runnel.graph.shapes import TensorShape

        dims = list(as_dims(input_shape) or ())
        first = self.data_format == "channels_first"
        space = dims[2:] if first else dims[1:-1]
        new = [
            None if size is None else deconvolved(size, k, self.padding, s)
            for size, k, s in zip(space, self.kernel_size, self.strides, strict=True)
        ]
        whole = [dims[0], self.filters, *new] if first else [dims[0], *new, self.filters]
        return TensorShape(whole)


class Conv2DTranspose(_Transposed):
    """The transpose of a convolution over images: it makes them larger."""

    rank = 2


class Conv3DTranspose(_Transposed):
    """The transpose of a convolution over volumes: it makes them larger."""

    rank = 3


# Made and applied at once -----------------------------------------------------------------------


def _applied(made: type[Layer], inputs: Any, arguments: tuple[Any, ...], options: Any) -> Any:
    name, reuse = options.get("name"), options.pop("reuse", None)
    return made(*arguments, _scope=name, _reuse=reuse, **options)(inputs)


def conv1d(inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`Conv1D` layer that is made and applied at once."""
    return _applied(Conv1D, inputs, (filters, kernel_size, *args), kwargs)


def conv2d(inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`Conv2D` layer that is made and applied at once.

    Example:
        >>> hidden = tf.layers.conv2d(images, 32, 5, padding="same", activation=tf.nn.relu)
    """
    return _applied(Conv2D, inputs, (filters, kernel_size, *args), kwargs)


def conv3d(inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any) -> Any:
    """A :class:`Conv3D` layer that is made and applied at once."""
    return _applied(Conv3D, inputs, (filters, kernel_size, *args), kwargs)


def separable_conv1d_layer(
    inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """A :class:`SeparableConv1D` layer that is made and applied at once."""
    return _applied(SeparableConv1D, inputs, (filters, kernel_size, *args), kwargs)


def separable_conv2d_layer(
    inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """A :class:`SeparableConv2D` layer that is made and applied at once."""
    return _applied(SeparableConv2D, inputs, (filters, kernel_size, *args), kwargs)


def conv2d_transpose_layer(
    inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """A :class:`Conv2DTranspose` layer that is made and applied at once."""
    return _applied(Conv2DTranspose, inputs, (filters, kernel_size, *args), kwargs)


def conv3d_transpose_layer(
    inputs: Any, filters: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Any:
    """A :class:`Conv3DTranspose` layer that is made and applied at once."""
    return _applied(Conv3DTranspose, inputs, (filters, kernel_size, *args), kwargs)
