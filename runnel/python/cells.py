"""Names of ``rnn_cell_impl`` and ``rnn`` that are not public, for cells of a program's own."""

from __future__ import annotations

from typing import Any

from runnel.contrib.rnn.core_linear import _Linear
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.nn.rnn.dynamic import best_effort_input_batch_size as _best_effort_input_batch_size
from runnel.nn.rnn.sequence import transpose_batch_time as _transpose_batch_time
from runnel.nn.rnn_cell.batch_shape import batch_shape, static_batch_shape
from runnel.nn.rnn_cell.cell import require_cell, zero_state_of

__all__ = ["assert_like_rnncell"]

_PRIVATE = (_Linear, _best_effort_input_batch_size, _transpose_batch_time)

assert_like_rnncell = require_cell


def _like_rnncell(cell: Any) -> bool:
    """True for what has all that a cell needs."""
    try:
        require_cell("cell", cell)
    except TypeError:
        return False
    return True


def _concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """The shape [*prefix, *suffix]: a tensor, or the list of what is known of it."""
    if not static:
        return batch_shape(prefix, suffix)
    dims = static_batch_shape(prefix, suffix)
    return TensorShape(None) if dims is None else list(dims)


def _zero_state_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """A state of zeros: ``state_size`` with tensors of shape [batch_size, size]."""
    return zero_state_of(state_size, batch_size, dtype)


def _maybe_tensor_shape_from_tensor(shape: Any) -> Any:
    """A shape that is an array, or a tensor of known value, as a ``tf.TensorShape``."""
    return TensorShape(constant_value_as_dims(shape)) if isinstance(shape, Tensor) else shape
