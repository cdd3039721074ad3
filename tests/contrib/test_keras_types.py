"""``tf.keras``'s functions of tensors in every floating-point type, beside NumPy's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

P = np.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]])
Y = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
SIGNED = 2 * Y - 1
RIGHT, WRONG = (Y * P).sum(-1), ((1 - Y) * P).max(-1)
LOSSES = {
    "mean_squared_error": ((P - Y) ** 2).mean(-1),
    "mean_absolute_error": abs(P - Y).mean(-1),
    "mean_squared_logarithmic_error": ((np.log1p(P) - np.log1p(Y)) ** 2).mean(-1),
    "hinge": np.maximum(1 - SIGNED * P, 0).mean(-1),
    "squared_hinge": (np.maximum(1 - SIGNED * P, 0) ** 2).mean(-1),
    "categorical_hinge": np.maximum(WRONG - RIGHT + 1, 0),
    "logcosh": np.log(np.cosh(P - Y)).mean(-1),
    "categorical_crossentropy": -np.log(RIGHT),
    "binary_crossentropy": -(Y * np.log(P) + (1 - Y) * np.log(1 - P)).mean(-1),
    "cosine_similarity": RIGHT / np.linalg.norm(P, axis=-1),
    "poisson": (P - Y * np.log(P)).mean(-1),
    "kullback_leibler_divergence": -np.log(RIGHT),
}
W = np.array([[3.0, -0.5], [4.0, 0.25]])
NORMS = np.linalg.norm(W, axis=0, keepdims=True)
OTHERS = {
    "l1": (tf.keras.regularizers.l1(0.5), 0.5 * abs(W).sum()),
    "l2": (tf.keras.regularizers.l2(0.5), 0.5 * (W**2).sum()),
    "l1_l2": (tf.keras.regularizers.l1_l2(0.5, 0.25), 0.5 * abs(W).sum() + 0.25 * (W**2).sum()),
    "non_neg": (tf.keras.constraints.non_neg(), np.maximum(W, 0)),
    "max_norm": (tf.keras.constraints.max_norm(2), W * np.minimum(2 / NORMS, 1)),
    "unit_norm": (tf.keras.constraints.unit_norm(), W / NORMS),
    "min_max_norm": (
        tf.keras.constraints.min_max_norm(1.0, 2.0, rate=0.5),
        W * (0.5 * np.clip(NORMS, 1, 2) + 0.5 * NORMS) / NORMS,
    ),
}
TYPES = [(tf.float16, 2e-2), (tf.float32, 1e-5), (tf.float64, 1e-5)]


@pytest.mark.parametrize(("dtype", "rtol"), TYPES, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("name", [*LOSSES, "mean_absolute_percentage_error"])
def test_losses(name, dtype, rtol):
    labels = Y
    if name not in LOSSES:  # it divides by the labels
        labels = Y + 0.5
    expected = LOSSES.get(name, 100 * (abs(P - labels) / (Y + 0.5)).mean(-1))
    found = getattr(tf.keras.losses, name)(tf.constant(labels, dtype), tf.constant(P, dtype))
    assert found.dtype == dtype
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(found), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), TYPES, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("name", OTHERS)
def test_regularizers_and_constraints(name, dtype, rtol):
    function, expected = OTHERS[name]
    found = function(tf.constant(W, dtype))
    assert found.dtype == dtype
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(found), expected, rtol=rtol, atol=rtol)
