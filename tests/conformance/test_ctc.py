"""Connectionist temporal classification against TensorFlow, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.conformance.side_by_side import compare

LOGITS = np.random.default_rng(0).normal(size=(7, 4, 5)).astype(np.float32)
LENGTHS = np.array([7, 5, 6, 3], np.int32)


def _labels(tf):
    """Words 0 1 1, 2, 3 3 2 and 0 3."""
    places = [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1], [2, 2], [3, 0], [3, 1]]
    return tf.SparseTensor(places, tf.constant([0, 1, 1, 2, 3, 3, 2, 0, 3], tf.int32), [4, 3])


@pytest.mark.parametrize("time_major", [True, False])
def test_losses_and_their_gradients(time_major):
    def build(tf, logits, lengths):
        return tf.nn.ctc_loss(_labels(tf), logits, lengths, time_major=time_major)

    given = LOGITS if time_major else LOGITS.transpose(1, 0, 2).copy()
    compare(build, given, LENGTHS, order=1, rtol=1e-3, atol=1e-4)


def test_sequences_that_are_too_short():
    def build(tf, logits):
        lengths = tf.constant([7, 5, 2, 3])
        return tf.nn.ctc_loss(_labels(tf), logits, lengths, ignore_longer_outputs_than_inputs=True)

    compare(build, LOGITS, order=1, rtol=1e-3, atol=1e-4)
    with runnel.Graph().as_default(), runnel.Session() as sess:
        loss = runnel.nn.ctc_loss(_labels(runnel), LOGITS, [7, 5, 2, 3])
        with pytest.raises(runnel.errors.InvalidArgumentError, match="Not enough time"):
            sess.run(loss)


@pytest.mark.parametrize("merge", [True, False])
def test_greedy_decoding(merge):
    def build(tf, logits, lengths):
        (found,), score = tf.nn.ctc_greedy_decoder(logits, lengths, merge_repeated=merge)
        return [found.indices, found.values, found.dense_shape, score]

    peaked = LOGITS.copy()
    peaked[2:4, 0, 1] += 9.0  # a class that repeats
    compare(build, peaked, LENGTHS, order=0)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("width", "paths"), [(1, 1), (4, 3), (60, 2)])
def test_beam_search(width, paths, merge):
    def build(tf, logits, lengths):
        decode = tf.nn.ctc_beam_search_decoder
        found, scores = decode(logits, lengths, width, paths, merge_repeated=merge)
        return [part for one in found for part in (one.indices, one.values, one.dense_shape)] + [
            scores
        ]

    peaked = LOGITS.copy()
    peaked[2:4, 0, 1] += 9.0  # a class that repeats
    compare(build, peaked, LENGTHS, order=0, rtol=1e-4)
    long = np.random.default_rng(1).normal(size=(25, 4, 12)).astype(np.float32) * 3
    compare(build, long, np.array([25, 20, 1, 25], np.int32), order=0, rtol=1e-4)


@pytest.mark.parametrize(
    ("lengths", "paths", "message"),
    [([8, 1, 1, 1], 1, "sequence_length"), ([1, 1], 1, "4 sequences"), ([1] * 4, 9, "top_paths")],
)
def test_what_a_beam_search_cannot_do_is_said(lengths, paths, message):
    found, _ = runnel.nn.ctc_beam_search_decoder(LOGITS, lengths, 5, paths)
    with runnel.Session() as sess, pytest.raises(runnel.errors.InvalidArgumentError, match=message):
        sess.run(found[0].values)


def test_a_sequence_without_labels_is_all_blanks():
    labels = runnel.SparseTensor([[1, 0]], runnel.constant([2], runnel.int32), [2, 1])
    loss = runnel.nn.ctc_loss(labels, LOGITS[:, :2], [4, 7])
    with runnel.Session() as sess:
        found = sess.run(loss)
    blanks = LOGITS[:4, 0, 4] - np.log(np.exp(LOGITS[:4, 0]).sum(-1))
    np.testing.assert_allclose(found[0], -blanks.sum(), rtol=1e-4)


@pytest.mark.parametrize("blank", [None, 0, 2, -1])
@pytest.mark.parametrize("time_major", [True, False])
def test_losses_of_dense_labels_with_any_blank(blank, time_major):
    rows = np.array([[1, 3, 3], [3, 0, 0], [1, 1, 3], [1, 3, 0]], np.int32)
    given = LOGITS if time_major else LOGITS.transpose(1, 0, 2).copy()

    def build(tf, logits, labels, lengths):
        return tf.nn.ctc_loss_v2(
            labels, logits, [3, 1, 3, 2], lengths, time_major, blank_index=blank
        )

    compare(build, given, rows, LENGTHS + 1 - LENGTHS // 7, order=1, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("blank", [0, 4, -1])
def test_losses_of_sparse_labels_with_any_blank(blank):
    def build(tf, logits, lengths):
        labels = _labels(tf)
        labels = tf.SparseTensor(labels.indices, labels.values % 3 + 1, labels.dense_shape)
        return tf.nn.ctc_loss_v2(labels, logits, None, lengths, blank_index=blank)

    compare(build, LOGITS, LENGTHS, order=1, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="needs a blank_index"):
        runnel.nn.ctc_loss_v2(_labels(runnel), LOGITS, None, LENGTHS)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_labels_made_ready(kind):
    rows = np.array([[7, 7, 8, 7, 7], [1, 2, 3, 3, 3], [0, 0, 0, 0, 0]], kind)

    def build(tf, rows, lengths):
        return [*tf.nn.collapse_repeated(rows, lengths), *tf.nn.ctc_unique_labels(rows)]

    for lengths in [5, 2, 4], [0, 0, 0]:
        compare(build, rows, np.array(lengths, kind), order=0, shapes=[[None, None], [None]])
