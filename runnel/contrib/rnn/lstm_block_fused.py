"""``LSTMBlockFusedCell``: an LSTM along a whole sequence, whose inputs are multiplied at once."""

from __future__ import annotations

import abc
from typing import Any

from runnel.contrib.rnn.sizes import KnownSizes
from runnel.layers.base import Layer
from runnel.layers.input_spec import InputSpec
from runnel.nn.rnn.dynamic import dynamic_rnn
from runnel.nn.rnn_cell.cell import RNNCell, require_depth
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.array_shape import expand_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_value
from runnel.ops.elementwise import sigmoid, tanh
from runnel.ops.fill import zeros
from runnel.ops.gather import gather_nd
from runnel.ops.joining import concat, stack
from runnel.ops.masking import sequence_mask
from runnel.ops.matmul import matmul
from runnel.ops.ranges import range as range_of
from runnel.ops.splitting import split, unstack
from runnel.ops.tensordot import tensordot
from runnel.ops.transposition import transpose
from runnel.variables.initializers import Zeros


class LSTMBlockWrapper(Layer):
    """The base of LSTMs along a whole sequence.

    A subclass has the property ``num_units`` and the method ``_call_cell``, which returns the
    memories and the outputs of all steps.
    """

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """The number of units."""

    @abc.abstractmethod
    def _call_cell(
        self,
        inputs: Any,
        initial_cell_state: Any,
        initial_output: Any,
        dtype: Any,
        sequence_length: Any,
    ) -> tuple[Any, Any]:
        """The memories and the outputs, both of shape [time, batch, num_units]."""

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> Any:
        """Runs along ``inputs``, of shape [time, batch, size], or a list of [batch, size].

        Returns the outputs in the same form and the last state, an ``LSTMStateTuple``. After its
        ``sequence_length`` a sequence has outputs of zeros, and its state stays.
        """
        as_list = isinstance(inputs, list)
        whole = stack(inputs) if as_list else inputs
        time, batch = (
            shape_of(whole)[axis] if size is None else size
            for axis, size in enumerate(whole.shape.as_list()[:2])
        )
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            initial_state = (zeros(stack([batch, self.num_units]), dtype),) * 2
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        dtype = dtype or initial_state[0].dtype
        first_c, first_h = initial_state
        states, outputs = self._call_cell(whole, first_c, first_h, dtype, sequence_length)
        if sequence_length is None:
            last = LSTMStateTuple(states[-1], outputs[-1])
        else:
            mask = transpose(sequence_mask(sequence_length, time, dtype), [1, 0])
            outputs = outputs * expand_dims(mask, -1)
            places = cast(sequence_length, "int32")
            places = stack([places, range_of(batch)], axis=1)
            last = LSTMStateTuple(
                *(
                    gather_nd(concat([expand_dims(first, 0), rest], 0), places)
                    for first, rest in zip(initial_state, (states, outputs), strict=True)
                )
            )
        return (unstack(outputs) if as_list else outputs), last


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM along a whole sequence, with the variables of ``LSTMBlockCell``.

    They are ``kernel``, ``bias`` and, with ``use_peephole``, ``w_i_diag``, ``w_f_diag`` and
    ``w_o_diag``, in the scope ``lstm_fused_cell``.

    Example:
        >>> outputs, state = tf.contrib.rnn.LSTMBlockFusedCell(8)(inputs, dtype=tf.float32)
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = cell_clip if cell_clip is not None and cell_clip > 0 else None
        self._use_peephole = use_peephole
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        units = self._num_units
        self._depth = require_depth(input_shape)
        self._kernel = self.add_weight("kernel", [self._depth + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=Zeros())
        self._diagonals: list[Any] | None = None
        if self._use_peephole:
            names = ("w_i_diag", "w_f_diag", "w_o_diag")
            self._diagonals = [self.add_weight(name, [units]) for name in names]
        super().build(input_shape)

    def _call_cell(
        self,
        inputs: Any,
        initial_cell_state: Any,
        initial_output: Any,
        dtype: Any,
        sequence_length: Any,
    ) -> tuple[Any, Any]:
        of_inputs, of_state = split(self._kernel, [self._depth, self._num_units], axis=0)
        sums = tensordot(inputs, of_inputs, 1) + self._bias
        step = _Step(self._num_units, of_state, self._diagonals, self._forget_bias, self._cell_clip)
        start = LSTMStateTuple(initial_cell_state, initial_output)
        (states, outputs), _ = dynamic_rnn(step, sums, initial_state=start, time_major=True)
        return states, outputs


class _Step(KnownSizes, RNNCell):
    """One step, given the part of the gates that is the input's; shows its whole state."""

    def __init__(
        self, units: int, kernel: Any, diagonals: list[Any] | None, forget_bias: float, clip: Any
    ) -> None:
        super().__init__()
        self._kernel = kernel
        self._diagonals = diagonals
        self._forget_bias = forget_bias
        self._clip = clip
        self._state_size = self._output_size = LSTMStateTuple(units, units)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        i, j, f, o = split(inputs + matmul(h, self._kernel), 4, axis=1)
        f = f + self._forget_bias
        if self._diagonals is not None:
            i, f = i + self._diagonals[0] * c, f + self._diagonals[1] * c
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(j)
        if self._clip is not None:
            new_c = clip_by_value(new_c, -self._clip, self._clip)
        if self._diagonals is not None:
            o = o + self._diagonals[2] * new_c
        new = LSTMStateTuple(new_c, sigmoid(o) * tanh(new_c))
        return new, new
