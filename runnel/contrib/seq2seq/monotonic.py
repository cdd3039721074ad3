"""Monotonic attention (Raffel et al., 2017): weights that only move forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.control_flow.functional import scan
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_value
from runnel.ops.comparison import greater
from runnel.ops.cumulative import cumprod, cumsum
from runnel.ops.elementwise import exp, log, sigmoid
from runnel.ops.fill import ones, zeros
from runnel.ops.joining import concat
from runnel.ops.sampling.random import random_normal
from runnel.ops.transposition import transpose


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The cumulative product of numbers from 0 to 1, computed as a sum of logarithms.

    Its gradient stays finite where a product reaches 0. The other arguments are ``tf.cumsum``'s.

    Example:
        >>> tf.contrib.seq2seq.safe_cumprod([0.5, 0.5, 0.5])  # [0.5, 0.25, 0.125]
    """
    with name_scope(None, "SafeCumprod", [x]):
        x = convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return exp(cumsum(log(clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """The expected weights when places are tried in order from where the last step stopped.

    ``p_choose_i``, [batch, places], is the probability to stop at a place once it is reached;
    ``previous_attention``, of the same shape, the weights of the step before (one at the first
    place to begin with). ``mode``: "recursive" (exact, a loop over the places), "parallel" (with
    cumulative products, less exact for long memories) or "hard" (``p_choose_i`` of zeros and ones).

    Example:
        >>> tf.contrib.seq2seq.monotonic_attention([[0.5, 1.0]], [[1.0, 0.0]], "parallel")
        # [[0.5, 0.5]]
    """
    p = convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = shape_of(p)[0]
        first = ones([batch, 1], dtype=p.dtype)
        passed_before = concat([first, 1 - p[:, :-1]], 1)
        reached = scan(
            lambda reaching, at: at[0] * reaching + at[1],
            [transpose(passed_before), transpose(previous)],
            zeros([batch], dtype=p.dtype),
        )
        return p * transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        # A product that underflows would divide by 0; what follows it has no weight anyway.
        return p * passed * cumsum(previous / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        at_or_after = p * cumsum(previous, axis=1)
        return at_or_after * cumprod(1 - at_or_after, axis=1, exclusive=True)
    raise ValueError(f"mode must be 'recursive', 'parallel', or 'hard', not {mode!r}.")


def monotonic_probability(
    score: Tensor,
    previous_alignments: Tensor,
    sigmoid_noise: float,
    mode: str,
    seed: int | None = None,
) -> Tensor:
    """The weights of scores: the probability to stop is their sigmoid (in "hard" mode, score > 0).

    Noise on the scores, in training, drives them away from 0, so that hard decisions lose little.
    """
    if sigmoid_noise > 0:
        noise = random_normal(shape_of(score), dtype=score.dtype.base_dtype, seed=seed)
        score = score + sigmoid_noise * noise
    if mode == "hard":
        p_choose_i = cast(greater(score, 0), score.dtype.base_dtype)
    else:
        p_choose_i = sigmoid(score)
    return monotonic_attention(p_choose_i, previous_alignments, mode)
