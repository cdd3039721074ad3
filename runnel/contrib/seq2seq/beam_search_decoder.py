"""``BeamSearchDecoder``: keeps the best few hypotheses of each step."""

from __future__ import annotations

from typing import Any

from runnel.contrib.seq2seq.basic_decoder import require_output_layer
from runnel.contrib.seq2seq.beam_layout import (
    after_selection,
    gather_tree_from_array,
    merge_beams,
    split_beams,
)
from runnel.contrib.seq2seq.beam_score import attention_probs_of
from runnel.contrib.seq2seq.beam_search_state import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
)
from runnel.contrib.seq2seq.beam_search_step import beam_search_step
from runnel.contrib.seq2seq.decoder import Decoder
from runnel.contrib.seq2seq.embedding_helper import as_embedding_function
from runnel.control_flow.conditional import cond
from runnel.control_flow.structure import flatten, map_leaves
from runnel.control_flow.tensor_array import TensorArray
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_, int32, int64
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, format_dims
from runnel.nn.rnn_cell.cell import require_cell
from runnel.ops.array_shape import expand_dims, size
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.assertions import assert_equal
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.fill import zeros, zeros_like
from runnel.ops.gather_tree import gather_tree
from runnel.ops.one_hot import one_hot
from runnel.ops.padding import tile
from runnel.ops.reduce_functions import reduce_all, reduce_max


class BeamSearchDecoder(Decoder):
    """A search for likely sequences, of which each step keeps the best ``beam_width``.

    What the cell takes from an encoder must be tiled first (:func:`tile_batch`): the memory of an
    attention mechanism, its lengths and ``initial_state``. Scores are log-probabilities divided by
    ``((5 + length) / 6) ** length_penalty_weight``, plus ``coverage_penalty_weight`` times the
    log of what has been attended to, once a hypothesis has ended. ``reorder_tensor_arrays`` sorts
    TensorArrays of the final state (the history of alignments) along the hypotheses; they come
    back as tensors.

    The outputs of :func:`dynamic_decode` are a :class:`FinalBeamSearchDecoderOutput`; each
    hypothesis's length is in the final state's ``lengths``.

    Example:
        >>> decoder = tf.contrib.seq2seq.BeamSearchDecoder(
        ...     cell, table, tf.fill([batch], GO), EOS, tiled_state, beam_width=5,
        ...     output_layer=projection, length_penalty_weight=0.6)
        >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=30)
        >>> best = outputs.predicted_ids[:, :, 0]
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        require_cell("cell", cell)
        require_output_layer(output_layer)
        if not isinstance(beam_width, int) or beam_width < 1:
            raise ValueError(f"beam_width must be a positive integer, not {beam_width!r}")
        self._cell = cell
        self._output_layer = output_layer
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._embedding_fn = as_embedding_function(embedding)
        tokens = convert_to_tensor(start_tokens, dtype=int32, name="start_tokens")
        if tokens.dims is None or len(tokens.dims) != 1:
            raise ValueError(f"start_tokens must be a vector, not {format_dims(tokens.dims)}")
        self._end_token = convert_to_tensor(end_token, dtype=int32, name="end_token")
        if self._end_token.dims != ():
            raise ValueError(f"end_token must be a scalar, not {format_dims(self._end_token.dims)}")
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        # A number where it is known: shapes inside the search are then constants.
        batch = tokens.dims[0]
        self._batch_size: Any = size(tokens) if batch is None else batch
        self._static_batch_size = batch
        self._start_inputs = self._embedding_fn(tile(expand_dims(tokens, 1), [1, beam_width]))
        self._dtype = flatten(initial_state)[0].dtype.base_dtype
        self._initial_cell_state = map_leaves(
            lambda s: self._split(self._checked(s)), initial_state
        )

    def _checked(self, value: Any) -> Any:
        """A part of the initial state, whose first axis must be the batch times the beam width."""
        if isinstance(value, TensorArray):
            return value
        tensor = convert_to_tensor(value)
        if not tensor.dims:
            return tensor
        rows, batch = tensor.dims[0], self._static_batch_size
        message = (
            f"The initial state {tensor.name} must have one row for each of {self._beam_width} "
            "beams of each start token: apply tf.contrib.seq2seq.tile_batch to what comes from the "
            "encoder, with multiplier=beam_width, and use batch_size * beam_width in zero_state"
        )
        if rows is not None and batch is not None:
            if rows != batch * self._beam_width:
                raise ValueError(f"{message}. It has {rows} rows for {batch} start tokens.")
            return tensor
        expected = self._batch_size * self._beam_width
        with control_dependencies([assert_equal(shape_of(tensor)[0], expected, message=message)]):
            return identity(tensor)

    def _split(self, value: Any) -> Any:
        return split_beams(value, self._batch_size, self._beam_width)

    def _merge(self, value: Any) -> Any:
        return merge_beams(value, self._batch_size, self._beam_width)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        width = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(scores=width, predicted_ids=width, parent_ids=width)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(scores=self._dtype, predicted_ids=int32, parent_ids=int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """One hypothesis for each sequence: the other beams begin finished and impossible."""
        first = zeros([self._batch_size], dtype=int32)
        width = self._beam_width
        finished = one_hot(first, width, on_value=False, off_value=True, dtype=bool_)
        log_probs = one_hot(first, width, on_value=0.0, off_value=-float("inf"), dtype=self._dtype)
        weights = attention_probs_of(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=finished,
            lengths=zeros_like(finished, dtype=int64),
            accumulated_attention_probs=() if weights is None else zeros_like(weights),
        )
        return finished, self._start_inputs, state

    def step(
        self, time: Tensor, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            cell_state = map_leaves(self._merge, state.cell_state)
            outputs, cell_state = self._cell(map_leaves(self._merge, inputs), cell_state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            step_outputs, next_state = beam_search_step(
                logits=self._split(outputs),
                next_cell_state=map_leaves(self._split, cell_state),
                beam_state=state,
                batch_size=self._batch_size,
                beam_width=self._beam_width,
                end_token=self._end_token,
                length_penalty_weight=self._length_penalty_weight,
                coverage_penalty_weight=self._coverage_penalty_weight,
            )
            next_inputs = cond(
                reduce_all(next_state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(step_outputs.predicted_ids),
            )
        return step_outputs, next_state, next_inputs, next_state.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        longest = cast(reduce_max(final_state.lengths, axis=1), int32)
        predicted = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            sorted_state = map_leaves(
                lambda s: self._along_hypotheses(s, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=sorted_state)
        return FinalBeamSearchDecoderOutput(predicted, outputs), final_state

    def _along_hypotheses(self, value: Any, parent_ids: Tensor, lengths: Tensor) -> Any:
        """A TensorArray of [batch * beam, ...] elements as a tensor, sorted; others unchanged."""
        if not isinstance(value, TensorArray):
            return value
        element = value.element_shape
        rows, batch = (element[0].value if element.ndims else None), self._static_batch_size
        wrong = rows is not None and batch is not None and rows != batch * self._beam_width
        if not element.ndims or wrong:
            return value
        # TensorFlow 1.15 leaves this selection out: its history is that of other hypotheses.
        written = after_selection(value.stack(), parent_ids)
        return gather_tree_from_array(written, parent_ids, lengths)
