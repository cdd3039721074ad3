"""``CudnnLSTM`` and its kin: networks of several layers, one or both ways, along a sequence."""

from __future__ import annotations

from typing import Any

from runnel.contrib.cudnn_rnn.compatible_cells import (
    CudnnCompatibleGRUCell,
    CudnnCompatibleLSTMCell,
)
from runnel.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.layers.base import Layer
from runnel.layers.input_spec import InputSpec
from runnel.nn.rnn.dynamic import dynamic_rnn
from runnel.nn.rnn_cell.basic import BasicRNNCell
from runnel.nn.rnn_cell.dropout import DropoutWrapper
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.nn.rnn_cell.multi import MultiRNNCell
from runnel.ops.activations import relu
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import zeros
from runnel.ops.joining import stack
from runnel.ops.selection import where_v2
from runnel.ops.splitting import unstack
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import get_variable_scope, variable_scope

_ONE_WAY, _BOTH_WAYS = "unidirectional", "bidirectional"


class _CudnnRNN(Layer):
    """A network of ``num_layers`` of cells, with the interface of cuDNN's.

    ``direction`` is "unidirectional" or "bidirectional". ``dropout`` is that between layers, while
    training. cuDNN keeps its weights in one opaque variable, which TensorFlow saves as those of
    cells; here there are only these, so that a checkpoint of either is one of the other.

    Calling it with inputs [time, batch, size] ([batch, time, size] with ``time_major=False``)
    returns the outputs and a tuple of last states, [layers * directions, batch, units] each.
    """

    _states = 1

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = _ONE_WAY,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        if direction not in (_ONE_WAY, _BOTH_WAYS):
            raise ValueError(f"direction must be {_ONE_WAY!r} or {_BOTH_WAYS!r}, not {direction!r}")
        if input_mode not in ("linear_input", "auto_select"):
            raise ValueError(f"input_mode must be 'linear_input', not {input_mode!r}")
        if bias_initializer is not None:
            raise ValueError("biases begin as zeros: assign others when they are initialised")
        self.num_layers = num_layers
        self.num_units = num_units
        self.input_mode = input_mode
        self.direction = direction
        self._dropout = dropout
        self._seed = seed
        self._kernel_initializer = kernel_initializer
        self.input_spec = InputSpec(ndim=3)
        self._cells: list[Any] = [self._cell() for _ in range(num_layers * self.num_dirs)]

    @property
    def num_dirs(self) -> int:
        """1, or 2 where both directions are read."""
        return 1 if self.direction == _ONE_WAY else 2

    def _cell(self) -> Any:
        raise NotImplementedError

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of the initial state's tensors."""
        return ([self.num_layers * self.num_dirs, batch_size, self.num_units],) * self._states

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: Any = True,
    ) -> Any:
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        inputs = convert_to_tensor(inputs, dtype=self.dtype)
        if initial_state is None:
            batch = shape_of(inputs)[1 if time_major else 0]
            shapes = self.state_shape(batch)
            initial_state = tuple(zeros(stack(shape), self.dtype) for shape in shapes)
        states = [self._packed(leaves) for leaves in zip(*map(unstack, initial_state), strict=True)]
        how = {"sequence_length": sequence_lengths, "time_major": time_major}
        with variable_scope(get_variable_scope(), initializer=self._kernel_initializer):
            if self.num_dirs == 1:
                cells = MultiRNNCell(self._dropping(self._cells, training))
                outputs, last = dynamic_rnn(cells, inputs, initial_state=tuple(states), **how)
            else:
                outputs, *ways = stack_bidirectional_dynamic_rnn(
                    self._dropping(self._cells[::2], training),
                    self._dropping(self._cells[1::2], training),
                    inputs,
                    states[::2],
                    states[1::2],
                    **how,
                )
                last = [state for layer in zip(*ways, strict=True) for state in layer]
        parts = zip(*(self._unpacked(state) for state in last), strict=True)
        return outputs, tuple(stack(part) for part in parts)

    def _packed(self, leaves: tuple[Any, ...]) -> Any:
        """The state of a cell, of its part of each tensor of the whole state."""
        return leaves[0]

    def _unpacked(self, state: Any) -> tuple[Any, ...]:
        return (state,)

    def _dropping(self, cells: list[Any], training: Any) -> list[Any]:
        """The cells with dropout after all but the last."""
        if not self._dropout or training is False:
            return cells
        keep: Any = 1.0 - self._dropout
        if isinstance(training, Tensor):
            keep = where_v2(training, keep, 1.0)
        wrapped = [DropoutWrapper(c, output_keep_prob=keep, seed=self._seed) for c in cells[:-1]]
        return [*wrapped, cells[-1]]


class CudnnLSTM(_CudnnRNN):
    """An LSTM of several layers; the state is (h, c).

    Variables, in the scope ``cudnn_lstm``: ``kernel`` and ``bias`` in each of
    ``rnn/multi_rnn_cell/cell_<layer>/cudnn_compatible_lstm_cell`` or, both ways,
    ``stack_bidirectional_rnn/cell_<layer>/bidirectional_rnn/fw/cudnn_compatible_lstm_cell``, and
    ``bw`` likewise.

    Example:
        >>> lstm = tf.contrib.cudnn_rnn.CudnnLSTM(2, 64, direction="bidirectional")
        >>> outputs, (h, c) = lstm(inputs)
    """

    _states = 2

    def _cell(self) -> Any:
        return CudnnCompatibleLSTMCell(self.num_units)

    def _packed(self, leaves: tuple[Any, ...]) -> Any:
        h, c = leaves
        return LSTMStateTuple(c, h)

    def _unpacked(self, state: Any) -> tuple[Any, ...]:
        return state.h, state.c


class CudnnGRU(_CudnnRNN):
    """A GRU of several layers; the state is (h,). Its cells are ``CudnnCompatibleGRUCell``."""

    def _cell(self) -> Any:
        cell = CudnnCompatibleGRUCell(self.num_units)
        cell._bias_initializer = Zeros()
        return cell


class CudnnRNNTanh(_CudnnRNN):
    """A plain network of several layers; the state is (h,). Its cells are ``BasicRNNCell``."""

    def _cell(self) -> Any:
        return BasicRNNCell(self.num_units)


class CudnnRNNRelu(_CudnnRNN):
    """The same with rectified outputs."""

    def _cell(self) -> Any:
        return BasicRNNCell(self.num_units, activation=relu)
