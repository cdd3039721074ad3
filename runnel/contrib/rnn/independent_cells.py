"""Cells whose units do not see each other's state: little to compute one step after another."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.sizes import KnownSizes
from runnel.layers.input_spec import InputSpec
from runnel.nn.rnn_cell.cell import LayerRNNCell, cell_activation, require_depth
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.splitting import split
from runnel.variables.initializers import Constant, RandomUniform, Zeros


class _UnitsCell(KnownSizes, LayerRNNCell):
    """A cell of so many units, which see vectors."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = cell_activation(activation)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._state_size: Any = num_units
        self._output_size = num_units

    def _weights(
        self, depth: int, count: int, scope: str = "", kernel: str = "kernel_w", bias: float = 0.0
    ) -> tuple[Any, Any, Any]:
        """Variables of ``count`` gates: of the input, of each unit's own state, and biases."""
        width = count * self._num_units
        own = RandomUniform(-1, 1, dtype=self.dtype)
        start = self._bias_initializer or Constant(bias, dtype=self.dtype)
        return (
            self.add_weight(scope + kernel, [depth, width], initializer=self._kernel_initializer),
            self.add_weight(f"{scope}kernel_u", [1, width], initializer=own),
            self.add_weight(f"{scope}bias", [width], initializer=start),
        )

    def _gates(self, inputs: Any, state: Any, weights: tuple[Any, Any, Any], count: int) -> Any:
        of_inputs, of_state, bias = weights
        repeated = concat([state] * count, 1) if count > 1 else state
        return bias_add(matmul(inputs, of_inputs) + repeated * of_state, bias)


class IndRNNCell(_UnitsCell):
    """Independently recurrent cell (Li et al., 2018): ``activation(W input + u * state + b)``.

    Variables, in the scope ``ind_rnn_cell``: ``kernel_w``, ``kernel_u``, ``bias``.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)

    def build(self, input_shape: Any) -> None:
        self._all = self._weights(require_depth(input_shape), 1)
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        output = self._activation(self._gates(inputs, state, self._all, 1))
        return output, output


class IndyGRUCell(_UnitsCell):
    """A GRU of independent units (Gonnet and Deselaers, 2019).

    Variables, in the scope ``indy_gru_cell``: ``gates/kernel_w``, ``gates/kernel_u``,
    ``gates/bias``, ``candidate/kernel``, ``candidate/kernel_u``, ``candidate/bias``.
    """

    def build(self, input_shape: Any) -> None:
        depth = require_depth(input_shape)
        self._gate_weights = self._weights(depth, 2, "gates/", bias=1.0)
        self._candidate_weights = self._weights(depth, 1, "candidate/", "kernel")
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        gates = sigmoid(self._gates(inputs, state, self._gate_weights, 2))
        reset, update = split(gates, 2, axis=1)
        sums = self._gates(inputs, reset * state, self._candidate_weights, 1)
        new_state = update * state + (1 - update) * self._activation(sums)
        return new_state, new_state


class IndyLSTMCell(_UnitsCell):
    """An LSTM of independent units (Gonnet and Deselaers, 2019).

    Variables, in the scope ``indy_lstm_cell``: ``kernel_w``, ``kernel_u``, ``bias``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype
        )
        self._forget_bias = forget_bias
        self._state_size = LSTMStateTuple(num_units, num_units)

    def build(self, input_shape: Any) -> None:
        self._all = self._weights(require_depth(input_shape), 4)
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        i, j, f, o = split(self._gates(inputs, h, self._all, 4), 4, axis=1)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class SRUCell(_UnitsCell):
    """Simple recurrent unit (Lei et al., 2017): the gates see only the input.

    Variables, in the scope ``sru_cell``: ``kernel`` and ``bias``.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name=name, **kwargs)

    def build(self, input_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_weight("kernel", [require_depth(input_shape), 4 * units])
        self._bias = self.add_weight("bias", [2 * units], initializer=Zeros())
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        units = self._num_units
        new, gates, carried = split(matmul(inputs, self._kernel), [units, 2 * units, units], axis=1)
        forget, reset = split(sigmoid(bias_add(gates, self._bias)), 2, axis=1)
        c = forget * state + (1.0 - forget) * new
        return reset * self._activation(c) + (1.0 - reset) * carried, c
