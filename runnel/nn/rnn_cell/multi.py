"""``MultiRNNCell``: cells on top of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.control_flow.structure import describe, is_nested
from runnel.graph.graph import name_scope
from runnel.nn.rnn_cell.cell import RNNCell, require_cell
from runnel.ops.joining import concat
from runnel.ops.slicing import slice as slice_tensor
from runnel.variables.variable_scope import variable_scope


class MultiRNNCell(RNNCell):
    """A stack of cells: the output of each is the input of the next.

    The state is a tuple of the cells' states, or with ``state_is_tuple=False`` all of them side by
    side in one tensor. Variables are in the scopes ``multi_rnn_cell/cell_0`` and so on.

    Example:
        >>> cells = [tf.nn.rnn_cell.LSTMCell(size) for size in (16, 8)]
        >>> tf.nn.rnn_cell.MultiRNNCell(cells).output_size
        8
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, list | tuple):
            raise TypeError(f"cells must be a list or tuple, but received: {cells}.")
        for i, cell in enumerate(cells):
            require_cell(f"cells[{i}]", cell)
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(is_nested(cell.state_size) for cell in cells):
            raise ValueError(
                "Some cells have tuples of states, which state_is_tuple=False cannot join. State "
                f"sizes are: {[cell.state_size for cell in cells]}"
            )

    @property
    def state_size(self) -> Any:
        sizes = [cell.state_size for cell in self._cells]
        return tuple(sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with name_scope(type(self).__name__ + "ZeroState"):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        if self._state_is_tuple:
            states = state
            if not isinstance(state, list | tuple) or len(state) != len(self._cells):
                raise ValueError(
                    f"Expected state to be a tuple of length {len(self._cells)}, a state for each "
                    f"cell, but received {describe(state)}, a {type(state).__name__}"
                )
        else:
            states = self._split(state)
        new_states = []
        for i, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{i}"):
                inputs, new_state = cell(inputs, own)
            new_states.append(new_state)
        return inputs, tuple(new_states) if self._state_is_tuple else concat(new_states, 1)

    def _split(self, state: Any) -> list[Any]:
        found, start = [], 0
        for cell in self._cells:
            found.append(slice_tensor(state, [0, start], [-1, cell.state_size]))
            start += cell.state_size
        return found
