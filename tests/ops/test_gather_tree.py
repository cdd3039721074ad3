"""GatherTree against following the parents one beam at a time."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.ops.gather_tree import gather_tree
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session

END = 9


def followed(ids, parents, lengths, end):
    """Each beam's history, from its last step back to its first."""
    result = np.full_like(ids, end)
    steps, batch, width = ids.shape
    for b in range(batch):
        for k in range(width):
            place, tokens = k, []
            for t in reversed(range(min(steps, lengths[b]))):
                tokens.append(ids[t, b, place])
                place = parents[t, b, place]
            tokens.reverse()
            if end in tokens:
                tokens = tokens[: tokens.index(end)]
            result[: len(tokens), b, k] = tokens
    return result


@pytest.mark.parametrize("seed", range(4))
def test_histories_of_beams(seed):
    rng = np.random.default_rng(seed)
    steps, batch, width = 6, 3, 4
    ids = rng.integers(0, END + 1, (steps, batch, width)).astype(np.int32)
    parents = rng.integers(0, width, (steps, batch, width)).astype(np.int32)
    lengths = rng.integers(0, steps + 3, batch).astype(np.int32)
    beams = gather_tree(tf.constant(ids), tf.constant(parents), tf.constant(lengths), END)
    assert beams.shape.as_list() == [steps, batch, width]
    np.testing.assert_array_equal(run_both(beams), followed(ids, parents, lengths, END))


def test_an_empty_search():
    empty = np.zeros((0, 2, 3), np.int32)
    assert run_both(gather_tree(empty, empty, [0, 0], END)).shape == (0, 2, 3)


def test_parents_that_are_not_reached_may_be_anything():
    ids = np.array([[[1, 2]], [[3, 4]]], np.int32)
    parents = np.array([[[-7, 99]], [[1, 1]]], np.int32)  # those of the first step lead nowhere
    np.testing.assert_array_equal(
        run_both(gather_tree(ids, parents, [2], END)), [[[2, 2]], [[3, 4]]]
    )


@pytest.mark.parametrize("parent", [-1, 2])
def test_a_parent_that_does_not_exist(parent):
    ids = np.array([[[1, 2]], [[3, 4]]], np.int32)
    given = tf.placeholder(tf.int32, [2, 1, 2])
    beams = gather_tree(ids, given, [2], END)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="0 and 1"):
            sess.run(beams, {given: [[[0, 0]], [[0, parent]]]})


def test_shapes():
    unknown = tf.placeholder(tf.int32)
    beams = gather_tree(
        unknown, tf.placeholder(tf.int32, [None, None, 3]), tf.zeros([2], "int32"), 1
    )
    assert beams.shape.as_list() == [None, 2, 3]
    with pytest.raises(ValueError, match="not compatible"):
        gather_tree(tf.zeros([1, 2, 3], "int32"), tf.zeros([1, 2, 4], "int32"), [1, 1], 1)
    with pytest.raises(ValueError, match="rank"):
        gather_tree(tf.zeros([2, 3], "int32"), tf.zeros([2, 3], "int32"), [1, 1], 1)
