"""``tf.nn.raw_rnn``: a cell in a loop whose inputs and end a function decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.loop import while_loop
from runnel.control_flow.structure import flatten, map_leaves, pack_as, require_same
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import merge_dims
from runnel.nn.rnn.sequence import cache_variables, call_cell, copy_through, output_dims
from runnel.nn.rnn_cell.batch_shape import batch_shape
from runnel.nn.rnn_cell.cell import require_cell
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.comparison import logical_not, logical_or
from runnel.ops.constants import constant
from runnel.ops.fill import zeros
from runnel.ops.reduce_functions import reduce_all
from runnel.variables.variable_scope import variable_scope


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs ``cell`` under the control of ``loop_fn``, until every sequence is finished.

    ``loop_fn(time, cell_output, cell_state, loop_state)`` is called before each step and returns
    ``(elements_finished, next_input, next_cell_state, emit_output, next_loop_state)``. Before the
    first step ``cell_output`` and the states are None, ``next_cell_state`` is the initial state,
    and ``emit_output`` tells the form of what later calls emit, without the batch (None: that of
    the cell's output). ``elements_finished`` is a vector of bool; a finished sequence emits 0 and
    keeps its state. ``loop_state`` is whatever ``loop_fn`` wants to remember, or None.

    Returns the TensorArray(s) of what was emitted, the last state and the last loop state.

    Example:
        >>> cell = tf.nn.rnn_cell.GRUCell(3)
        >>> def feed_back(time, output, state, loop_state):
        ...     first = output is None
        ...     next_input = tf.ones([2, 3]) if first else output
        ...     next_state = cell.zero_state(2, tf.float32) if first else state
        ...     return tf.fill([2], time >= 5), next_input, next_state, output, None
        >>> emitted, state, _ = tf.nn.raw_rnn(cell, feed_back)
    """
    require_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        start = constant(0, dtype=int32)
        finished, first_input, state, emit, initial_loop_state = loop_fn(start, None, None, None)
        loop_state = constant(0, dtype=int32) if initial_loop_state is None else initial_loop_state
        first_input = map_leaves(_as_value, first_input)
        batch_size, static_batch = _batch_size(flatten(first_input))
        require_same(state, cell.state_size, ("the initial state", "the cell's state_size"))
        state = map_leaves(_as_value, state)
        form, sizes, types = _emitted(cell, emit, state)
        arrays = [
            TensorArray(
                dtype,
                size=0,
                dynamic_size=True,
                element_shape=output_dims((static_batch,), size),
                name=f"rnn_output_{i}",
            )
            for i, (size, dtype) in enumerate(zip(sizes, types, strict=True))
        ]
        nothing = pack_as(
            form,
            [zeros(batch_shape(batch_size, s), t) for s, t in zip(sizes, types, strict=True)],
        )

        def body(
            time: Tensor, finished: Tensor, inputs: Any, arrays: Any, state: Any, loop_state: Any
        ) -> Any:
            output, cell_state = call_cell(cell, inputs, state)
            require_same(cell.output_size, output, ("the cell's output_size", "its output"))
            following = time + 1
            next_finished, next_input, next_state, emitted, next_loop_state = loop_fn(
                following, output, cell_state, loop_state
            )
            require_same(state, next_state, ("the state", "the next state of loop_fn"))
            require_same(inputs, next_input, ("the input", "the next input of loop_fn"))
            require_same(arrays, emitted, ("what the first loop_fn emits", "what a later one does"))
            next_state = copy_through(finished, state, map_leaves(_as_value, next_state))
            kept = copy_through(finished, nothing, map_leaves(_as_value, emitted))
            pairs = zip(flatten(arrays), flatten(kept), strict=True)
            arrays = pack_as(arrays, [array.write(time, value) for array, value in pairs])
            return (
                following,
                logical_or(finished, next_finished),
                next_input,
                arrays,
                next_state,
                loop_state if next_loop_state is None else next_loop_state,
            )

        *_, written, final_state, final_loop_state = while_loop(
            lambda time, finished, *_: logical_not(reduce_all(finished)),
            body,
            [start, finished, first_input, pack_as(form, arrays), state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return written, final_state, None if initial_loop_state is None else final_loop_state


def _emitted(cell: Any, emit: Any, state: Any) -> tuple[Any, list[Any], list[Any]]:
    """The form, sizes and types of what is emitted, without the batch."""
    if emit is None:
        sizes = flatten(cell.output_size)
        return cell.output_size, sizes, [flatten(state)[0].dtype.base_dtype] * len(sizes)
    leaves = [convert_to_tensor(leaf) for leaf in flatten(emit)]
    sizes = [x.shape if x.shape.is_fully_defined() else shape_of(x) for x in leaves]
    return emit, sizes, [leaf.dtype.base_dtype for leaf in leaves]


def _batch_size(flat: list[Tensor]) -> tuple[Any, int | None]:
    """The batch size as it will be, and as far as it is known."""
    known: int | None = None
    for leaf in flat:
        if leaf.dims == ():
            raise ValueError(f"The input {leaf.name} of raw_rnn has no axis for the batch")
        if leaf.dims is not None:
            (known,) = merge_dims((known,), leaf.dims[:1]) or (None,)
    return shape_of(flat[0])[0] if known is None else known, known


def _as_value(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorArray) else convert_to_tensor(leaf)
