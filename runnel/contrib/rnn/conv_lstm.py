"""``ConvLSTMCell``: an LSTM whose gates are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.rnn.sizes import KnownSizes
from runnel.graph.shapes import TensorShape
from runnel.nn.rnn_cell.cell import RNNCell, require_depth
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.convolution.atrous_convolution import convolution
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.joining import concat
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros


class ConvLSTMCell(KnownSizes, RNNCell):
    """Convolutional LSTM (Shi et al., 2015), over 1, 2 or 3 dimensions.

    ``input_shape`` is that of an input without the batch, its channels last. With
    ``skip_connection`` the input is joined to the output. Variables: ``kernel`` and ``biases``, in
    the scope of the cell's name. ``initializers`` has no effect, as in TensorFlow.

    Example:
        >>> cell = tf.contrib.rnn.ConvLSTMCell(2, [32, 32, 3], 16, [3, 3])
        >>> outputs, state = tf.nn.dynamic_rnn(cell, frames, dtype=tf.float32)
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._output_channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias
        *space, channels = input_shape
        state_size = TensorShape([*space, output_channels])
        self._state_size = LSTMStateTuple(state_size, state_size)
        shown = output_channels + channels if skip_connection else output_channels
        self._output_size = TensorShape([*space, shown])

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        joined = concat([inputs, h], -1)
        depth = require_depth(joined.shape)
        width, dtype = 4 * self._output_channels, inputs.dtype
        kernel = get_variable("kernel", [*self._kernel_shape, depth, width], dtype=dtype)
        gates = convolution(joined, kernel, "SAME")
        if self._use_bias:
            gates += get_variable("biases", [width], dtype=dtype, initializer=Zeros(dtype=dtype))
        i, j, f, o = split(gates, 4, axis=-1)
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        output = tanh(new_c) * sigmoid(o)
        if self._skip_connection:
            output = concat([output, inputs], -1)
        return output, LSTMStateTuple(new_c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """Convolutional LSTM over one dimension; arguments as there."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """Convolutional LSTM over two dimensions; arguments as there."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """Convolutional LSTM over three dimensions; arguments as there."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
