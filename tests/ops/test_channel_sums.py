"""The native sums over channels against NumPy in float64, and in batch normalisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import runnel as tf
from runnel.native import onednn
from runnel.ops import channel_sums
from tests.both_tiers import run_both

SHAPES = [(8, 16, 16, 16), (3, 77, 200), (40_000, 1), (2, 40_001), (5, 9, 7, 3, 64), (1, 32_768)]


@pytest.fixture(scope="module")
def library():
    if onednn.load() is None:
        pytest.skip("needs oneDNN and a C++ compiler")


def _axes(x: np.ndarray) -> tuple[int, ...]:
    return tuple(range(x.ndim - 1))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("middle", [0.0, 1e4])
def test_moments(shape, middle):
    x = (np.random.default_rng(0).standard_normal(shape) + middle).astype(np.float32)
    wide = x.astype(np.float64)
    mean, variance = jax.jit(channel_sums.moments)(x)
    np.testing.assert_allclose(mean, wide.mean(_axes(x)), rtol=1e-6, atol=1e-6)
    # With a mean of 10,000 a square of x has no digits left for the variance, and a mean in float32
    # is off by so much that merging the blocks would be wrong in the fourth.
    np.testing.assert_allclose(variance, wide.var(_axes(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_sums(shape):
    random = np.random.default_rng(0)
    g, x = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
    mean = random.standard_normal(shape[-1]).astype(np.float32)
    total, along = jax.jit(channel_sums.gradient_sums)(g, x, mean)
    wide = g.astype(np.float64)
    np.testing.assert_allclose(total, wide.sum(_axes(g)), rtol=1e-4, atol=1e-3)
    expected = (wide * (x.astype(np.float64) - mean)).sum(_axes(g))
    np.testing.assert_allclose(along, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.usefixtures("library")
def test_where_they_are_used():
    large = jnp.zeros((4, 64, 64, 8), jnp.float32)
    assert channel_sums.can_sum(jnp, large, "cpu", channels_last=True)
    assert not channel_sums.can_sum(jnp, large, "gpu", channels_last=True)
    assert not channel_sums.can_sum(jnp, large, "cpu", channels_last=False)
    assert not channel_sums.can_sum(np, np.asarray(large), "cpu", channels_last=True)
    assert not channel_sums.can_sum(jnp, large.astype(jnp.bfloat16), "cpu", channels_last=True)
    assert not channel_sums.can_sum(jnp, large[:1, :2], "cpu", channels_last=True)


def test_batch_normalisation_of_large_activations_in_both_tiers():
    random = np.random.default_rng(0)
    x = tf.constant(random.standard_normal((6, 30, 30, 8)).astype(np.float32) * 3 + 5)
    scale, offset = (tf.constant(random.standard_normal(8).astype(np.float32)) for _ in range(2))
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset)
    gradients = tf.gradients(tf.reduce_sum(y**3), [x, scale, offset])
    run_both([y, mean, variance, *gradients], rtol=2e-4, atol=2e-3)
