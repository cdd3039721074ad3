"""``tf.nn.static_rnn``: a cell applied to a list of inputs, one copy of it for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.control_flow.structure import flatten, is_nested, map_leaves, pack_as
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import control_dependencies
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.nn.rnn.sequence import (
    cache_variables,
    call_cell,
    initial_state_of,
    limited_step,
    output_type,
    zero_output_of,
)
from runnel.nn.rnn_cell.cell import require_cell
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import greater_equal
from runnel.ops.control import identity
from runnel.variables.variable_scope import variable_scope


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs ``cell`` along a list of inputs; returns the list of its outputs and its last state.

    Each input is a tensor (or a structure of tensors) of shape [batch, ...]. With
    ``sequence_length`` the outputs are 0, and the state stays, from the end of each sequence on.
    The graph has a copy of the cell for each input; ``tf.nn.dynamic_rnn`` has one, in a loop.

    Example:
        >>> x = tf.placeholder(tf.float32, [None, 5, 3])
        >>> cell = tf.nn.rnn_cell.GRUCell(8)
        >>> outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
        >>> len(outputs)
        5
    """
    require_cell("cell", cell)
    require_list(inputs)
    with variable_scope(scope or "rnn") as opened:
        cache_variables(opened)
        inputs = [map_leaves(convert_to_tensor, step) for step in inputs]
        static_batch, batch_size = _batch_size(flatten(inputs))
        state = initial_state_of(cell, initial_state, batch_size, dtype)
        state = map_leaves(convert_to_tensor, state)
        zero_output = None
        if sequence_length is not None:
            lengths = _lengths(sequence_length, static_batch)
            made_type = output_type(dtype, state)
            zero_output = zero_output_of(cell, batch_size, static_batch, made_type)
        outputs = []
        for time, step in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            if sequence_length is None:
                output, state = call_cell(cell, step, state)
            else:
                output, state = limited_step(
                    lambda step=step, state=state: call_cell(cell, step, state),  # type: ignore[misc]
                    greater_equal(time, lengths),
                    zero_output,
                    state,
                )
            outputs.append(output)
        return outputs, state


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs ``cell`` from a state that was saved, along a list of inputs, and saves the last one.

    ``state_saver`` has the methods ``state(name)``, which gives a state's tensor, and
    ``save_state(name, value)``, which gives an operation that keeps it. ``state_name`` is a name,
    or a structure of names like the cell's ``state_size``.
    """
    sizes = cell.state_size
    if is_nested(sizes) != is_nested(state_name):
        raise ValueError(
            "state_name should be the same type as cell.state_size: they are "
            f"{state_name} and {sizes}"
        )
    names = flatten(state_name)
    if len(names) != len(flatten(sizes)):
        raise ValueError(
            f"state_name has {len(names)} names, but the cell's state has {len(flatten(sizes))} "
            "parts"
        )
    initial = pack_as(sizes, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(
        cell, inputs, initial_state=initial, sequence_length=sequence_length, scope=scope
    )
    saved = [state_saver.save_state(n, x) for n, x in zip(names, flatten(state), strict=True)]
    # Who uses the last output or the state has the state saved.
    with control_dependencies(saved):
        outputs[-1] = map_leaves(identity, outputs[-1])
        return outputs, map_leaves(identity, state)


def require_list(inputs: Any) -> None:
    """The inputs of an unrolled network: a list with a member for each step."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(
            f"inputs must be a list with an entry for each step, not {inputs!r}; tf.unstack makes "
            "one of a tensor"
        )
    if not inputs:
        raise ValueError("inputs must not be empty")


def _batch_size(flat: list[Tensor]) -> tuple[int | None, Any]:
    """The batch size as far as it is known, and as it will be."""
    known: int | None = None
    for leaf in flat:
        dims = leaf.dims
        if not dims:
            raise ValueError(
                f"The inputs must have the shape [batch, depth], but {leaf.name} has shape "
                f"{format_dims(dims)}"
            )
        if None in dims[1:]:
            raise ValueError(
                f"The size of input {leaf.name} must be known, but its shape is {format_dims(dims)}"
            )
        if known is not None and dims[0] not in (None, known):
            raise ValueError(
                f"The inputs must have one batch size, but there are {known} and {dims[0]} (of "
                f"{leaf.name})"
            )
        known = dims[0] if known is None else known
    return known, shape_of(flat[0])[0] if known is None else known


def _lengths(given: Any, batch_size: int | None) -> Tensor:
    lengths = convert_to_tensor(given, name="sequence_length")
    if lengths.dims is not None and len(lengths.dims) != 1:
        raise ValueError(
            "sequence_length must be a vector of length batch_size, but it has shape "
            f"{format_dims(lengths.dims)}"
        )
    if batch_size is not None and lengths.dims is not None:
        if lengths.dims[0] not in (None, batch_size):
            raise ValueError(
                f"sequence_length has {lengths.dims[0]} elements, but the batch has {batch_size} "
                "members"
            )
    return cast(lengths, int32)
