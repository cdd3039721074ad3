"""Following the parents of a beam search back from its last step to its first."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import merge_dims

gather_tree_op = register_op(
    "GatherTree",
    inputs="step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T",
    outputs="beams: T",
    attrs="T: {int32}",
    differentiable=False,
)


@gather_tree_op.shape
def _(step_ids, parent_ids, max_sequence_lengths, end_token):
    merge_dims(end_token.dims, ())
    lengths = merge_dims(max_sequence_lengths.dims, (None,))
    of_batch = (None, *(lengths or (None,)), None)
    return merge_dims(merge_dims(step_ids.dims, parent_ids.dims), of_batch)


def _follow(xp: Any, places: Any, step: Any, ids: Any, parents: Any, lengths: Any, end: Any) -> Any:
    """One step backwards: where each beam came from, and the tokens that it holds here.

    ``places`` are the beams' places at this step. Steps beyond a sequence's length hold the end
    token, and there a beam is its own parent.
    """
    active = (step < lengths)[:, None]
    width = ids.shape[1]
    valid = xp.all(~active | ((places >= 0) & (places < width)))
    safe = xp.clip(places, 0, width - 1)
    tokens = xp.where(active, xp.take_along_axis(ids, safe, axis=1), end)
    before = xp.where(active, xp.take_along_axis(parents, safe, axis=1), places)
    return before, tokens, valid


def _require_parents(valid: Any, check: Any, parent_ids: Any) -> None:
    check(
        valid,
        lambda: (
            f"parent_ids must name beams between 0 and {parent_ids.shape[2] - 1} wherever a beam's "
            f"history leads, but they hold values from {parent_ids.min()} to {parent_ids.max()}"
        ),
    )


def _after_the_end(xp: Any, tokens: Any, end: Any) -> Any:
    """What follows the first end token is the end token."""
    return xp.where(xp.cumsum(tokens == end, axis=0) > 0, end, tokens)


def _own_places(xp: Any, step_ids: Any) -> Any:
    return xp.broadcast_to(xp.arange(step_ids.shape[2], dtype=np.int32), step_ids.shape[1:])


@gather_tree_op.kernel(tier="interpreted")
def _(xp, step_ids, parent_ids, max_sequence_lengths, end_token, *, check):
    beams = np.empty_like(step_ids)
    if beams.size == 0:
        return beams
    places, all_valid = _own_places(xp, step_ids), True
    for step in reversed(range(len(step_ids))):
        places, beams[step], valid = _follow(
            xp, places, step, step_ids[step], parent_ids[step], max_sequence_lengths, end_token
        )
        all_valid = all_valid and bool(valid)
    _require_parents(np.asarray(all_valid), check, parent_ids)
    return _after_the_end(xp, beams, end_token)


@gather_tree_op.kernel(tier="compiled")
def _(xp, step_ids, parent_ids, max_sequence_lengths, end_token, *, check):
    from jax import lax

    if step_ids.size == 0:
        return step_ids

    def back(places: Any, at: Any) -> Any:
        step, ids, parents = at
        before, tokens, valid = _follow(
            xp, places, step, ids, parents, max_sequence_lengths, end_token
        )
        return before, (tokens, valid)

    steps = xp.arange(len(step_ids), dtype=np.int32)
    _, (beams, valid) = lax.scan(
        back, _own_places(xp, step_ids), (steps, step_ids, parent_ids), reverse=True
    )
    _require_parents(xp.all(valid), check, parent_ids)
    return _after_the_end(xp, beams, end_token)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Tensor:
    """The full sequences of a beam search, from each step's tokens and parents.

    ``step_ids`` and ``parent_ids`` are [time, batch, beam]: the token that each beam chose, and
    the beam of the step before that it continues. Steps from ``max_sequence_lengths`` (one for
    each element of the batch) on, and all after the first ``end_token``, are ``end_token``.

    Example:
        >>> ids = [[[1, 2]], [[3, 4]]]  # beam 0 of step 1 continues beam 1 of step 0
        >>> tf.contrib.seq2seq.gather_tree(ids, [[[0, 0]], [[1, 1]]], [2], end_token=9)
        # [[[2, 2]], [[3, 4]]]
    """
    return gather_tree_op(step_ids, parent_ids, max_sequence_lengths, end_token, name=name)
