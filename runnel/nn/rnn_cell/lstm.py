"""Long short-term memory (Hochreiter & Schmidhuber, 1997): ``BasicLSTMCell``, ``LSTMCell``."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.graph.dtypes import int32
from runnel.layers.by_name import as_initializer
from runnel.layers.input_spec import InputSpec
from runnel.nn.rnn_cell.cell import (
    LayerRNNCell,
    cell_activation,
    require_depth,
    require_floats,
)
from runnel.ops.arithmetic import add, multiply
from runnel.ops.bias import bias_add
from runnel.ops.clipping import clip_by_value
from runnel.ops.constants import constant
from runnel.ops.elementwise import sigmoid
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.ops.slicing import slice as slice_tensor
from runnel.ops.splitting import split
from runnel.variables.initializers import Zeros
from runnel.variables.partitioners import fixed_size_partitioner


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: ``c``, the memory, and ``h``, the last output."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The element type of both."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(
                f"Inconsistent types in the state of an LSTM: {self.c.dtype} and {self.h.dtype}"
            )
        return self.c.dtype


class BasicLSTMCell(LayerRNNCell):
    """The LSTM of Zaremba et al. (2014): no peepholes, clipping or projection.

    ``forget_bias`` is added to the forget gates, so that a new network remembers. The state is an
    :class:`LSTMStateTuple`, or with ``state_is_tuple=False`` one tensor ``[c, h]``. Variables:
    ``kernel`` (the columns are the gates i, j, f, o) and ``bias``, in the scope
    ``basic_lstm_cell``.

    Example:
        >>> cell = tf.nn.rnn_cell.BasicLSTMCell(8)
        >>> output, state = cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))
        >>> state.c.shape
        TensorShape([Dimension(2), Dimension(8)])
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
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
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = cell_activation(activation)

    @property
    def state_size(self) -> Any:
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        require_floats(self.dtype)
        units = self._num_units
        depth = require_depth(input_shape)
        self._kernel = self.add_weight("kernel", shape=[depth + units, 4 * units])
        self._bias = self.add_weight("bias", shape=[4 * units], initializer=Zeros(dtype=self.dtype))
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        require_floats(inputs, state)
        one = constant(1, dtype=int32)
        c, h = _pair(self, state) if self._state_is_tuple else split(state, 2, axis=one)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        # i: what to take in, j: new candidate, f: what to forget, o: what to show.
        i, j, f, o = split(gates, 4, axis=one)
        forget_bias = constant(self._forget_bias, dtype=f.dtype)
        kept = multiply(c, sigmoid(add(f, forget_bias)))
        new_c = add(kept, multiply(sigmoid(i), self._activation(j)))
        new_h = multiply(self._activation(new_c), sigmoid(o))
        if self._state_is_tuple:
            return new_h, LSTMStateTuple(new_c, new_h)
        return new_h, concat([new_c, new_h], 1)


class LSTMCell(LayerRNNCell):
    """An LSTM with peepholes, clipping and projection (Sak et al., 2014), where asked for.

    ``use_peepholes``: the gates also see the memory, through the diagonal weights ``w_f_diag``,
    ``w_i_diag`` and ``w_o_diag``. ``cell_clip`` bounds the memory, ``num_proj`` is the size of a
    linear projection of the output (``projection/kernel``), and ``proj_clip`` bounds that.
    ``initializer`` is for the matrices and the diagonals. The scope is ``lstm_cell``.
    """

    _gates_that_see = "fio"
    """The gates with diagonals, in the order in which these are made: seeds depend on it."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
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
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = as_initializer(initializer)
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = cell_activation(activation)

    @property
    def state_size(self) -> Any:
        c, h = self._num_units, self.output_size
        return LSTMStateTuple(c, h) if self._state_is_tuple else c + h

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def build(self, input_shape: Any) -> None:
        require_floats(self.dtype)
        units = self._num_units
        depth = require_depth(input_shape) + self.output_size
        self._kernel = self.add_weight(
            "kernel",
            shape=[depth, 4 * units],
            initializer=self._initializer,
            partitioner=_shards(self._num_unit_shards),
        )
        self._bias = self.add_weight("bias", shape=[4 * units], initializer=Zeros(dtype=self.dtype))
        if self._use_peepholes:
            diagonals = {
                gate: self.add_weight(
                    f"w_{gate}_diag", shape=[units], initializer=self._initializer
                )
                for gate in self._gates_that_see
            }
            self._w_f_diag, self._w_i_diag = diagonals["f"], diagonals["i"]
            self._w_o_diag = diagonals["o"]
        if self._num_proj is not None:
            self._proj_kernel = self.add_weight(
                "projection/kernel",
                shape=[units, self._num_proj],
                initializer=self._initializer,
                partitioner=_shards(self._num_proj_shards),
            )
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        require_floats(inputs, state)
        if self._state_is_tuple:
            c_prev, h_prev = _pair(self, state)
        else:
            c_prev = slice_tensor(state, [0, 0], [-1, self._num_units])
            h_prev = slice_tensor(state, [0, self._num_units], [-1, self.output_size])
        gates = bias_add(matmul(concat([inputs, h_prev], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, axis=1)
        if self._use_peepholes:
            c = sigmoid(f + self._forget_bias + self._w_f_diag * c_prev) * c_prev
            c += sigmoid(i + self._w_i_diag * c_prev) * self._activation(j)
        else:
            c = sigmoid(f + self._forget_bias) * c_prev + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        show = sigmoid(o + self._w_o_diag * c if self._use_peepholes else o)
        h = show * self._activation(c)
        if self._num_proj is not None:
            h = matmul(h, self._proj_kernel)
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


def _pair(cell: LayerRNNCell, state: Any) -> tuple[Any, Any]:
    if not isinstance(state, list | tuple) or len(state) != 2:
        raise ValueError(
            f"The state of {cell.name} must be an LSTMStateTuple(c, h), not "
            f"{type(state).__name__}; a cell made with state_is_tuple=False takes one tensor"
        )
    return state[0], state[1]


def _shards(count: int | None) -> Any:
    return None if count is None else fixed_size_partitioner(count)
