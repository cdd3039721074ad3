"""Cells with a linear map, or an embedding, before or after another cell."""

from __future__ import annotations

import math
from typing import Any

from runnel.contrib.rnn.linear import linear
from runnel.control_flow.structure import flatten
from runnel.nn.rnn_cell.cell import RNNCell, require_cell
from runnel.ops.array_shape import reshape
from runnel.ops.embedding import embedding_lookup
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import RandomUniform
from runnel.variables.variable_scope import get_variable_scope


class _AroundCell(RNNCell):
    """A cell with another inside, whose state is its own."""

    def __init__(self, cell: Any, reuse: Any) -> None:
        super().__init__(_reuse=reuse)
        require_cell("cell", cell)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_AroundCell):
    """Projects the input linearly to ``num_proj`` before the cell sees it."""

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell, reuse)
        self._num_proj = num_proj
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        return self._cell(_project(inputs, self._num_proj, self._activation), state)


class OutputProjectionWrapper(_AroundCell):
    """Projects the cell's output linearly to ``output_size``."""

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size = output_size
        self._activation = activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        output, state = self._cell(inputs, state)
        return _project(output, self._output_size, self._activation), state


class EmbeddingWrapper(_AroundCell):
    """Looks integers up in a table of embeddings before the cell sees them.

    To embed a whole sequence at once, with ``tf.nn.embedding_lookup``, is faster.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._table = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        # Uniform with variance 1.
        default = get_variable_scope().initializer or RandomUniform(-math.sqrt(3), math.sqrt(3))
        embedding = get_variable(
            "embedding",
            self._table,
            initializer=self._initializer or default,
            dtype=flatten(state)[0].dtype,
        )
        return self._cell(embedding_lookup(embedding, reshape(inputs, [-1])), state)


def _project(values: Any, size: int, activation: Any) -> Any:
    projected = linear([values], size)
    return activation(projected) if activation is not None else projected
