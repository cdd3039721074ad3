"""``tf.nn.dynamic_rnn``: a cell in a loop over the time of its inputs."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.loop import while_loop
from runnel.control_flow.structure import flatten, map_leaves, pack_as
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import format_dims
from runnel.nn.rnn.sequence import (
    cache_variables,
    call_cell,
    initial_state_of,
    limited_step,
    output_dims,
    output_type,
    transpose_batch_time,
    zero_output_of,
)
from runnel.nn.rnn_cell.cell import require_cell
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.comparison import equal
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.reduce_functions import reduce_max
from runnel.variables.variable_scope import variable_scope


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Runs ``cell`` along ``inputs``; returns its outputs and its last state.

    ``inputs`` (a tensor or a structure of tensors) has shape [batch, time, ...], or with
    ``time_major`` [time, batch, ...], which saves two transpositions; so have the outputs. The
    number of steps is that of the inputs at run time. ``sequence_length`` (one integer for each
    member of the batch) ends sequences early: from there on outputs are 0 and the state stays.
    The state starts as ``initial_state``, or as zeros of type ``dtype``.

    Example:
        >>> x = tf.placeholder(tf.float32, [None, None, 3])
        >>> cell = tf.nn.rnn_cell.LSTMCell(8)
        >>> outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        >>> outputs.shape.as_list()
        [None, None, 8]
    """
    require_cell("cell", cell)
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        flat = [convert_to_tensor(leaf) for leaf in flatten(inputs)]
        if not time_major:
            flat = [transpose_batch_time(leaf) for leaf in flat]
        _check_inputs(flat)
        batch_size = best_effort_input_batch_size(flat)
        if sequence_length is not None:
            sequence_length = _lengths(sequence_length)
        state = initial_state_of(cell, initial_state, batch_size, dtype)
        if sequence_length is not None:
            sequence_length = _check_lengths(sequence_length, batch_size)
        outputs, final_state = _loop(
            cell,
            pack_as(inputs, flat),
            state,
            parallel_iterations or 32,
            swap_memory,
            sequence_length,
            output_type(dtype, state),
            batch_size,
        )
        if not time_major:
            outputs = map_leaves(transpose_batch_time, outputs)
        return outputs, final_state


def _loop(
    cell: Any,
    inputs: Any,
    state: Any,
    parallel_iterations: int,
    swap_memory: bool,
    lengths: Tensor | None,
    dtype: Any,
    batch_size: Any,
) -> tuple[Any, Any]:
    flat = flatten(inputs)
    sizes = flatten(cell.output_size)
    steps = shape_of(flat[0])[0]
    static_steps, static_batch = flat[0].dims[:2]
    state = map_leaves(_as_state, state)
    limit = steps
    zero_output = None
    if lengths is not None:
        zero_output = zero_output_of(cell, batch_size, static_batch, dtype)
        # At least one step, so that the gradient of an empty batch of sequences exists.
        limit = minimum(steps, maximum(1, reduce_max(lengths)))
    time = constant(0, dtype=int32, name="time")
    with name_scope("dynamic_rnn") as base:
        pass
    written = tuple(
        TensorArray(
            dtype,
            size=steps,
            element_shape=output_dims((static_batch,), size),
            tensor_array_name=f"{base}output_{i}",
        )
        for i, size in enumerate(sizes)
    )
    read = tuple(
        TensorArray(
            leaf.dtype,
            size=steps,
            element_shape=leaf.dims[1:],
            tensor_array_name=f"{base}input_{i}",
        ).unstack(leaf)
        for i, leaf in enumerate(flat)
    )

    def body(time: Tensor, arrays: tuple[TensorArray, ...], state: Any) -> Any:
        step_inputs = pack_as(inputs, [array.read(time) for array in read])
        skip_op_ids(_unlike_tensorflow(lengths, static_batch))
        if lengths is None:
            output, new_state = call_cell(cell, step_inputs, state)
        else:
            output, new_state = limited_step(
                lambda: call_cell(cell, step_inputs, state), time >= lengths, zero_output, state
            )
        leaves = flatten(output)
        if len(leaves) != len(arrays):
            raise ValueError(
                f"The cell's output_size has {len(arrays)} parts, but its output has {len(leaves)}"
            )
        arrays = tuple(a.write(time, leaf) for a, leaf in zip(arrays, leaves, strict=True))
        return time + 1, arrays, new_state

    _, written, final_state = while_loop(
        lambda time, *_: time < limit,
        body,
        (time, written, state),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
    )
    outputs = [array.stack() for array in written]
    for output, size in zip(outputs, sizes, strict=True):
        output.set_shape(output_dims((static_steps, static_batch), size))
    skip_op_ids(4 if None in (static_steps, static_batch) else 5)
    return pack_as(cell.output_size, outputs), final_state


def _unlike_tensorflow(lengths: Tensor | None, static_batch: int | None) -> int:
    """How many more operations than ours TensorFlow 1.15 makes before it calls the cell."""
    if lengths is None:
        return 25 if static_batch is None else 19
    if static_batch is None:
        return 18
    return 11 if lengths.dims is None or None in lengths.dims else 22


def _as_state(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorArray) else convert_to_tensor(leaf)


def _check_inputs(flat: list[Tensor]) -> None:
    """The inputs have shape [time, batch, ...], alike in the first two, known in the others."""
    first: Any = None
    for leaf in flat:
        dims = leaf.dims
        if dims is None or len(dims) < 3:
            raise ValueError(
                "The inputs of dynamic_rnn must have the shape [batch, time, depth] (with "
                f"time_major [time, batch, depth]), but {leaf.name} has shape "
                f"{format_dims(dims)}"
            )
        if None in dims[2:]:
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but "
                f"{leaf.name}, with the time first, has shape {format_dims(dims)}"
            )
        first = first or dims
        for what, one, other in zip(("time steps", "batch size"), first, dims, strict=False):
            if one != other:
                raise ValueError(
                    f"The inputs must have the same number of {what}, but there are {one} and "
                    f"{other} (of {leaf.name})"
                )


def best_effort_input_batch_size(flat_input: list[Tensor]) -> Any:
    """The size of the batch of inputs [time, batch, ...]: an integer if one of them tells it."""
    every = [leaf.dims for leaf in flat_input]
    known = [dims[1] for dims in every if dims and len(dims) > 1 and dims[1] is not None]
    return known[0] if known else shape_of(flat_input[0])[1]


def _lengths(given: Any) -> Tensor:
    lengths = cast(given, int32)
    if lengths.dims is not None and len(lengths.dims) != 1:
        raise ValueError(
            "sequence_length must be a vector of length batch_size, but it has shape "
            f"{format_dims(lengths.dims)}"
        )
    return identity(lengths, name="sequence_length")


def _check_lengths(lengths: Tensor, batch_size: Any) -> Tensor:
    """``lengths``, one for each member of the batch; checked at run time where it must be."""
    known = lengths.dims[0] if lengths.dims is not None else None
    if isinstance(batch_size, int) and known is not None:
        if known != batch_size:
            raise ValueError(
                f"sequence_length has {known} elements, but the batch has {batch_size} members"
            )
        return identity(lengths, name="CheckSeqLen")
    found = shape_of(lengths)[0]
    message = f"Expected shape for Tensor {lengths.name} is "
    check = Assert(equal(found, batch_size), [message, batch_size, " but saw shape: ", found])
    with control_dependencies([check]):
        return identity(lengths, name="CheckSeqLen")
