"""The score of a hypothesis: its log-probability with penalties for length and coverage.

Wu et al. (2016), "Google's Neural Machine Translation System", section 7.
"""

from __future__ import annotations

from typing import Any

from runnel.contrib.seq2seq.attention_wrapper_state import AttentionWrapperState
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import add_n, minimum
from runnel.ops.arithmetic import pow as power
from runnel.ops.array_shape import expand_dims
from runnel.ops.casting import cast
from runnel.ops.comparison import greater
from runnel.ops.elementwise import log
from runnel.ops.fill import ones_like
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.selection import where


def length_penalty(sequence_lengths: Any, penalty_factor: Any, dtype: Any = "float32") -> Any:
    """``((5 + length) / 6) ** penalty_factor``, by which log-probabilities are divided."""
    factor = convert_to_tensor(penalty_factor, dtype=dtype, name="penalty_factor")
    _require_scalar(factor, "penalty_weight")
    if _is_zero(factor):
        return 1.0
    return power((5.0 + cast(sequence_lengths, dtype)) / 6.0, factor)


def scores_of(
    log_probs: Tensor,
    sequence_lengths: Tensor,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
    finished: Tensor,
    accumulated_attention_probs: Tensor | None = None,
) -> Tensor:
    """Scores of [batch, beam, vocabulary] continuations.

    ``accumulated_attention_probs`` are [batch, beam, places] sums of the weights so far: what a
    hypothesis that was ``finished`` [batch, beam] has not looked at counts against it.
    """
    dtype = log_probs.dtype.base_dtype
    penalty = length_penalty(sequence_lengths, length_penalty_weight, dtype)
    scores = log_probs if isinstance(penalty, float) else log_probs / penalty
    weight = convert_to_tensor(coverage_penalty_weight, dtype=dtype, name="coverage_weight")
    _require_scalar(weight, "coverage_penalty_weight")
    if _is_zero(weight) or accumulated_attention_probs is None:
        return scores
    # Places without any weight are those beyond a memory's end; their logarithm would make every
    # hypothesis impossible, as it does in TensorFlow 1.15.
    seen = accumulated_attention_probs
    counted = where(greater(seen, 0.0), minimum(seen, 1.0), ones_like(seen))
    coverage = reduce_sum(log(counted), 2) * cast(finished, dtype)
    return scores + expand_dims(coverage, 2) * weight


def attention_probs_of(cell_state: Any, coverage_penalty_weight: Any) -> Tensor | None:
    """The weights of the memory's places in a cell's state; the mean, if there are several."""
    if _is_zero(convert_to_tensor(coverage_penalty_weight)):
        return None
    found = _attention_probs(cell_state)
    return _mean(found) if found else None


def _attention_probs(state: Any) -> list[Tensor]:
    if isinstance(state, AttentionWrapperState):
        several = isinstance(state.alignments, tuple)
        return [_mean(list(state.alignments)) if several else state.alignments]
    if isinstance(state, tuple | list):
        return [probs for part in state for probs in _attention_probs(part)]
    return []


def _mean(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else add_n(tensors) / float(len(tensors))


def _is_zero(weight: Tensor) -> bool:
    known = constant_value(weight)
    return known is not None and float(known) == 0.0


def _require_scalar(weight: Tensor, name: str) -> None:
    if weight.dims != ():
        raise ValueError(f"{name} should be a scalar, but saw shape: {format_dims(weight.dims)}")
