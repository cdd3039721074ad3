"""Cells that compute what cuDNN's do."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.block_cells import LSTMBlockCell
from runnel.nn.rnn_cell.basic import GRUCell
from runnel.nn.rnn_cell.cell import require_depth
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.splitting import split
from runnel.variables.initializers import Constant


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """cuDNN's LSTM: no bias is added to the forget gates.

    Variables: ``kernel`` and ``bias``, in the scope ``cudnn_compatible_lstm_cell``.
    """

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """cuDNN's GRU, which resets the state's part of the candidate and not the state.

    Variables, in the scope ``cudnn_compatible_gru_cell``: ``gates/kernel``, ``gates/bias``, and
    ``kernel`` and ``bias`` in each of ``candidate/input_projection`` and
    ``candidate/hidden_projection``.
    """

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, input_shape: Any) -> None:
        units, depth = self._num_units, require_depth(input_shape)
        gates, of_input, of_state = (
            "gates",
            "candidate/input_projection",
            "candidate/hidden_projection",
        )
        self._gates = self._kernel(gates, depth + units, 2 * units), self._bias(gates, 2 * units, 1)
        # In TensorFlow's order, which is that of the variables' list.
        kernels = self._kernel(of_input, depth, units), self._kernel(of_state, units, units)
        biases = self._bias(of_input, units, 0), self._bias(of_state, units, 0)
        self._of_input, self._of_state = zip(kernels, biases, strict=True)
        self.built = True

    def _kernel(self, scope: str, rows: int, width: int) -> Any:
        initializer = self._kernel_initializer
        return self.add_weight(f"{scope}/kernel", [rows, width], initializer=initializer)

    def _bias(self, scope: str, width: int, value: float) -> Any:
        initializer = self._bias_initializer or Constant(value, dtype=self.dtype)
        return self.add_weight(f"{scope}/bias", [width], initializer=initializer)

    def call(self, inputs: Any, state: Any) -> Any:
        gates = sigmoid(_affine(concat([inputs, state], 1), self._gates))
        reset, update = split(gates, 2, axis=1)
        sums = _affine(inputs, self._of_input) + reset * _affine(state, self._of_state)
        new_state = (1 - update) * self._activation(sums) + update * state
        return new_state, new_state


def _affine(values: Any, weights: tuple[Any, Any]) -> Any:
    kernel, bias = weights
    return bias_add(matmul(values, kernel), bias)
