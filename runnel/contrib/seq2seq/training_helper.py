"""``TrainingHelper``: a decoder is fed the sequences that it should have produced."""

from __future__ import annotations

from typing import Any

from runnel.contrib.seq2seq.helper import Helper
from runnel.contrib.seq2seq.time_axis import swap_batch_and_time
from runnel.control_flow.conditional import cond
from runnel.control_flow.structure import flatten, map_leaves
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, format_dims
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.array_shape import size
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, greater_equal
from runnel.ops.fill import zeros_like
from runnel.ops.reduce_functions import reduce_all


class TrainingHelper(Helper):
    """Reads the inputs, whatever the decoder's outputs; its samples are the largest outputs.

    ``inputs`` is a structure of [batch, time, ...] tensors ([time, batch, ...] with
    ``time_major``), ``sequence_length`` a vector of integers.

    Example:
        >>> helper = tf.contrib.seq2seq.TrainingHelper(embedded_targets, target_lengths)
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "TrainingHelper", [*flatten(inputs), sequence_length]):
            inputs = map_leaves(lambda x: convert_to_tensor(x, name="inputs"), inputs)
            self._inputs = inputs
            self._input_arrays = map_leaves(lambda x: unstack_in_time(x, time_major), inputs)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.dims is None or len(self._sequence_length.dims) != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{format_dims(self._sequence_length.dims)}"
                )
            self._zero_inputs = map_leaves(
                lambda x: zeros_like(x[0] if time_major else x[:, 0]), inputs
            )
            self._batch_size = size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        return self._sequence_length

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, "TrainingHelperInitialize"):
            finished = equal(self._sequence_length, 0)
            return finished, self._inputs_at(convert_to_tensor(0), reduce_all(finished))

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "TrainingHelperSample", [time, outputs]):
            return argmax(outputs, axis=-1, output_type=int32)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "TrainingHelperNextInputs", [time, outputs]):
            following = time + 1
            lengths = self._sequence_length
            finished = greater_equal(cast(following, lengths.dtype.base_dtype), lengths)
            return finished, self._inputs_at(following, reduce_all(finished)), state

    def _inputs_at(self, time: Tensor, all_finished: Tensor) -> Any:
        """The inputs of a step; zeros when no sequence reaches it."""
        return cond(
            all_finished,
            lambda: self._zero_inputs,
            lambda: map_leaves(lambda array: array.read(time), self._input_arrays),
        )


def unstack_in_time(x: Tensor, time_major: bool) -> TensorArray:
    """A TensorArray of the steps of ``x``."""
    if x.dims is not None and len(x.dims) < 2:
        raise ValueError(
            f"The inputs must be at least [batch, time], but {x.name} has the shape "
            f"{format_dims(x.dims)}"
        )
    steps = x if time_major else swap_batch_and_time(x)
    element = None if steps.dims is None else TensorShape(steps.dims[1:])
    return TensorArray(steps.dtype, size=shape_of(steps)[0], element_shape=element).unstack(steps)
