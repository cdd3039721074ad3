"""One step of a beam search: of all continuations of all hypotheses, the best."""

from __future__ import annotations

from typing import Any

from runnel.contrib.seq2seq.beam_layout import select_beams
from runnel.contrib.seq2seq.beam_score import attention_probs_of, scores_of
from runnel.contrib.seq2seq.beam_search_state import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
)
from runnel.control_flow.structure import map_leaves
from runnel.graph.dtypes import int32, int64
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, logical_not, logical_or
from runnel.ops.gather import gather
from runnel.ops.one_hot import one_hot
from runnel.ops.selection import where_v2
from runnel.ops.softmax import log_softmax
from runnel.ops.top_k import top_k


def beam_search_step(
    logits: Tensor,
    next_cell_state: Any,
    beam_state: BeamSearchDecoderState,
    batch_size: Any,
    beam_width: int,
    end_token: Tensor,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    """The best ``beam_width`` continuations, given [batch, beam, vocabulary] logits."""
    known = logits.dims[-1] if logits.dims else None
    vocabulary = shape_of(logits)[-1] if known is None else known
    finished = beam_state.finished
    log_probs = _of_unfinished(log_softmax(logits), finished, end_token, vocabulary)
    total = expand_dims(beam_state.log_probs, 2) + log_probs
    accumulated = _accumulated_attention(next_cell_state, beam_state, coverage_penalty_weight)
    scores = scores_of(
        total,
        _lengths_of_continuations(beam_state, end_token, vocabulary),
        length_penalty_weight,
        coverage_penalty_weight,
        finished,
        accumulated,
    )
    best_scores, best = top_k(reshape(scores, [batch_size, -1]), beam_width)
    static_batch = logits.dims[0] if logits.dims else None
    for tensor in (best_scores, best):
        tensor.set_shape((static_batch, beam_width))
    words, beams = best % vocabulary, best // vocabulary
    was_finished = select_beams(finished, beams)
    next_state = BeamSearchDecoderState(
        cell_state=map_leaves(lambda s: select_beams(s, beams), next_cell_state),
        log_probs=gather(reshape(total, [batch_size, -1]), best, axis=1, batch_dims=1),
        finished=logical_or(was_finished, equal(words, end_token)),
        lengths=select_beams(beam_state.lengths, beams) + cast(logical_not(was_finished), int64),
        accumulated_attention_probs=(
            () if accumulated is None else select_beams(accumulated, beams)
        ),
    )
    output = BeamSearchDecoderOutput(
        scores=best_scores, predicted_ids=cast(words, int32), parent_ids=cast(beams, int32)
    )
    return output, next_state


def _of_unfinished(
    log_probs: Tensor, finished: Tensor, end_token: Tensor, vocabulary: Any
) -> Tensor:
    """A finished hypothesis continues with the end token only, at no cost."""
    dtype = log_probs.dtype.base_dtype
    only_end = one_hot(end_token, vocabulary, on_value=0.0, off_value=dtype.min, dtype=dtype)
    return where_v2(expand_dims(finished, 2), only_end, log_probs)


def _lengths_of_continuations(
    state: BeamSearchDecoderState, end_token: Tensor, vocabulary: Any
) -> Tensor:
    """[batch, beam, vocabulary] lengths: a token makes a hypothesis longer, the end does not."""
    longer = one_hot(end_token, vocabulary, on_value=0, off_value=1, dtype=int64)
    growing = expand_dims(cast(logical_not(state.finished), int64), 2)
    return expand_dims(state.lengths, 2) + growing * longer


def _accumulated_attention(
    cell_state: Any, beam_state: BeamSearchDecoderState, coverage_penalty_weight: Any
) -> Tensor | None:
    weights = attention_probs_of(cell_state, coverage_penalty_weight)
    if weights is None:
        return None
    growing = cast(logical_not(beam_state.finished), weights.dtype.base_dtype)
    return beam_state.accumulated_attention_probs + weights * expand_dims(growing, 2)
