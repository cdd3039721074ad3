"""``GLSTMCell``: an LSTM in groups that do not see each other."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.linear import linear
from runnel.contrib.rnn.sizes import KnownSizes
from runnel.nn.rnn_cell.cell import RNNCell
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.joining import concat
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import get_variable_scope, variable_scope


class GLSTMCell(KnownSizes, RNNCell):
    """Group LSTM (Kuchaiev and Ginsburg, 2017): fewer weights for as many units.

    Variables, in the scope ``glstm_cell``: ``group0/kernel``, ``group1/kernel``, ..., ``bias_i``,
    ``bias_j``, ``bias_f``, ``bias_o`` and, with ``num_proj``, ``projection/kernel``. The sizes of
    inputs and outputs are multiples of ``number_of_groups``.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        for what, size in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if size % number_of_groups:
                raise ValueError(f"{what} must be divisible by number_of_groups")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._output_size = num_proj or num_units
        self._state_size = LSTMStateTuple(num_units, self._output_size)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, m = state
        groups, units = self._groups, self._num_units
        if inputs.dims[1] is None or inputs.dims[1] % groups:
            raise ValueError(
                f"input size ({inputs.dims[1]}) must be divisible by number_of_groups ({groups})"
            )
        parts = []
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            pairs = zip(split(inputs, groups, axis=1), split(m, groups, axis=1), strict=True)
            for number, pair in enumerate(pairs):
                with variable_scope(f"group{number}"):
                    parts.append(split(linear(pair, 4 * units // groups, False), 4, axis=1))
            i, j, f, o = (
                bias_add(concat(gate, 1), _bias(f"bias_{name}", units, inputs.dtype))
                for name, gate in zip("ijfo", zip(*parts, strict=True), strict=True)
            )
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        new_m = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                new_m = linear([new_m], self._num_proj, False)
        return new_m, LSTMStateTuple(new_c, new_m)


def _bias(name: str, units: int, dtype: Any) -> Any:
    return get_variable(name, [units], dtype=dtype, initializer=Zeros(dtype=dtype))
