"""Cells with few gates (Collins et al., 2016): ``UGRNNCell`` and ``IntersectionRNNCell``."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.linear import linear
from runnel.contrib.rnn.sizes import KnownSizes
from runnel.nn.rnn_cell.cell import RNNCell
from runnel.ops.activations import relu
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.splitting import split
from runnel.variables.variable_scope import get_variable_scope, variable_scope


class UGRNNCell(KnownSizes, RNNCell):
    """Between a recurrent cell and a GRU: one gate, which keeps a part of the state.

    Variables: ``kernel`` and ``bias``, in the scope ``ugrnn_cell``.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._state_size = self._output_size = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            gate, candidate = split(linear([inputs, state], 2 * self._output_size), 2, axis=1)
        keep = sigmoid(gate + self._forget_bias)
        new_state = keep * state + (1.0 - keep) * self._activation(candidate)
        return new_state, new_state


class IntersectionRNNCell(KnownSizes, RNNCell):
    """A cell with a gate in depth beside that in time, for stacks of eight layers and more.

    The input has the size of the output, unless ``num_in_proj`` has it projected first
    (``in_projection/kernel``, ``in_projection/bias``). Other variables: ``kernel`` and ``bias``,
    in the scope ``intersection_rnn_cell``.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = relu,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._state_size = self._output_size = num_units
        self._projects = bool(num_in_proj)
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._y_activation = y_activation

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        units = self._output_size
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if inputs.dims[1] != units:
                if not self._projects:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, "
                        "num_in_proj should be set to num_units at cell init."
                    )
                with variable_scope("in_projection"):
                    inputs = linear([inputs], units)
            sums = linear([inputs, state], 4 * units)
        gate_h, h, gate_y, y = split(sums, 4, axis=1)
        keep_h, keep_y = sigmoid(gate_h + self._forget_bias), sigmoid(gate_y + self._forget_bias)
        new_state = keep_h * state + (1.0 - keep_h) * tanh(h)
        return keep_y * inputs + (1.0 - keep_y) * self._y_activation(y), new_state
