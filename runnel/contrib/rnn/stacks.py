"""Bidirectional networks on top of one another, each reading the joined outputs of the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.nn.rnn.bidirectional import bidirectional_dynamic_rnn, static_bidirectional_rnn
from runnel.ops.joining import concat
from runnel.variables.variable_scope import variable_scope


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Sequence[Any],
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:
    """A stack of ``static_bidirectional_rnn``, one for each pair of cells.

    Returns the list of the top layer's outputs, both directions joined, and the layers' last
    states, forward and backward.
    """
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    layer = list(inputs)
    states_fw, states_bw = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{i}"):
                layer, state_fw, state_bw = static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    _at(initial_states_fw, i),
                    _at(initial_states_bw, i),
                    dtype,
                    sequence_length,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """A stack of ``bidirectional_dynamic_rnn``, one for each pair of cells.

    Returns the top layer's outputs, both directions joined, and the layers' last states, forward
    and backward.
    """
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    layer = inputs
    states_fw, states_bw = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    sequence_length=sequence_length,
                    initial_state_fw=_at(initial_states_fw, i),
                    initial_state_bw=_at(initial_states_bw, i),
                    dtype=dtype,
                    parallel_iterations=parallel_iterations,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                layer = concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)


def _check(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
    for what, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not isinstance(cells, list | tuple):
            raise ValueError(f"cells_{what} must be a list of cells (one per layer), not {cells!r}")
        if not cells:
            raise ValueError(f"Must specify at least one {what} cell for BidirectionalRNN.")
    if len(cells_fw) != len(cells_bw):
        raise ValueError(
            f"There are {len(cells_fw)} forward and {len(cells_bw)} backward cells; each layer "
            "needs one of both"
        )
    for what, states in (("fw", states_fw), ("bw", states_bw)):
        if states is not None and len(states) != len(cells_fw):
            raise ValueError(
                f"initial_states_{what} must have a state for each of the {len(cells_fw)} layers, "
                f"not {len(states)}"
            )


def _at(states: Sequence[Any] | None, layer: int) -> Any:
    return None if states is None else states[layer]
