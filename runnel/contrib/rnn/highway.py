"""``HighwayWrapper``: a gate mixes a cell's input and its output."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.nn.rnn_cell.cell import RNNCell, require_cell
from runnel.ops.bias import xw_plus_b
from runnel.ops.elementwise import sigmoid
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Constant


class HighwayWrapper(RNNCell):
    """Carries a part of the input over to the output (Srivastava et al., 2015).

    The output is ``input * carry + output * transform``. ``carry`` is a gate with the variables
    ``carry_w`` and ``carry_b`` (which begins as ``carry_bias_init``) of the scope in which the
    cell is called. ``transform`` is what is left of 1 or, not coupled, a gate with ``transform_w``
    and ``transform_b``. Inputs and outputs must have the same shapes.
    """

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ) -> None:
        super().__init__()
        require_cell("cell", cell)
        self._cell = cell
        self._coupled = couple_carry_transform_gates
        self._carry_bias_init = carry_bias_init

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        outputs, new_state = self._cell(inputs, state, scope=scope)
        require_same(inputs, outputs, ("the inputs", "the outputs of a highway cell"))
        pairs = zip(flatten(inputs), flatten(outputs), strict=True)
        return pack_as(outputs, [self._mixed(*pair) for pair in pairs]), new_state

    def _mixed(self, given: Any, out: Any) -> Any:
        given.shape.assert_is_compatible_with(out.shape)
        carry = self._gate(given, "carry", self._carry_bias_init)
        if self._coupled:
            return given * carry + out * (1 - carry)
        return given * carry + out * self._gate(given, "transform", -self._carry_bias_init)

    def _gate(self, given: Any, name: str, bias: float) -> Any:
        size = given.dims[-1]
        weights = get_variable(f"{name}_w", [size, size])
        return sigmoid(
            xw_plus_b(given, weights, get_variable(f"{name}_b", [size], initializer=Constant(bias)))
        )
