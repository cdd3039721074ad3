"""The cross-entropies and likelihoods against TensorFlow."""

import numpy as np
import pytest

import runnel
from tests.conformance.side_by_side import EVERY_FLOAT, compare_in, tensorflow

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
CUBE = RNG.normal(size=(2, 3, 4))
VECTOR = RNG.normal(size=4)
LABELS = np.exp(X) / np.exp(X).sum(-1, keepdims=True)


@EVERY_FLOAT
def test_softmax_cross_entropy(dtype):
    def build(tf, x, z):
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)

    compare_in(dtype, build, X, LABELS)


def test_softmax_cross_entropy_second_order():
    def build(tf, x):
        z = tf.constant(LABELS)
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)

    compare_in("float64", build, X, order=3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_cross_entropy_over_an_axis(axis):
    def build(tf, x, z):
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x, axis=axis)

    compare_in("float64", build, CUBE, RNG.uniform(size=CUBE.shape))


def test_softmax_cross_entropy_with_constant_labels():
    def build(tf, x, z):
        return tf.nn.softmax_cross_entropy_with_logits(labels=z, logits=x)

    compare_in("float32", build, X, LABELS)
    compare_in("float32", build, X, LABELS, shapes=[[None, 5], [None, 5]])


@EVERY_FLOAT
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_softmax_cross_entropy(dtype, index):
    def build(tf, x, z):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x)

    compare_in(dtype, build, X, np.array([0, 4, 1, 1], index))


def test_sparse_softmax_cross_entropy_of_higher_rank_and_order():
    def build(tf, x, z):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x)

    classes = RNG.integers(0, 4, (2, 3))
    compare_in("float64", build, CUBE, classes, order=3)
    compare_in("float64", build, CUBE, classes, shapes=[[None, None, 4], [None, None]])


@EVERY_FLOAT
def test_sigmoid_cross_entropy(dtype):
    def build(tf, x, z):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)

    compare_in(dtype, build, X, LABELS)
    compare_in(dtype, build, np.zeros(3), np.array([0, 0.5, 1]))  # where relu has its kink


def test_sigmoid_losses_second_order():
    def plain(tf, x, z):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)

    def weighted(tf, x, z):
        return tf.nn.weighted_cross_entropy_with_logits(z, x, 2.5)

    compare_in("float64", plain, X, LABELS, order=2)
    compare_in("float64", weighted, X, LABELS, order=2)


@pytest.mark.parametrize("full", [False, True])
def test_log_poisson_loss(full):
    counts = np.array([0.0, 1.0, 2.0, 7.0])
    compare_in("float32", lambda tf, c: tf.nn.log_poisson_loss(counts.astype("f"), c, full), VECTOR)


@pytest.mark.parametrize("known", [(None, None), ([None, 3], None), (None, [None, None])])
@pytest.mark.parametrize("labels", [[0, 2], [[0], [2]]])
def test_labels_of_a_rank_that_is_seen_when_the_step_runs(known, labels):
    logits = np.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2]], np.float32)
    outcomes = []
    for tf in (tensorflow(), runnel):
        with tf.Graph().as_default(), tf.Session() as sess:
            x, z = tf.placeholder(tf.float32, known[0]), tf.placeholder(tf.int32, known[1])
            try:
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x)
                outcomes.append(sess.run(loss, {x: logits, z: labels}))
            except (ValueError, tf.errors.InvalidArgumentError) as error:
                outcomes.append(type(error).__name__)
    np.testing.assert_equal(type(outcomes[1]), type(outcomes[0]))
    if isinstance(outcomes[0], np.ndarray):
        np.testing.assert_allclose(outcomes[1], outcomes[0], 1e-5)
