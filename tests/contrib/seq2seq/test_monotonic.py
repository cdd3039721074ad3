"""Monotonic attention against the process that it describes, and against simulating it."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.contrib.seq2seq.formulas import bahdanau_score, hidden, luong_score, run_with_variables
from tests.contrib.seq2seq.formulas import sigmoid as logistic

seq2seq = tf.contrib.seq2seq
RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, size=(3, 6)).astype(np.float32)
PREVIOUS = RNG.dirichlet(np.ones(6), size=3).astype(np.float32)


def walked(p, previous):
    """From each place, weighted, walk on until a place is chosen."""
    result = np.zeros(p.shape)
    for b in range(p.shape[0]):
        for start in range(p.shape[1]):
            walking = float(previous[b, start])
            for place in range(start, p.shape[1]):
                result[b, place] += walking * p[b, place]
                walking *= 1 - p[b, place]
    return result


@pytest.mark.parametrize("mode", ["recursive", "parallel"])
def test_expected_weights(mode):
    values = run_both(seq2seq.monotonic_attention(P, PREVIOUS, mode))
    np.testing.assert_allclose(values, walked(P, PREVIOUS), rtol=1e-4, atol=1e-6)


def test_hard_decisions():
    p = (RNG.random((4, 6)) > 0.6).astype(np.float32)
    p[3] = 0  # nowhere to stop: no weight at all
    previous = np.eye(6, dtype=np.float32)[[0, 2, 4, 1]]
    values = run_both(seq2seq.monotonic_attention(p, previous, "hard"))
    np.testing.assert_allclose(values, walked(p, previous), atol=1e-6)


def test_an_unknown_mode():
    with pytest.raises(ValueError, match="'recursive', 'parallel', or 'hard'"):
        seq2seq.monotonic_attention(P, PREVIOUS, "soft")
    with pytest.raises(ValueError, match="'recursive', 'parallel', or 'hard'"):
        seq2seq.LuongMonotonicAttention(3, np.ones((1, 2, 3), np.float32), mode="soft")


def test_safe_cumprod():
    x = RNG.uniform(size=(2, 5)).astype(np.float32)
    np.testing.assert_allclose(
        run_both(seq2seq.safe_cumprod(x, axis=1)), np.cumprod(x, axis=1), rtol=1e-5
    )
    exclusive = run_both(seq2seq.safe_cumprod(x, axis=1, exclusive=True, reverse=True))
    expected = np.cumprod(np.concatenate([np.ones((2, 1)), x[:, :0:-1]], 1), 1)[:, ::-1]
    np.testing.assert_allclose(exclusive, expected, rtol=1e-5)
    zero = tf.constant([0.5, 0.0, 0.5])
    values, (grad,) = run_both(
        [seq2seq.safe_cumprod(zero), tf.gradients(seq2seq.safe_cumprod(zero), zero)]
    )
    np.testing.assert_allclose(values, [0.5, 0, 0], atol=1e-30)
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("kind", ["Bahdanau", "Luong"])
@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_mechanisms(kind, mode):
    memory = RNG.normal(size=(3, 6, 4)).astype(np.float32)
    query = RNG.normal(size=(3, 5)).astype(np.float32)
    lengths = [6, 2, 4]
    option = {"normalize": True} if kind == "Bahdanau" else {"scale": True}
    attention = getattr(seq2seq, f"{kind}MonotonicAttention")(
        5, memory, lengths, score_bias_init=-1.0, mode=mode, **option
    )
    first = attention.initial_state(3, tf.float32)
    previous = np.eye(6, dtype=np.float32)[[1, 0, 2]] if mode == "hard" else PREVIOUS
    weights, state = attention(tf.constant(query), tf.constant(previous))
    (found, begin), values = run_with_variables([weights, first])
    np.testing.assert_array_equal(begin, np.eye(6)[[0, 0, 0]])
    scope = f"{kind.lower()}_monotonic_attention"
    inside = (np.arange(6) < np.array(lengths)[:, None])[..., None]
    keys = (memory * inside) @ values["memory_layer/kernel"]
    g = values[f"{scope}/attention_g"]
    if kind == "Bahdanau":
        processed = query @ values[f"{scope}/query_layer/kernel"]
        v, b = values[f"{scope}/attention_v"], values[f"{scope}/attention_b"]
        score = bahdanau_score(processed, keys, v, g, b)
    else:
        score = luong_score(query, keys, g)
    score = hidden(score + values[f"{scope}/attention_score_bias"], lengths)
    p = (score > 0).astype(float) if mode == "hard" else logistic(score)
    np.testing.assert_allclose(found, walked(p, previous), rtol=1e-3, atol=1e-5)
    assert state is weights


def test_the_bias_begins_as_said_and_noise_changes_weights():
    memory = RNG.normal(size=(1, 3, 2)).astype(np.float32)
    attention = seq2seq.LuongMonotonicAttention(
        2, memory, score_bias_init=-4.0, sigmoid_noise=1.0, sigmoid_noise_seed=1
    )
    weights, _ = attention(tf.constant([[1.0, 2.0]]), attention.initial_state(1, tf.float32))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        (bias,) = (v for v in tf.global_variables() if v.op.name.endswith("score_bias"))
        assert sess.run(bias) == -4
        assert not np.allclose(sess.run(weights), sess.run(weights))
