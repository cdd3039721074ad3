"""``tf.contrib.crf``: conditional random fields along sequences (Lafferty et al. 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.control_flow.functional import foldl, scan
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.gather import batch_gather, gather_nd
from runnel.ops.joining import concat, stack
from runnel.ops.masking import sequence_mask
from runnel.ops.one_hot import one_hot
from runnel.ops.ranges import range as numbers_to
from runnel.ops.reduce_functions import reduce_logsumexp, reduce_max, reduce_sum
from runnel.ops.reversal import reverse
from runnel.ops.selection import where
from runnel.ops.transposition import transpose
from runnel.variables.get_variable import get_variable

__all__ = [
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]


def _mask(lengths: Any, inputs: Tensor) -> Tensor:
    """1 for the steps of each sequence, 0 for what fills it up."""
    steps = sequence_mask(lengths, shape(inputs)[1])
    return cast(steps, inputs.dtype)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The sum of what each step of a sequence gives its tag."""
    inputs = convert_to_tensor(inputs)
    chosen = one_hot(tag_indices, shape(inputs)[2], dtype=inputs.dtype)
    return reduce_sum(reduce_sum(inputs * chosen, 2) * _mask(sequence_lengths, inputs), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The sum of the transitions between the tags of a sequence."""
    params = convert_to_tensor(transition_params)
    tags = cast(tag_indices, int32)
    pairs = stack([tags[:, :-1], tags[:, 1:]], axis=-1)
    scores = gather_nd(params, pairs)
    steps = sequence_mask(sequence_lengths, shape(tags)[1], dtype=params.dtype)
    return reduce_sum(scores * steps[:, 1:], 1)


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The unnormalised score of tags: of the steps, and of the transitions between them."""
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def _later_steps(inputs: Tensor, lengths: Any) -> tuple[Tensor, Tensor]:
    """All steps but the first, time first, and which sequences still last then."""
    lasts = sequence_mask(lengths, shape(inputs)[1])
    return transpose(inputs, [1, 0, 2])[1:], transpose(lasts, [1, 0])[1:]


def _kept(lasts: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """``new`` where a sequence still lasts."""
    return where(broadcast_to(expand_dims(lasts, 1), shape(new)), new, old)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithm of the sum of the exponentials of the scores of all tags."""
    inputs = convert_to_tensor(inputs)
    params = expand_dims(convert_to_tensor(transition_params), 0)

    def step(alphas: Tensor, given: tuple[Tensor, Tensor]) -> Tensor:
        scores, lasts = given
        new = reduce_logsumexp(expand_dims(alphas, 2) + params, 1) + scores
        return _kept(lasts, new, alphas)

    steps = _later_steps(inputs, sequence_lengths)
    alphas = foldl(step, steps, initializer=inputs[:, 0])
    # An empty sequence has one way to be tagged.
    empty = cast(sequence_lengths, int32) <= 0
    return where(empty, reduce_logsumexp(alphas, 1) * 0, reduce_logsumexp(alphas, 1))


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """The log-likelihood of tags, [batch], and the matrix of transitions.

    ``inputs`` are the scores of each tag at each step, [batch, length, tags]. The transitions are a
    variable, ``transitions``, unless they are given.

    Example:
        >>> likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, tags, lengths)
        >>> loss = tf.reduce_mean(-likelihood)
    """
    inputs = convert_to_tensor(inputs)
    if transition_params is None:
        count = inputs.shape[2].value
        transition_params = get_variable("transitions", [count, count])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(
    potentials: Any, transition_params: Any, sequence_length: Any
) -> tuple[Tensor, Tensor]:
    """The best tags, [batch, length] (0 after the end of a sequence), and their scores."""
    inputs = convert_to_tensor(potentials)
    params = expand_dims(convert_to_tensor(transition_params), 0)
    batch, length, count = (shape(inputs)[i] for i in range(3))
    unmoved = broadcast_to(expand_dims(numbers_to(count), 0), stack([batch, count]))

    def step(before: tuple[Tensor, Tensor], given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        (best, _), (scores, lasts) = before, given
        paths = expand_dims(best, 2) + params
        pointers = argmax(paths, 1, output_type=int32)
        # Past its end a sequence stays where it is, so that going back arrives at its end.
        return _kept(lasts, reduce_max(paths, 1) + scores, best), _kept(lasts, pointers, unmoved)

    first = (inputs[:, 0], unmoved)
    bests, pointers = scan(step, _later_steps(inputs, sequence_length), initializer=first)
    final = concat([expand_dims(first[0], 0), bests], 0)[-1]
    last_tag = argmax(final, 1, output_type=int32)

    def back(tag: Tensor, pointers: Tensor) -> Tensor:
        return batch_gather(pointers, expand_dims(tag, 1))[:, 0]

    earlier = scan(back, reverse(pointers, [0]), initializer=last_tag)
    tags = transpose(reverse(concat([expand_dims(last_tag, 0), earlier], 0), [0]))
    tags = tags * sequence_mask(sequence_length, length, dtype=int32)
    tags.set_shape(inputs.shape[:2])
    return tags, reduce_max(final, 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best tags of one sequence, and their score, by NumPy.

    ``score`` has the scores of each tag at each step, [length, tags].
    """
    score, transitions = np.asarray(score), np.asarray(transition_params)
    best = score[0]
    pointers = []
    for scores in score[1:]:
        paths = best[:, None] + transitions
        pointers.append(np.argmax(paths, 0))
        best = scores + np.max(paths, 0)
    tags = [int(np.argmax(best))]
    for pointer in reversed(pointers):
        tags.append(int(pointer[tags[-1]]))
    return tags[::-1], np.max(best)


def __dir__() -> list[str]:
    return __all__
