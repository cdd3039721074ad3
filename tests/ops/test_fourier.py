"""Fourier transforms: their inverses, and gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

REAL = np.random.default_rng(0).normal(size=(2, 6))


@pytest.mark.parametrize("length", [4, 6, 9])
def test_the_inverse_gives_the_signal_back(length):
    found = run_both(tf.signal.irfft(tf.signal.rfft(tf.constant(REAL), [length]), [length]))
    expected = np.pad(REAL, [[0, 0], [0, max(0, length - 6)]])[:, :length]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("length", [4, 5, 6, 9])
def test_gradients_are_the_slopes(length):
    x = tf.constant(REAL)
    spectrum = tf.signal.rfft(x, [length])
    y = tf.square(tf.real(spectrum)) + 2 * tf.imag(spectrum)
    z = tf.square(tf.signal.irfft(spectrum * tf.constant(1 + 2j, tf.complex128), [length - 1]))
    with tf.Session():
        for result in (y, z):
            shape = result.shape.as_list()
            assert tf.test.compute_gradient_error(x, REAL.shape, result, shape) < 1e-6
