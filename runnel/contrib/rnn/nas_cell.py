"""``NASCell``: a cell that a search over architectures has found."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.sizes import KnownSizes
from runnel.nn.rnn_cell.cell import LayerRNNCell, require_depth
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.activations import relu
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.matmul import matmul
from runnel.ops.splitting import split
from runnel.variables.initializers import Zeros


class NASCell(KnownSizes, LayerRNNCell):
    """The recurrent cell of Zoph and Le (2016), with a projection where asked for.

    Variables, in the scope ``nas_cell``: ``recurrent_kernel``, ``kernel``, and ``bias`` and
    ``projection_weights`` where asked for.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias
        self._output_size = num_units if num_proj is None else num_proj
        self._state_size = LSTMStateTuple(num_units, self._output_size)

    def build(self, input_shape: Any) -> None:
        width = 8 * self._num_units
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self._output_size, width])
        self.kernel = self.add_weight("kernel", [require_depth(input_shape), width])
        if self._use_bias:
            self.bias = self.add_weight("bias", [width], initializer=Zeros())
        if self._num_proj is not None:
            shape = [self._num_units, self._num_proj]
            self.projection_weights = self.add_weight("projection_weights", shape)
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, m = state
        recurrent = matmul(m, self.recurrent_kernel)
        if self._use_bias:
            recurrent = bias_add(recurrent, self.bias)
        of_m = split(recurrent, 8, axis=1)
        of_x = split(matmul(inputs, self.kernel), 8, axis=1)
        total = [one + other for one, other in zip(of_x, of_m, strict=True)]
        first = tanh(sigmoid(total[0]) * relu(total[1]))
        second = tanh(sigmoid(total[2]) + relu(of_x[3] * of_m[3]))
        third = tanh(tanh(total[4]) * sigmoid(total[5]))
        fourth = sigmoid(tanh(total[6]) + sigmoid(total[7]))
        new_c = tanh(first + c) * second
        new_m = tanh(new_c * tanh(third + fourth))
        if self._num_proj is not None:
            new_m = matmul(new_m, self.projection_weights)
        return new_m, LSTMStateTuple(new_c, new_m)
