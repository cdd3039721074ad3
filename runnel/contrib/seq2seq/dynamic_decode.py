"""``dynamic_decode``: runs a decoder until all its sequences are finished."""

from __future__ import annotations

from typing import Any

from runnel.contrib.seq2seq.decoder import Decoder
from runnel.contrib.seq2seq.time_axis import swap_batch_and_time
from runnel.control_flow.loop import while_loop
from runnel.control_flow.structure import flatten, map_leaves, pack_as, require_same
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, as_dims, compatible_dims, format_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.comparison import greater_equal, logical_not, logical_or
from runnel.ops.constants import constant
from runnel.ops.fill import fill, zeros, zeros_like
from runnel.ops.reduce_functions import reduce_all
from runnel.ops.selection import where
from runnel.variables.variable_scope import variable_scope


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Steps through ``decoder`` until its sequences are finished.

    Returns ``(outputs, final_state, sequence_lengths)``; the outputs are [batch, time, ...], or
    [time, batch, ...] with ``output_time_major``. With ``impute_finished`` a finished sequence's
    outputs are zeros and its state stays as it was: needed where the final state or outputs beyond
    a sequence's end are used. ``maximum_iterations`` limits the steps. Variables are in the scope
    "decoder" unless ``scope`` names another.

    Example:
        >>> outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(
        ...     decoder, maximum_iterations=20)
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder).__name__}")
    if impute_finished and decoder.tracks_own_finished:
        raise ValueError(
            "impute_finished=True does not go with a decoder that keeps account itself of what is "
            "finished, such as BeamSearchDecoder: its finished beams stay as they are anyway"
        )
    with variable_scope(scope, "decoder"):
        limit = _as_limit(maximum_iterations)
        finished, inputs, state = decoder.initialize()
        finished = convert_to_tensor(finished, name="finished")
        inputs, state = map_leaves(_as_loop_value, inputs), map_leaves(_as_loop_value, state)
        if limit is not None:
            finished = logical_or(finished, greater_equal(constant(0), limit))
        sizes, types = decoder.output_size, flatten(decoder.output_dtype)
        batch = convert_to_tensor(decoder.batch_size, dtype=int32, name="batch_size")
        zero_outputs = pack_as(
            sizes,
            [_zero_output(s, t, batch) for s, t in zip(flatten(sizes), types, strict=True)],
        )
        arrays = map_leaves(_output_array, zero_outputs)

        def body(
            time: Tensor, arrays: Any, state: Any, inputs: Any, finished: Tensor, lengths: Tensor
        ) -> Any:
            outputs, next_state, next_inputs, step_finished = decoder.step(time, inputs, state)
            outputs = map_leaves(convert_to_tensor, outputs)
            step_finished = convert_to_tensor(step_finished)
            if decoder.tracks_own_finished:
                next_finished = step_finished
            else:
                next_finished = logical_or(step_finished, finished)
            next_lengths = where(logical_not(finished), fill(shape_of(lengths), time + 1), lengths)
            require_same(state, next_state, ("the state", "the next state of decoder.step"))
            require_same(arrays, outputs, ("decoder.output_size", "the outputs of decoder.step"))
            require_same(inputs, next_inputs, ("the inputs", "the next inputs of decoder.step"))
            if impute_finished:
                outputs = _map_pairs(
                    lambda out, zero: where(finished, zero, out), outputs, zero_outputs
                )
                next_state = _map_pairs(
                    lambda new, old: _unless_finished(finished, new, old), next_state, state
                )
            next_state = _map_pairs(_with_shape_of, next_state, state)
            next_inputs = _map_pairs(_with_shape_of, next_inputs, inputs)
            arrays = _map_pairs(lambda array, out: array.write(time, out), arrays, outputs)
            return time + 1, arrays, next_state, next_inputs, next_finished, next_lengths

        variables = (
            constant(0, name="time"),
            arrays,
            state,
            inputs,
            finished,
            zeros_like(finished, dtype=int32),
        )
        _, arrays, final_state, _, _, lengths = while_loop(
            lambda time, arrays, state, inputs, finished, lengths: logical_not(
                reduce_all(finished)
            ),
            body,
            variables,
            parallel_iterations=parallel_iterations,
            maximum_iterations=limit,
            swap_memory=swap_memory,
        )
        outputs = map_leaves(lambda array: array.stack(), arrays)
        outputs, final_state = decoder.finalize(outputs, final_state, lengths)
        if not output_time_major:
            outputs = map_leaves(swap_batch_and_time, outputs)
        return outputs, final_state, lengths


def _as_limit(maximum_iterations: Any) -> Tensor | None:
    if maximum_iterations is None:
        return None
    limit = convert_to_tensor(maximum_iterations, dtype=int32, name="maximum_iterations")
    if limit.dims not in ((), None):
        raise ValueError(f"maximum_iterations must be a scalar, not {format_dims(limit.dims)}")
    return limit


def _as_loop_value(value: Any) -> Any:
    return value if isinstance(value, TensorArray) else convert_to_tensor(value)


def _zero_output(size: Any, dtype: Any, batch: Tensor) -> Tensor:
    dims = as_dims(size)
    if dims is None or None in dims:
        raise ValueError(
            f"The shapes in decoder.output_size must be known, but one is {format_dims(dims)}; an "
            "output_layer tells its own through compute_output_shape"
        )
    made = zeros([batch, *dims], dtype=dtype)
    known = constant_value(batch)
    made.set_shape((None if known is None else int(known), *dims))
    return made


def _output_array(zero: Tensor) -> TensorArray:
    return TensorArray(zero.dtype, size=0, dynamic_size=True, element_shape=TensorShape(zero.dims))


def _map_pairs(function: Any, one: Any, other: Any) -> Any:
    pairs = zip(flatten(one), flatten(other), strict=True)
    return pack_as(one, [function(a, b) for a, b in pairs])


def _unless_finished(finished: Tensor, new: Any, old: Any) -> Any:
    """The new state of the sequences that were not finished."""
    if isinstance(old, TensorArray):
        return new
    new = convert_to_tensor(new)
    if old.dims == ():  # such as the time: it belongs to no sequence
        return new
    return where(finished, old, new)


def _with_shape_of(new: Any, old: Any) -> Any:
    """A step keeps shapes, also where its operations do not know it."""
    if isinstance(old, TensorArray):
        return new
    new = convert_to_tensor(new)
    if compatible_dims(new.dims, old.dims):
        new.set_shape(old.dims)
    return new
