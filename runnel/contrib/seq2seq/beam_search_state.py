"""What a beam search carries from step to step, and what it gives."""

from __future__ import annotations

from typing import Any, NamedTuple


class BeamSearchDecoderState(NamedTuple):
    """The hypotheses of a step; tensors are [batch, beam], the cell's state [batch, beam, ...].

    ``accumulated_attention_probs`` are the sums of the attention weights so far, or ``()``.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """A step's [batch, beam] scores, tokens, and which beam of the step before each continues."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The result: whole sequences, [batch, time, beam], the best first, and the steps' outputs."""

    predicted_ids: Any
    beam_search_decoder_output: Any
