"""What samples of ``tf.contrib.distributions`` have in common with their densities."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.contrib import distributions as tfd
from runnel.contrib.distributions import bijectors as tfb


def run(*fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(fetches))


@pytest.mark.parametrize(
    "made",
    [
        lambda: tfd.Mixture(
            tfd.Categorical(probs=[0.3, 0.7]), [tfd.Normal(-2.0, 1.0), tfd.Normal(3.0, 0.5)]
        ),
        lambda: tfd.MixtureSameFamily(
            tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-2.0, 3.0], [1.0, 0.5])
        ),
        lambda: tfd.NegativeBinomial(4.0, probs=0.4),
        lambda: tfd.Poisson(2.5),
        lambda: tfd.HalfNormal(2.0),
        lambda: tfd.StudentT(8.0, 1.0, 0.5),
    ],
)
def test_the_moments_of_samples(made) -> None:
    with tf.Graph().as_default():
        found = made()
        drawn, mean, deviation = run(found.sample(20_000, seed=1), found.mean(), found.stddev())
    assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(20_000))
    assert drawn.std() == pytest.approx(deviation, rel=0.1)


def test_the_counts_of_multinomial_samples() -> None:
    with tf.Graph().as_default():
        found = tfd.Multinomial([5.0, 50.0], probs=[[0.2, 0.8], [0.5, 0.5]])
        drawn, mean = run(found.sample(2_000, seed=1), found.mean())
    assert drawn.shape == (2_000, 2, 2)
    assert (drawn.sum(-1) == [5, 50]).all()
    np.testing.assert_allclose(drawn.mean(0), mean, rtol=0.05)


def test_a_bijector_of_a_program() -> None:
    class Cubed(tfb.Bijector):
        def __init__(self) -> None:
            super().__init__(forward_min_event_ndims=0, name="cubed")

        def _forward(self, x):
            return x**3

        def _inverse(self, y):
            return tf.sign(y) * tf.abs(y) ** (1.0 / 3.0)

        def _forward_log_det_jacobian(self, x):
            return tf.log(3.0 * x**2)

    with tf.Graph().as_default():
        cubed = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), Cubed())
        at = np.array([0.5, 2.0], "float32")
        root = np.cbrt(at)
        expected = -0.5 * root**2 - 0.5 * np.log(2 * np.pi) - np.log(3 * root**2)
        np.testing.assert_allclose(run(cubed.log_prob(at))[0], expected, rtol=1e-5)


def test_the_inverse_of_a_result_is_known() -> None:
    """So the density of a sample of an inverse flow needs one pass, and keeps its gradient."""
    with tf.Graph().as_default():
        flow = tfb.MaskedAutoregressiveFlow(tfb.masked_autoregressive_default_template([4]))
        x = tf.ones([2, 3])
        assert flow.inverse(flow.forward(x)) is x
        assert tfb.Invert(flow).forward(flow.forward(x)) is x


def test_masked_layers_see_only_what_comes_before() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [1, 4])
        shift, log_scale = tfb.masked_autoregressive_default_template([8])(x)
        loss = tf.reduce_sum(shift**2) + tf.reduce_sum(log_scale)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        slopes = [tf.gradients(out[0, i], x)[0] for out in (shift, log_scale) for i in range(4)]
        sess.run(tf.global_variables_initializer())
        at = {x: [[0.3, -0.2, 0.5, 1.0]]}
        for _ in range(2):  # also after an update, which the constraint follows
            found = np.concatenate(sess.run(slopes, at)).reshape(2, 4, 4)
            assert not np.triu(found).any()
            sess.run(train, at)


def test_what_does_not_fit() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="7"):
            tfd.fill_triangular(np.zeros(7, "float32"))
        with pytest.raises(ValueError, match="min_event_ndims"):
            tfb.Permute([1, 0]).forward_log_det_jacobian(tf.ones([2]), event_ndims=0)
        with pytest.raises(ValueError, match="exactly one"):
            tfb.Permute([1, 1])
        with pytest.raises(ValueError, match="scalar"):
            tfd.TransformedDistribution(
                tfd.MultivariateNormalDiag(tf.zeros([2])), tfb.Exp(), event_shape=[3]
            )
        with pytest.raises(ValueError, match="not both"):
            tfd.RelaxedBernoulli(1.0)
        with pytest.raises(ValueError, match="num_classes"):
            tfd.Mixture(tfd.Categorical(probs=[0.5, 0.5]), [tfd.Normal(0.0, 1.0)])
