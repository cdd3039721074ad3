"""``CoupledInputForgetGateLSTMCell``: an LSTM that takes in as much as it forgets."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.layer_norm import normalized
from runnel.contrib.rnn.sizes import KnownSizes
from runnel.nn.rnn_cell.cell import RNNCell, require_depth
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.bias import bias_add
from runnel.ops.clipping import clip_by_value
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros


class CoupledInputForgetGateLSTMCell(KnownSizes, RNNCell):
    """An LSTM whose input gate is what its forget gate leaves of 1 (Greff et al., 2015).

    Variables, in the scope ``coupled_input_forget_gate_lstm_cell``: ``W_0`` (and ``W_1``, ... with
    ``num_unit_shards``), ``B``, with ``use_peepholes`` ``W_F_diag`` and ``W_O_diag``, with
    ``num_proj`` ``W_P_0``, and with ``layer_norm`` ``gamma`` and ``beta`` in each of ``transform``,
    ``forget``, ``output`` and ``state``. As in TensorFlow 1.15, ``initializer`` is without effect:
    the matrices and diagonals begin as the scope around the cell says.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = tanh,
        reuse: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._shards = num_unit_shards
        self._proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._norm = (norm_gain, norm_shift) if layer_norm else None
        self._output_size = num_proj or num_units
        sizes = LSTMStateTuple(num_units, self._output_size)
        self._state_size = sizes if state_is_tuple else sum(sizes)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        units, dtype = self._num_units, inputs.dtype
        if not self._state_is_tuple:
            state = split(state, [units, self._output_size], axis=1)
        c, m = state
        joined = concat([inputs, m], 1)
        shape = [require_depth(joined.shape), 3 * units]
        sums = matmul(joined, self._sharded("W", shape, dtype, self._shards))
        bias = get_variable("B", [3 * units], initializer=Zeros(), dtype=dtype)
        j, f, o = split(sums if self._norm else bias_add(sums, bias), 3, axis=1)
        j, f, o = self._maybe_normalized(transform=j, forget=f, output=o)
        f = f + self._forget_bias
        if self._use_peepholes:
            see_c = [get_variable(name, [units], dtype=dtype) for name in ("W_F_diag", "W_O_diag")]
            f = f + see_c[0] * c
        keep = sigmoid(f)
        new_c = keep * c + (1 - keep) * self._activation(j)
        (new_c,) = self._maybe_normalized(state=new_c)
        if self._use_peepholes:
            o = o + see_c[1] * new_c
        new_m = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            shape = [units, self._num_proj]
            new_m = matmul(new_m, self._sharded("W_P", shape, dtype, self._proj_shards))
            if self._proj_clip is not None:
                new_m = clip_by_value(new_m, -self._proj_clip, self._proj_clip)
        if self._state_is_tuple:
            return new_m, LSTMStateTuple(new_c, new_m)
        return new_m, concat([new_c, new_m], 1)

    def _maybe_normalized(self, **values: Any) -> list[Any]:
        if self._norm is None:
            return list(values.values())
        return [normalized(value, scope, *self._norm) for scope, value in values.items()]

    def _sharded(self, name: str, shape: list[int], dtype: Any, count: int) -> Any:
        """A matrix in ``count`` variables of some rows each, more in the first ones."""
        rows, width = shape
        if count > rows:
            raise ValueError(f"Too many shards: shape={shape}, num_shards={count}")
        sizes = [rows // count + (i < rows % count) for i in range(count)]
        shards = [
            get_variable(f"{name}_{i}", [size, width], dtype=dtype) for i, size in enumerate(sizes)
        ]
        return shards[0] if count == 1 else concat(shards, 0)
