"""Conditional random fields against a sum over all ways to tag."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

crf = tf.contrib.crf
RANDOM = np.random.default_rng(0)
SCORES = RANDOM.normal(size=(4, 4, 3)).astype(np.float32)
MOVES = RANDOM.normal(size=(3, 3)).astype(np.float32)
TAGS = RANDOM.integers(0, 3, size=(4, 4)).astype(np.int32)
LENGTHS = np.array([4, 2, 1, 3], np.int32)


def _score(scores, tags):
    moves = sum(MOVES[a, b] for a, b in itertools.pairwise(tags))
    return sum(scores[t, tag] for t, tag in enumerate(tags)) + moves


def _all_scores(row):
    ways = itertools.product(range(3), repeat=int(LENGTHS[row]))
    return {tags: _score(SCORES[row], tags) for tags in ways}


@pytest.mark.parametrize("shape", [(4, 4, 3), (None, None, 3)])
def test_the_likelihood_is_that_of_all_ways_to_tag(shape):
    scores = tf.placeholder(tf.float32, shape)
    lengths = tf.placeholder(tf.int32, shape[:1])
    likelihood, _ = crf.crf_log_likelihood(scores, TAGS, lengths, tf.constant(MOVES))
    expected = []
    for row in range(4):
        found = _all_scores(row)
        norm = np.log(sum(np.exp(value) for value in found.values()))
        expected.append(found[tuple(TAGS[row, : LENGTHS[row]])] - norm)
    got = run_both(likelihood, {scores: SCORES, lengths: LENGTHS})
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_decoding_finds_the_best_way():
    scores = tf.placeholder(tf.float32, [None, None, 3])
    tags, best = crf.crf_decode(scores, tf.constant(MOVES), LENGTHS)
    got_tags, got_best = run_both([tags, best], {scores: SCORES})
    for row, length in enumerate(LENGTHS):
        found = _all_scores(row)
        wanted = max(found, key=lambda way: found[way])
        assert tuple(got_tags[row, :length]) == wanted
        assert not got_tags[row, length:].any()
        np.testing.assert_allclose(got_best[row], found[wanted], rtol=1e-5)
        alone, score = crf.viterbi_decode(SCORES[row, :length], MOVES)
        assert tuple(alone) == wanted
        np.testing.assert_allclose(score, found[wanted], rtol=1e-5)


def test_sequences_of_one_step():
    scores = tf.constant(SCORES[:, :1])
    likelihood, _ = crf.crf_log_likelihood(scores, TAGS[:, :1], [1] * 4, MOVES)
    tags, _ = crf.crf_decode(scores, MOVES, [1] * 4)
    got, got_tags = run_both([likelihood, tags])
    first = SCORES[:, 0]
    expected = first[np.arange(4), TAGS[:, 0]] - np.log(np.exp(first).sum(1))
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    np.testing.assert_array_equal(got_tags[:, 0], first.argmax(1))


def test_a_tagger_learns_its_transitions():
    with tf.variable_scope("tagger"):
        likelihood, moves = crf.crf_log_likelihood(tf.zeros([4, 4, 3]), TAGS, LENGTHS)
    assert moves.op.name == "tagger/transitions"
    loss = tf.reduce_mean(-likelihood)
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(loss)
        for _ in range(20):
            sess.run(train)
        assert sess.run(loss) < first
