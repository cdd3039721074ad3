"""``LayerNormBasicLSTMCell``: an LSTM whose gates are normalised."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import float16
from runnel.nn.rnn_cell.cell import RNNCell, cell_activation
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.batch_norm import batch_normalization
from runnel.ops.bias import bias_add
from runnel.ops.elementwise import sigmoid
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.moments import moments
from runnel.ops.sampling.dropout import dropout
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant
from runnel.variables.variable_scope import variable_scope


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM with layer normalisation (Ba et al., 2016) and recurrent dropout.

    Each gate and the memory is normalised over the units, scaled by its ``gamma`` (``norm_gain``
    at first) and shifted by its ``beta`` (``norm_shift``), unless ``layer_norm=False``. Dropout
    (``dropout_keep_prob``) is of the candidate for the memory alone (Semeniuta et al., 2016).
    Variables, in the scope ``layer_norm_basic_lstm_cell``: ``kernel``, and ``gamma`` and ``beta``
    in each of ``input``, ``transform``, ``forget``, ``output``, ``state``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = None,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = cell_activation(activation)
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        i, j, f, o = split(self._linear(concat([inputs, h], 1)), 4, axis=1)
        if self._layer_norm:
            i = self._norm(i, "input")
            j = self._norm(j, "transform")
            f = self._norm(f, "forget")
            o = self._norm(o, "output")
        candidate = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            candidate = dropout(candidate, self._keep_prob, seed=self._seed)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * candidate
        if self._layer_norm:
            new_c = self._norm(new_c, "state")
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)

    def _linear(self, args: Any) -> Any:
        width = 4 * self._num_units
        kernel = get_variable("kernel", [args.dims[-1], width], dtype=args.dtype)
        sums = matmul(args, kernel)
        if not self._layer_norm:  # with it, the shifts are the biases
            sums = bias_add(sums, get_variable("bias", [width], dtype=args.dtype))
        return sums

    # Programs derive cells of their own from this one, with TensorFlow's names for its parts.

    def _norm(self, inp: Any, scope: str, dtype: Any = None) -> Any:
        return normalized(inp, scope, self._norm_gain, self._norm_shift)


def normalized(values: Any, scope: str, gain: float, shift: float) -> Any:
    """The values, normalised over the units, times ``gamma`` plus ``beta``, variables of a scope.

    They begin as ``gain`` and ``shift``.
    """
    dtype, units = values.dtype, [values.dims[-1]]
    with variable_scope(scope):
        gamma = get_variable("gamma", units, initializer=Constant(gain), dtype=dtype)
        beta = get_variable("beta", units, initializer=Constant(shift), dtype=dtype)
        mean, variance = moments(values, [1], keep_dims=True)
        # contrib's choice; 1e-12 underflows in half precision.
        epsilon = 1e-3 if dtype.base_dtype is float16 else 1e-12
        return batch_normalization(values, mean, variance, beta, gamma, epsilon)
