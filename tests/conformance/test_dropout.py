"""Dropout against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import EVERY_FLOAT, compare_in

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)


@EVERY_FLOAT
def test_dropout(dtype):
    """The same seeds drop the same elements."""

    def build(tf, x):
        tf.set_random_seed(11)
        return [
            tf.nn.dropout(x, rate=0.4, seed=5),
            tf.nn.dropout(x, keep_prob=0.6, noise_shape=[40, 1], seed=6),
        ]

    compare_in(dtype, build, RNG.normal(size=(40, 30)))
