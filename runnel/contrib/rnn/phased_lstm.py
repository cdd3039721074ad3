"""``PhasedLSTMCell``: an LSTM that is open from time to time."""

from __future__ import annotations

import math
from typing import Any

from runnel.contrib.rnn.linear import linear
from runnel.contrib.rnn.sizes import KnownSizes
from runnel.graph.dtypes import float32
from runnel.nn.rnn_cell.cell import RNNCell
from runnel.nn.rnn_cell.lstm import LSTMStateTuple
from runnel.ops.casting import cast
from runnel.ops.comparison import less
from runnel.ops.control import stop_gradient
from runnel.ops.division import floormod
from runnel.ops.elementwise import exp, sigmoid, tanh
from runnel.ops.sampling.random import random_uniform
from runnel.ops.selection import where
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant, RandomUniform
from runnel.variables.variable_scope import variable_scope


class PhasedLSTMCell(KnownSizes, RNNCell):
    """Phased LSTM (Neil et al., 2016), for events at irregular times.

    Inputs are pairs (time, x) of shapes [batch, 1] and [batch, size]. A unit opens once in its
    period, for a part ``ratio_on`` of it; closed it leaks by ``leak``. Periods begin between
    ``period_init_min`` and ``period_init_max``. Variables, in the scope ``phased_lstm_cell``:
    ``mask_gates/kernel``, ``new_input/kernel``, ``output_gate/kernel``, their ``bias``, and
    ``period``, ``phase`` and ``ratio_on``.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._logs = math.log(period_init_min), math.log(period_init_max)
        self._output_size = num_units
        self._state_size = LSTMStateTuple(num_units, num_units)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        c, h = state
        time, x = inputs
        units = self._output_size
        with variable_scope("mask_gates"):
            seen = [x, h, c] if self._use_peepholes else [x, h]
            take, keep = split(sigmoid(linear(seen, 2 * units)), 2, axis=1)
        with variable_scope("new_input"):
            candidate = tanh(linear([x, h], units))
        new_c = c * keep + take * candidate
        with variable_scope("output_gate"):
            seen = [x, h, new_c] if self._use_peepholes else [x, h]
            show = sigmoid(linear(seen, units))
        new_h = tanh(new_c) * show
        opened = self._openness(time)
        new_c = opened * new_c + (1 - opened) * c
        new_h = opened * new_h + (1 - opened) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Any) -> Any:
        """How far each unit is open at ``time``: up and down while it is, then a leak."""
        shape = [self._output_size]
        period = get_variable("period", shape, initializer=self._periods)
        begins = RandomUniform(0.0, period.initial_value)
        phase = get_variable("phase", shape, initializer=begins)
        ratio = get_variable(
            "ratio_on",
            shape,
            initializer=Constant(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        cycle = cast(period, time.dtype)
        shifted = time - cast(phase, time.dtype)
        # The remainder's gradient is taken to be 1 everywhere.
        inside = stop_gradient(floormod(shifted, cycle) - shifted) + shifted
        place = cast(inside / cycle, float32)
        up = 2 * place / ratio
        opened = where(less(place, ratio), 2 - up, self._leak * place)
        return where(less(place, 0.5 * ratio), up, opened)

    def _periods(self, shape: Any, dtype: Any = float32, partition_info: Any = None) -> Any:
        return exp(random_uniform(shape, *self._logs, dtype))
