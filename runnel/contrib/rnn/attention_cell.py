"""``AttentionCellWrapper``: attention to a cell's own last outputs."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.linear import linear
from runnel.control_flow.structure import flatten, is_nested
from runnel.nn.rnn_cell.cell import RNNCell, require_cell
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.convolution.convolution import conv2d
from runnel.ops.elementwise import tanh
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.softmax import softmax
from runnel.ops.splitting import split
from runnel.variables.get_variable import get_variable
from runnel.variables.variable_scope import variable_scope


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its ``attn_length`` last outputs (Bahdanau et al., 2014).

    The state is (the cell's, what it attended to, the outputs joined), or all of that joined with
    ``state_is_tuple=False``. ``attn_size`` is the size of an output (default: the cell's),
    ``attn_vec_size`` that in which they are compared, ``input_size`` that of the cell's input.
    Variables, in the scope ``attention_cell_wrapper``: ``kernel`` and ``bias``, of the input, and
    ``attention/attn_w``, ``attention/attn_v``, ``attention/kernel``, ``attention/bias``,
    ``attn_output_projection/kernel``, ``attn_output_projection/bias``.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        require_cell("cell", cell)
        if is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. State size "
                f"is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._attn_length = attn_length
        self._attn_size: int = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size = self._attn_size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple

    @property
    def _sizes(self) -> tuple[Any, int, int]:
        return self._cell.state_size, self._attn_size, self._attn_size * self._attn_length

    @property
    def state_size(self) -> Any:
        return self._sizes if self._state_is_tuple else sum(self._sizes)

    @property
    def output_size(self) -> int:
        return self._attn_size

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        if not self._state_is_tuple:
            state = split(state, list(self._sizes), axis=1)
        own, attended, outputs = state
        outputs = reshape(outputs, [-1, self._attn_length, self._attn_size])
        size = inputs.dims[1] if self._input_size is None else self._input_size
        output, own = self._cell(linear([inputs, attended], size), own)
        with variable_scope("attention"):
            attended = self._attend(concat(flatten(own), 1), outputs)
        with variable_scope("attn_output_projection"):
            output = linear([output, attended], self._attn_size)
        outputs = concat([outputs[:, 1:], expand_dims(output, 1)], 1)
        new = (own, attended, reshape(outputs, [-1, self._attn_length * self._attn_size]))
        return output, (new if self._state_is_tuple else concat(new, 1))

    def _attend(self, query: Any, outputs: Any) -> Any:
        """The outputs, weighed by how well they match the query."""
        size = self._attn_vec_size
        weights = get_variable("attn_w", [1, 1, self._attn_size, size])
        vector = get_variable("attn_v", [size])
        features = conv2d(expand_dims(outputs, 2), weights, [1, 1, 1, 1], "SAME")
        compared = features + reshape(linear([query], size), [-1, 1, 1, size])
        scores = softmax(reduce_sum(vector * tanh(compared), [2, 3]))
        return reduce_sum(expand_dims(scores, 2) * outputs, 1)
