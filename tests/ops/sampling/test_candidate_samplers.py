"""Candidate samplers: what they draw, what they refuse. Values: tests/conformance."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

LABELS = np.array([[0], [3], [7]])


def draw(sampler, **options):
    given = {"true_classes": LABELS, "num_true": 1, "num_sampled": 6, "unique": True, **options}
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(getattr(tf.nn, sampler)(**given))


@pytest.mark.parametrize(
    "sampler", ["uniform", "log_uniform", "learned_unigram", "fixed_unigram", "all"]
)
def test_unique_classes_are_all_different(sampler):
    options = {"num_sampled": 8} if sampler == "all" else {"range_max": 10}
    if sampler == "fixed_unigram":
        options["unigrams"] = range(1, 11)
    classes, true_expected, expected = draw(f"{sampler}_candidate_sampler", seed=1, **options)
    assert len(set(classes.tolist())) == classes.size
    assert ((classes >= 0) & (classes < 10)).all()
    assert true_expected.shape == (3, 1)
    assert ((expected > 0) & (expected <= 1)).all()


def test_expected_counts_tell_how_often_a_class_is_drawn():
    with tf.Graph().as_default(), tf.Session() as sess:
        sampled = tf.nn.log_uniform_candidate_sampler(
            np.arange(20).reshape(20, 1), 1, 1000, False, 20, seed=1
        )
        totals, expected = np.zeros(20), 0
        for _ in range(50):
            classes, expected, _ = sess.run(sampled)
            totals += np.bincount(classes, minlength=20)
    np.testing.assert_allclose(totals / 50, expected[:, 0], rtol=0.1)


def test_a_learning_sampler_prefers_what_it_has_seen():
    with tf.Graph().as_default(), tf.Session() as sess:
        labels = tf.placeholder(tf.int64, [None, 1])
        sampled = tf.nn.learned_unigram_candidate_sampler(labels, 1, 50, False, 100, seed=1)
        for _ in range(20):
            classes, _, _ = sess.run(sampled, {labels: np.full((500, 1), 42)})
    assert (classes == 42).mean() > 0.9


def test_sessions_learn_apart():
    with tf.Graph().as_default():
        labels = np.full((5000, 1), 3)
        sampled = tf.nn.learned_unigram_candidate_sampler(labels, 1, 5, True, 50, seed=1)
        first = []
        for _ in range(2):
            with tf.Session() as sess:
                first.append(sess.run(sampled)[0].tolist())
    assert first[0] == first[1]


def test_a_failed_step_draws_nothing():
    with tf.Graph().as_default(), tf.Session() as sess:
        fails = tf.placeholder(tf.float32, [])
        classes, _, _ = tf.nn.uniform_candidate_sampler(LABELS, 1, 6, True, 1000, seed=2)
        checked = tf.check_numerics(fails, "the step")
        first = sess.run([classes, checked], {fails: 1.0})[0]
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run([classes, checked], {fails: np.nan})
        second = sess.run([classes, checked], {fails: 1.0})[0]
    with tf.Graph().as_default(), tf.Session() as sess:
        again, _, _ = tf.nn.uniform_candidate_sampler(LABELS, 1, 6, True, 1000, seed=2)
        assert [sess.run(again).tolist() for _ in range(2)] == [first.tolist(), second.tolist()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_sampled": 11}, "only 10 different classes"),
        ({"true_classes": [[10]]}, r"true_classes has 10, which is not in \[0, 10\)"),
        ({"true_classes": [[-1]]}, "true_classes has -1"),
    ],
)
def test_what_cannot_be_sampled_is_an_error(options, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        draw("uniform_candidate_sampler", **{"range_max": 10, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "vocab_file or unigrams"),
        ({"unigrams": [1.0], "vocab_file": "v"}, "and not both"),
        ({"unigrams": [1.0] * 9}, "range_max is 10, but there are 9 classes"),
        ({"unigrams": [1.0] * 10, "shard": 2, "num_shards": 2}, "less than num_shards"),
        ({"unigrams": [1.0] * 5 + [0.0] * 5}, "only 5 different classes"),
        ({"unigrams": [0.0] * 10}, "nor all of them zero"),
    ],
)
def test_weights_that_do_not_fit_are_an_error(options, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        draw("fixed_unigram_candidate_sampler", **{"range_max": 10, **options})


def test_a_line_without_a_weight_is_an_error_that_says_which(tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("the,3\nof\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="at line 2 of .*vocabulary"):
        draw("fixed_unigram_candidate_sampler", range_max=2, vocab_file=str(path))


def test_true_classes_must_have_the_columns_that_are_said():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="2 columns"):
        tf.nn.uniform_candidate_sampler(LABELS, 2, 4, True, 10)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_a_sampled_loss_over_all_classes_is_the_full_one(level):
    rng = np.random.default_rng(0)
    table, inputs = rng.normal(size=(8, 4)), rng.normal(size=(3, 4))
    biases = rng.normal(size=8)
    logits = inputs @ table.T + biases
    scaled = logits - logits.max(1, keepdims=True)
    full = np.log(np.exp(scaled).sum(1)) - scaled[np.arange(3), LABELS[:, 0]]
    with tf.Graph().as_default() as graph:
        sampled = tf.nn.all_candidate_sampler(LABELS, 1, 8, True)
        loss = tf.nn.sampled_softmax_loss(
            tf.constant(table), tf.constant(biases), LABELS, inputs, 8, 8, sampled_values=sampled
        )
        with session(level, graph) as sess:
            np.testing.assert_allclose(sess.run(loss), full, rtol=1e-12)
