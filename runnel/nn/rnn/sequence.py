"""What the ways of running a cell along a sequence have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import colocate_with, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import Dims, as_dims
from runnel.nn.rnn_cell.batch_shape import batch_shape, static_batch_shape
from runnel.ops.array_shape import rank
from runnel.ops.fill import zeros
from runnel.ops.joining import concat
from runnel.ops.ranges import range as range_of
from runnel.ops.selection import where
from runnel.ops.transposition import transpose
from runnel.variables.variable_scope import VariableScope


def cache_variables(scope: VariableScope) -> None:
    """Has the variables of ``scope`` read once, not at every step.

    Within a loop that is out of the question: a value read outside it may have changed.
    """
    context = get_default_graph()._get_control_flow_context()
    in_loop = context is not None and context.GetWhileContext() is not None
    if scope.caching_device is None and not in_loop:
        scope.set_caching_device(_device_of)


def _device_of(op: Operation) -> str:
    return op.device


def transpose_batch_time(x: Tensor) -> Tensor:
    """``x`` with its first two axes, batch and time, exchanged."""
    dims = x.dims
    if dims is None:
        return transpose(x, concat([[1, 0], range_of(2, rank(x))], 0))
    if len(dims) < 2:
        return x
    skip_op_ids(6)  # the permutation, as a range that is joined
    return transpose(x, [1, 0, *range(2, len(dims))])


def initial_state_of(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    """``initial_state`` if given; otherwise the cell's own, which needs a ``dtype``."""
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def output_type(dtype: Any, state: Any) -> Any:
    """The type of the outputs: ``dtype`` if given, otherwise that of the state."""
    if dtype is not None:
        return as_dtype(dtype)
    found = {leaf.dtype.base_dtype for leaf in flatten(state)}
    if len(found) != 1:
        raise ValueError(
            "The type of the outputs is not clear from the state, whose parts are of type "
            f"{sorted(kind.name for kind in found) or 'none'}; give dtype"
        )
    return found.pop()


def zero_output_of(cell: Any, batch_size: Any, static_batch: int | None, dtype: Any) -> Any:
    """Zeros in the form of the cell's outputs."""
    made = []
    for size in flatten(cell.output_size):
        tensor = zeros(batch_shape(batch_size, size), dtype)
        tensor.set_shape(static_batch_shape(static_batch, size))
        made.append(tensor)
    return pack_as(cell.output_size, made)


def output_dims(leading: tuple[int | None, ...], size: Any) -> Dims:
    """The static shape of an output with ``leading`` dimensions before its size."""
    if isinstance(size, Tensor):
        value = constant_value(size)
        if value is None:
            return None
        rest: Dims = tuple(int(d) for d in value.reshape(-1))
    else:
        rest = as_dims(size)
    return None if rest is None else leading + rest


def call_cell(cell: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
    """One step of ``cell``, whose new state must look like its state."""
    output, new_state = cell(inputs, state)
    require_same(state, new_state, ("the state given to the cell", "the state that it returns"))
    return output, new_state


def copy_through(finished: Tensor, old: Any, new: Any) -> Any:
    """``new``, but ``old`` for the members of the batch that are ``finished``."""

    def chosen(one: Any, other: Any) -> Any:
        # Neither has an axis for the batch.
        if isinstance(one, TensorArray) or one.dims == ():
            return other
        with colocate_with(other):
            kept = where(finished, one, other)
        kept.set_shape(one.dims)
        return kept

    pairs = zip(flatten(old), flatten(new), strict=True)
    return pack_as(old, [chosen(one, other) for one, other in pairs])


def limited_step(
    step: Callable[[], tuple[Any, Any]], finished: Tensor, zero_output: Any, state: Any
) -> tuple[Any, Any]:
    """A step whose outputs are 0, and whose states stay, where the sequence is ``finished``."""
    output, new_state = step()
    require_same(zero_output, output, ("the cell's output_size", "its output"))
    return copy_through(finished, zero_output, output), copy_through(finished, state, new_state)
