"""The weights of attention mechanisms against their papers' formulas."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.contrib.seq2seq.formulas import (
    bahdanau_score,
    hidden,
    luong_score,
    masked,
    run_with_variables,
    softmax,
)

seq2seq = tf.contrib.seq2seq
RNG = np.random.default_rng(0)
MEMORY = RNG.normal(size=(3, 5, 4)).astype(np.float32)
QUERY = RNG.normal(size=(3, 6)).astype(np.float32)
LENGTHS = [5, 2, 3]


def no_state(mechanism):
    return mechanism.initial_state(3, tf.float32)


@pytest.mark.parametrize("normalize", [False, True])
def test_bahdanau(normalize):
    attention = seq2seq.BahdanauAttention(7, MEMORY, LENGTHS, normalize=normalize)
    weights, state = attention(tf.constant(QUERY), no_state(attention))
    assert weights.shape.as_list() == [3, 5] and state is weights
    (found, memory), values = run_with_variables([weights, attention.values])
    names = {"memory_layer/kernel", "bahdanau_attention/query_layer/kernel"}
    names |= {"bahdanau_attention/attention_v"}
    if normalize:
        names |= {"bahdanau_attention/attention_g", "bahdanau_attention/attention_b"}
    assert set(values) == names
    scope = "bahdanau_attention"
    score = bahdanau_score(
        QUERY @ values[f"{scope}/query_layer/kernel"],
        masked(MEMORY, LENGTHS) @ values["memory_layer/kernel"],
        values[f"{scope}/attention_v"],
        values.get(f"{scope}/attention_g"),
        values.get(f"{scope}/attention_b", 0.0),
    )
    np.testing.assert_allclose(memory, masked(MEMORY, LENGTHS))
    np.testing.assert_allclose(found, softmax(hidden(score, LENGTHS)), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[1, 2:], 0)


@pytest.mark.parametrize("scale", [False, True])
def test_luong(scale):
    attention = seq2seq.LuongAttention(6, MEMORY, LENGTHS, scale=scale)
    weights, _ = attention(tf.constant(QUERY), no_state(attention))
    found, values = run_with_variables(weights)
    names = {"memory_layer/kernel"} | ({"luong_attention/attention_g"} if scale else set())
    assert set(values) == names
    keys = masked(MEMORY, LENGTHS) @ values["memory_layer/kernel"]
    score = luong_score(QUERY, keys, values.get("luong_attention/attention_g", 1.0))
    np.testing.assert_allclose(found, softmax(hidden(score, LENGTHS)), rtol=1e-4, atol=1e-6)


def test_learned_factors_begin_neutral():
    attention = seq2seq.LuongAttention(6, MEMORY, scale=True)
    attention(tf.constant(QUERY), no_state(attention))
    attention = seq2seq.BahdanauAttention(4, MEMORY, normalize=True)
    attention(tf.constant(QUERY), no_state(attention))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = {v.op.name: sess.run(v) for v in tf.global_variables()}
    assert values["luong_attention/attention_g"] == 1
    assert values["bahdanau_attention/attention_g"] == 0.5
    np.testing.assert_array_equal(values["bahdanau_attention/attention_b"], np.zeros(4))


def test_other_probabilities_and_mask_values():
    attention = seq2seq.LuongAttention(
        6, MEMORY, LENGTHS, probability_fn=lambda score: score * 2, score_mask_value=-3.0
    )
    weights, _ = attention(tf.constant(QUERY), no_state(attention))
    hard = seq2seq.LuongAttention(6, MEMORY, LENGTHS, probability_fn=seq2seq.hardmax)
    hard_weights, _ = hard(tf.constant(QUERY), no_state(hard))
    (found, hard_found), values = run_with_variables([weights, hard_weights])
    score = luong_score(QUERY, masked(MEMORY, LENGTHS) @ values["memory_layer/kernel"])
    np.testing.assert_allclose(found, 2 * hidden(score, LENGTHS, -3), rtol=1e-4, atol=1e-5)
    score = hidden(
        luong_score(QUERY, masked(MEMORY, LENGTHS) @ values["memory_layer_1/kernel"]), LENGTHS
    )
    np.testing.assert_array_equal(hard_found, score == score.max(1, keepdims=True))


def test_without_lengths_everything_is_seen():
    attention = seq2seq.LuongAttention(6, MEMORY)
    weights, _ = attention(tf.constant(QUERY), no_state(attention))
    found, values = run_with_variables(weights)
    score = luong_score(QUERY, MEMORY @ values["memory_layer/kernel"])
    np.testing.assert_allclose(found, softmax(score), rtol=1e-4, atol=1e-6)


def test_keys_and_values_of_ones_own():
    attention = seq2seq.LuongAttention(
        6, MEMORY, custom_key_value_fn=lambda keys, values: (keys * 2, values + 1)
    )
    weights, _ = attention(tf.constant(QUERY), no_state(attention))
    (found, values_found), values = run_with_variables([weights, attention.values])
    np.testing.assert_allclose(values_found, MEMORY + 1)
    score = luong_score(QUERY, 2 * MEMORY @ values["memory_layer/kernel"])
    np.testing.assert_allclose(found, softmax(score), rtol=1e-4, atol=1e-6)


def test_sizes_that_are_not_known():
    memory = tf.placeholder(tf.float32, [None, None, 4])
    query = tf.placeholder(tf.float32, [None, 6])
    lengths = tf.placeholder(tf.int64, [None])
    attention = seq2seq.BahdanauAttention(7, memory, lengths)
    state = attention.initial_state(tf.shape(query)[0], tf.float32)
    weights, _ = attention(query, state)
    feed = {memory: MEMORY, query: QUERY, lengths: LENGTHS}
    (found, zeros), _ = run_with_variables([weights, state], feed)
    np.testing.assert_array_equal(zeros, np.zeros((3, 5)))
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found[1, 2:], 0)


@pytest.mark.parametrize("kind", ["BahdanauAttention", "LuongAttention"])
def test_derivatives(kind):
    options = {"normalize": True} if kind == "BahdanauAttention" else {"scale": True}
    memory, query = MEMORY.astype(np.float64), QUERY.astype(np.float64)
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.float64, a.shape) for a in (memory, query)]
        attention = getattr(seq2seq, kind)(6, inputs[0], LENGTHS, **options)
        weights, _ = attention(inputs[1], None)
        tf.set_random_seed(1)
        with session(INTERPRETED, graph) as sess, sess.as_default():
            sess.run(tf.global_variables_initializer())
            error = tf.test.compute_gradient_error(
                inputs, [a.shape for a in (memory, query)], weights, [3, 5], [memory, query], 1e-5
            )
            assert error < 1e-7
            for variable in tf.trainable_variables():
                value = sess.run(variable)
                error = tf.test.compute_gradient_error(
                    variable,
                    value.shape,
                    weights,
                    [3, 5],
                    value,
                    1e-5,
                    extra_feed_dict=dict(zip(inputs, [memory, query], strict=True)),
                )
                assert error < 1e-7, variable.name


def test_mistakes():
    with pytest.raises(ValueError, match="Incompatible or unknown inner dimensions"):
        seq2seq.LuongAttention(5, MEMORY)(tf.constant(QUERY), None)
    with pytest.raises(ValueError, match="fully defined inner dims"):
        seq2seq.LuongAttention(5, tf.placeholder(tf.float32, [2, 3, None]))
    with pytest.raises(ValueError, match=r"\[batch, places, depth\]"):
        seq2seq.LuongAttention(5, MEMORY[0])
    lengths = tf.placeholder(tf.int32, [3])
    attention = seq2seq.LuongAttention(6, MEMORY, lengths)
    weights, _ = attention(tf.constant(QUERY), None)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
                sess.run(weights, {lengths: [1, 0, 2]})
