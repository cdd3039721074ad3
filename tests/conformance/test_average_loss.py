"""Losses averaged over a batch, as TensorFlow averages them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel  # noqa: E402
from tests.conformance.side_by_side import compare, tensorflow  # noqa: E402

LOSSES = np.random.default_rng(5).uniform(0.5, 2, (4, 3))
WEIGHTS = {
    "one": np.array(2.5),
    "each": np.random.default_rng(6).uniform(0, 1, (4, 3)),
    "rows": np.array([1.0, 0.0, 2.0, 0.5]),
    "squeezed": np.ones((4, 3, 1)),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weighted_losses(kind, weights):
    def build(tf: Any, losses: Any, weights: Any) -> list[Any]:
        return [
            tf.nn.compute_average_loss(losses, weights),
            tf.nn.compute_average_loss(losses, weights, global_batch_size=10),
        ]

    compare(build, LOSSES.astype(kind), WEIGHTS[weights].astype(kind))


def test_losses_without_weights_and_of_no_examples():
    def build(tf: Any, losses: Any) -> list[Any]:
        return [
            tf.nn.compute_average_loss(losses),
            tf.nn.compute_average_loss(losses[:0]),
            tf.nn.scale_regularization_loss(losses),
        ]

    compare(build, LOSSES)
    compare(build, LOSSES, shapes=[[None, None]])


def test_one_number_is_no_loss_of_examples():
    for tf in runnel, tensorflow():
        with tf.Graph().as_default(), pytest.raises(ValueError, match="per_example_loss"):
            tf.nn.compute_average_loss(2.0)
