"""``sequence_loss`` against sums of NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 4, 5)).astype(np.float32)
TARGETS = RNG.integers(0, 5, (3, 4)).astype(np.int32)
WEIGHTS = np.array([[1, 1, 1, 1], [1, 0.5, 0, 0], [0, 0, 0, 0]], np.float32)

sequence_loss = tf.contrib.seq2seq.sequence_loss


def weighted_losses():
    log_probs = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, TARGETS[..., None], -1)[..., 0]
    return -chosen * WEIGHTS


def divided(a, b):
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


LOSSES = weighted_losses()
COUNTS = (WEIGHTS != 0).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, LOSSES.sum() / WEIGHTS.sum()),
        ({"average_across_batch": False}, divided(LOSSES.sum(1), WEIGHTS.sum(1))),
        ({"average_across_timesteps": False}, divided(LOSSES.sum(0), WEIGHTS.sum(0))),
        ({"average_across_batch": False, "average_across_timesteps": False}, LOSSES),
    ],
    ids=["mean", "over time", "over the batch", "none"],
)
def test_averages(options, expected):
    np.testing.assert_allclose(
        run_both(sequence_loss(LOGITS, TARGETS, WEIGHTS, **options)), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sum_over_timesteps": True, "sum_over_batch": True}, LOSSES.sum() / COUNTS.sum()),
        ({"sum_over_timesteps": True}, divided(LOSSES.sum(1), COUNTS.sum(1))),
        ({"sum_over_batch": True}, divided(LOSSES.sum(0), COUNTS.sum(0))),
    ],
    ids=["both", "time", "batch"],
)
def test_sums_are_over_the_weights_that_are_not_zero(options, expected):
    loss = sequence_loss(
        LOGITS,
        TARGETS,
        WEIGHTS,
        average_across_timesteps=False,
        average_across_batch=False,
        **options,
    )
    np.testing.assert_allclose(run_both(loss), expected, rtol=1e-5, atol=1e-6)


def test_shapes_that_are_not_known():
    logits = tf.placeholder(tf.float32, [None, None, None])
    targets, weights = (
        tf.placeholder(tf.int32, [None, None]),
        tf.placeholder(tf.float32, [None, None]),
    )
    value = run_both(
        sequence_loss(logits, targets, weights),
        {logits: LOGITS, targets: TARGETS, weights: WEIGHTS},
    )
    np.testing.assert_allclose(value, LOSSES.sum() / WEIGHTS.sum(), rtol=1e-5)


def test_another_loss():
    def squared(labels, logits):
        return tf.square(tf.cast(labels, tf.float32) - logits[:, 0])

    value = run_both(sequence_loss(LOGITS, TARGETS, WEIGHTS, softmax_loss_function=squared))
    expected = ((TARGETS - LOGITS[..., 0]) ** 2 * WEIGHTS).sum() / WEIGHTS.sum()
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_derivatives():
    assert_derivatives(
        lambda logits: sequence_loss(logits, TARGETS, WEIGHTS.astype(np.float64)), LOGITS
    )


def test_mistakes():
    with pytest.raises(ValueError, match="Logits must be a 3-dimensional"):
        sequence_loss(LOGITS[0], TARGETS, WEIGHTS)
    with pytest.raises(ValueError, match="Targets must be a 2-dimensional"):
        sequence_loss(LOGITS, TARGETS[0], WEIGHTS)
    with pytest.raises(ValueError, match="Weights must be a 2-dimensional"):
        sequence_loss(LOGITS, TARGETS, 1.0)
    with pytest.raises(ValueError, match="average_across_batch and sum_over_batch"):
        sequence_loss(LOGITS, TARGETS, WEIGHTS, sum_over_batch=True)
    with pytest.raises(ValueError, match="cannot be combined"):
        sequence_loss(LOGITS, TARGETS, WEIGHTS, average_across_batch=False, sum_over_batch=True)
