"""Recurrent networks that read a sequence in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.control_flow.structure import flatten, map_leaves, pack_as
from runnel.nn.rnn.dynamic import dynamic_rnn
from runnel.nn.rnn.static import require_list, static_rnn
from runnel.nn.rnn_cell.cell import require_cell
from runnel.ops.joining import concat, stack
from runnel.ops.reversal import reverse, reverse_sequence
from runnel.ops.splitting import unstack
from runnel.variables.variable_scope import variable_scope


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Runs one cell along ``inputs`` and another backwards; see :func:`dynamic_rnn`.

    Returns ``(outputs_fw, outputs_bw), (state_fw, state_bw)``: the outputs at each place of the
    sequence, to be joined with ``tf.concat(outputs, 2)``. With ``sequence_length`` the second cell
    starts at the end of each sequence.

    Example:
        >>> x = tf.placeholder(tf.float32, [2, 5, 3])
        >>> forward, backward = tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.GRUCell(4)
        >>> outputs, _ = tf.nn.bidirectional_dynamic_rnn(forward, backward, x, dtype=tf.float32)
        >>> tf.concat(outputs, 2).shape.as_list()
        [2, 5, 8]
    """
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def backwards(x: Any) -> Any:
        if sequence_length is None:
            return reverse(x, axis=[time_axis])
        return reverse_sequence(x, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    options: dict[str, Any] = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "time_major": time_major,
    }
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            output_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=fw_scope, **options
            )
        with variable_scope("bw") as bw_scope:
            reversed_output, state_bw = dynamic_rnn(
                cell_bw,
                map_leaves(backwards, inputs),
                initial_state=initial_state_bw,
                scope=bw_scope,
                **options,
            )
    output_bw = map_leaves(backwards, reversed_output)
    return (output_fw, output_bw), (state_fw, state_bw)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Runs one cell along a list of inputs and another backwards; see :func:`static_rnn`.

    Returns the outputs of both, joined at each step, and the two last states.
    """
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    require_list(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            output_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=fw_scope
            )
        with variable_scope("bw") as bw_scope:
            reversed_inputs = _reverse_list(inputs, sequence_length)
            reversed_output, state_bw = static_rnn(
                cell_bw, reversed_inputs, initial_state_bw, dtype, sequence_length, scope=bw_scope
            )
    output_bw = _reverse_list(reversed_output, sequence_length)
    pairs = zip(flatten(output_fw), flatten(output_bw), strict=True)
    joined = [concat([forward, backward], 1) for forward, backward in pairs]
    return pack_as(output_fw, joined), state_fw, state_bw


def _reverse_list(steps: Sequence[Any], lengths: Any) -> list[Any]:
    """The steps from the last to the first; with ``lengths``, within each sequence."""
    if lengths is None:
        return list(reversed(steps))
    columns = zip(*(flatten(step) for step in steps), strict=True)
    turned = [
        unstack(reverse_sequence(stack(column), lengths, seq_axis=0, batch_axis=1))
        for column in columns
    ]
    rows = zip(*turned, strict=True)
    return [pack_as(step, list(row)) for step, row in zip(steps, rows, strict=True)]
