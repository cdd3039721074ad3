"""``tf.distributions`` against TensorFlow, with gradients; samples by their moments."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.conformance.side_by_side import compare

RANDOM = np.random.default_rng(0)
A = RANDOM.uniform(0.3, 2.0, (2, 3)).astype(np.float32)
B = RANDOM.uniform(0.3, 2.0, (3,)).astype(np.float32)
V = RANDOM.uniform(0.1, 0.9, (4, 2, 3)).astype(np.float32)

CONTINUOUS = {
    "Normal": "mean variance stddev entropy mode cdf",
    "Laplace": "mean variance entropy cdf",
    "Gamma": "mean variance entropy",
    "Beta": "mean variance entropy",
    "Uniform": "mean variance cdf",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    def build(tf, a, b, value):
        second = a + b if name == "Uniform" else b
        first = -a if name == "Uniform" else a
        made = getattr(tf.distributions, name)(first, second)
        found = [made.log_prob(value), made.prob(value)]
        for what in CONTINUOUS[name].split():
            found.append(made.cdf(value) if what == "cdf" else getattr(made, what)())
        return found

    compare(build, A, B, V, order=1, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("given", ["logits", "probs"])
def test_discrete(given):
    def build(tf, a, b):
        probs = tf.nn.softmax(a)
        options = {"logits": a} if given == "logits" else {"probs": probs}
        coin = tf.distributions.Bernoulli(**options)
        die = tf.distributions.Categorical(**options)
        other = tf.distributions.Categorical(logits=tf.reverse(a, [1]) * 2.0)
        return [
            *(coin.log_prob([[0, 1, 1], [1, 0, 0]]), coin.entropy(), coin.mean(), coin.variance()),
            *(die.log_prob([[2, 0], [1, 1]]), die.entropy(), die.prob([1, 2])),
            tf.distributions.kl_divergence(die, other) + 0.0 * b[0],
            coin.kl_divergence(tf.distributions.Bernoulli(probs=probs * 0.5)),
        ]

    compare(build, A, B, order=1, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_divergences_and_vectors():
    def build(tf, a, b):
        one, two = tf.distributions.Normal(a, b), tf.distributions.Normal(b, a + 0.5)
        shares = tf.distributions.Dirichlet(a)
        parts = tf.nn.softmax(a * 0.3)
        return [
            *(one.kl_divergence(two), one.cross_entropy(two)),
            *(shares.log_prob(parts), shares.mean(), shares.variance(), shares.entropy()),
        ]

    compare(build, A, B, order=1, rtol=1e-3, atol=1e-4)


def _samples(tf, made, count=20_000):
    with tf.Session() as sess:
        return sess.run([made.sample(count, seed=3), made.mean(), made.variance()])


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gamma", "Beta", "Uniform"])
def test_samples_have_the_mean_and_the_variance(name):
    tf = runnel
    high = B + 3.0 if name == "Uniform" else B
    drawn, mean, variance = _samples(tf, getattr(tf.distributions, name)(A, high))
    assert drawn.shape == (20_000, 2, 3)
    tolerance = 5 * np.sqrt(variance / 20_000)
    assert (np.abs(drawn.mean(0) - mean) < tolerance).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.15)


def test_samples_of_classes_and_of_vectors():
    tf = runnel
    probs = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], np.float32)
    die = tf.distributions.Categorical(probs=probs)
    one_hot = tf.contrib.distributions.OneHotCategorical(probs=probs)
    coin = tf.distributions.Bernoulli(probs=probs)
    vector = tf.contrib.distributions.MultivariateNormalDiag(A, B)
    assert die.batch_shape.as_list() == [2] and one_hot.event_shape.as_list() == [3]
    assert vector.sample([4, 5]).shape.as_list() == [4, 5, 2, 3]
    with tf.Session() as sess:
        numbers, rows, coins = sess.run([d.sample(5000, seed=1) for d in (die, one_hot, coin)])
        single = sess.run(die.sample())
        log_prob = sess.run(vector.log_prob(A))
    assert single.shape == (2,) and numbers.dtype == np.int32
    for row in range(2):
        np.testing.assert_allclose(np.bincount(numbers[:, row]) / 5000, probs[row], atol=0.03)
    np.testing.assert_allclose(rows.mean(0), probs, atol=0.03)
    np.testing.assert_allclose(coins.mean(0), probs, atol=0.03)
    np.testing.assert_allclose(
        log_prob, -np.log(B * np.sqrt(2 * np.pi)).sum() * np.ones(2), rtol=1e-4
    )


def test_a_policy_learns_from_its_samples():
    tf = runnel
    mean = tf.get_variable("mean", [], initializer=tf.zeros_initializer())
    policy = tf.distributions.Normal(mean, 1.0)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(
        tf.reduce_mean(tf.square(policy.sample(64, seed=1) - 3.0))
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(50):
            sess.run(step)
        assert abs(sess.run(mean) - 3.0) < 0.3
