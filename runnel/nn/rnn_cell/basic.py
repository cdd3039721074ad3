"""``BasicRNNCell`` and ``GRUCell``: cells whose state is their output."""

from __future__ import annotations

from typing import Any

from runnel.layers.by_name import as_initializer
from runnel.layers.input_spec import InputSpec
from runnel.nn.rnn_cell.cell import (
    LayerRNNCell,
    cell_activation,
    require_depth,
    require_floats,
)
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.splitting import split
from runnel.variables.initializers import Constant, Zeros


class BasicRNNCell(LayerRNNCell):
    """The most basic cell: ``output = state = activation(W [input, state] + b)``.

    Variables: ``kernel`` and ``bias``, in the scope ``basic_rnn_cell``.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        require_floats(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = cell_activation(activation)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        require_floats(self.dtype)
        rows = require_depth(input_shape) + self._num_units
        self._kernel = self.add_weight("kernel", shape=[rows, self._num_units])
        self._bias = self.add_weight(
            "bias", shape=[self._num_units], initializer=Zeros(dtype=self.dtype)
        )
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        require_floats(inputs, state)
        sums = bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias)
        output = self._activation(sums)
        return output, output


class GRUCell(LayerRNNCell):
    """Gated recurrent unit (Cho et al., 2014).

    ``state' = u * state + (1 - u) * activation(W_c [input, r * state] + b_c)`` with the gates
    ``r, u = sigmoid(W_g [input, state] + b_g)``. Variables, in the scope ``gru_cell``:
    ``gates/kernel``, ``gates/bias`` (1 at first: remember), ``candidate/kernel``,
    ``candidate/bias``.
    """

    _variable_names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")

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
        require_floats(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = cell_activation(activation)
        self._kernel_initializer = as_initializer(kernel_initializer)
        self._bias_initializer = as_initializer(bias_initializer)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        require_floats(self.dtype)
        units = self._num_units
        rows = require_depth(input_shape) + units
        gate_kernel, gate_bias, candidate_kernel, candidate_bias = self._variable_names
        self._gate_kernel = self.add_weight(
            gate_kernel, shape=[rows, 2 * units], initializer=self._kernel_initializer
        )
        self._gate_bias = self.add_weight(
            gate_bias,
            shape=[2 * units],
            initializer=self._bias_initializer or Constant(1.0, dtype=self.dtype),
        )
        self._candidate_kernel = self.add_weight(
            candidate_kernel, shape=[rows, units], initializer=self._kernel_initializer
        )
        self._candidate_bias = self.add_weight(
            candidate_bias,
            shape=[units],
            initializer=self._bias_initializer or Zeros(dtype=self.dtype),
        )
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        require_floats(inputs, state)
        sums = matmul(concat([inputs, state], 1), self._gate_kernel)
        gates = sigmoid(bias_add(sums, self._gate_bias))
        reset, update = split(gates, 2, axis=1)
        remembered = reset * state
        sums = matmul(concat([inputs, remembered], 1), self._candidate_kernel)
        candidate = self._activation(bias_add(sums, self._candidate_bias))
        new_state = update * state + (1 - update) * candidate
        return new_state, new_state
