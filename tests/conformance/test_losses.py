"""``tf.losses`` beside TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1

RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 2, (4, 3)).astype(np.float32)
LOGITS = RNG.normal(size=(4, 3)).astype(np.float32)
PROBABILITIES = 1 / (1 + np.exp(-LOGITS))
CLASSES = np.array([2, 0, 1, 1])
WEIGHTS = {
    "one": 1.0,
    "number": 2.5,
    "nothing": 0.0,
    "rows": np.float32([[1.0], [0.0], [2.0], [0.5]]),
    "each": RNG.integers(0, 3, (4, 3)).astype(np.float32),
}
LOSSES = {
    "absolute_difference": (LABELS, LOGITS),
    "cosine_distance": (LABELS, LOGITS, 1),
    "hinge_loss": (LABELS, LOGITS),
    "huber_loss": (LABELS, LOGITS),
    "log_loss": (LABELS, PROBABILITIES),
    "mean_pairwise_squared_error": (LABELS, LOGITS),
    "mean_squared_error": (LABELS, LOGITS),
    "sigmoid_cross_entropy": (LABELS, LOGITS),
    "softmax_cross_entropy": (np.eye(3, dtype=np.float32)[CLASSES], LOGITS),
    "sparse_softmax_cross_entropy": (CLASSES, LOGITS),
}


def outcome(lib, name, arguments, options):
    with lib.Graph().as_default(), lib.Session() as sess:
        x = lib.placeholder(lib.float32, [4, 3], name="x")
        given = [x if a is arguments[1] else a for a in arguments]
        try:
            loss = getattr(lib.losses, name)(*given, **options)
        except ValueError:
            return ValueError
        assert lib.losses.get_losses() == [loss]
        found = [loss, lib.losses.get_total_loss(), lib.gradients(loss, x)[0]]
        values = sess.run(found, {x: arguments[1]})
        return [loss.name.partition(":")[0].split("/")[0], *values]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_tensorflow_s(name, weights):
    arguments = LOSSES[name]
    reductions = [None]
    if name != "mean_pairwise_squared_error":
        reductions = sorted(set(tf.losses.Reduction.all()) - {"none"})
    for reduction in reductions:
        value = WEIGHTS[weights]
        if "softmax" in name and np.ndim(value) == 2:
            value = value[:, 0]
        options = {"weights": value}
        if reduction:
            options["reduction"] = reduction
        ours, theirs = (outcome(lib, name, arguments, options) for lib in (tf, reference))
        if theirs is ValueError:
            assert ours is ValueError, reduction
            continue
        assert ours[0] == theirs[0]
        for a, b in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=str(reduction))


def test_smoothing_and_columns():
    for name, options in (
        ("sigmoid_cross_entropy", {"label_smoothing": 0.2}),
        ("softmax_cross_entropy", {"label_smoothing": 0.2}),
        ("huber_loss", {"delta": 0.3}),
    ):
        ours, theirs = (outcome(lib, name, LOSSES[name], options) for lib in (tf, reference))
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    column = (CLASSES[:, None], LOGITS)
    options = {"weights": np.float32([[1], [2], [3], [0]])}
    name = "sparse_softmax_cross_entropy"
    ours, theirs = (outcome(lib, name, column, options) for lib in (tf, reference))
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
