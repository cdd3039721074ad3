"""A cell with attention, step by step in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.contrib.seq2seq.formulas import (
    bahdanau_score,
    gru_step,
    hidden,
    luong_score,
    masked,
    run_with_variables,
    softmax,
)

seq2seq = tf.contrib.seq2seq
RNG = np.random.default_rng(0)
BATCH, PLACES, DEPTH, UNITS, STEPS = 3, 5, 4, 6, 3
MEMORY = RNG.normal(size=(BATCH, PLACES, DEPTH)).astype(np.float32)
OTHER = RNG.normal(size=(BATCH, 2, 3)).astype(np.float32)
INPUTS = RNG.normal(size=(STEPS, BATCH, 2)).astype(np.float32)
LENGTHS = [5, 2, 3]
ROOT = "attention_wrapper"


def unrolled(wrapper, state):
    """The outputs and the state of a few steps of the wrapper."""
    outputs = []
    for x in INPUTS:
        output, state = wrapper(tf.constant(x), state)
        outputs.append(output)
    return outputs, state


def zero_state(wrapper):
    return wrapper.zero_state(BATCH, tf.float32)


@pytest.mark.parametrize("output_attention", [True, False])
def test_luongs_style_and_bahdanaus(output_attention):
    attention = seq2seq.LuongAttention(UNITS, MEMORY, LENGTHS)
    wrapper = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS),
        attention,
        attention_layer_size=7,
        output_attention=output_attention,
        alignment_history=True,
    )
    assert wrapper.output_size == (7 if output_attention else UNITS)
    outputs, state = unrolled(wrapper, zero_state(wrapper))
    (found, weights, attended, history, time), values = run_with_variables(
        [
            outputs,
            state.alignments,
            state.attention,
            state.alignment_history.stack(),
            state.time,
        ]
    )
    assert sorted(values) == [
        f"{ROOT}/attention_layer/kernel",
        f"{ROOT}/gru_cell/candidate/bias",
        f"{ROOT}/gru_cell/candidate/kernel",
        f"{ROOT}/gru_cell/gates/bias",
        f"{ROOT}/gru_cell/gates/kernel",
        "memory_layer/kernel",
    ]
    memory = masked(MEMORY, LENGTHS)
    keys = memory @ values["memory_layer/kernel"]
    cell, attention_value = np.zeros((BATCH, UNITS)), np.zeros((BATCH, 7))
    expected, expected_history = [], []
    for x in INPUTS:
        cell = gru_step(np.concatenate([x, attention_value], 1), cell, values, f"{ROOT}/gru_cell")
        align = softmax(hidden(luong_score(cell, keys), LENGTHS))
        context = np.einsum("bt,btd->bd", align, memory)
        joined = np.concatenate([cell, context], 1)
        attention_value = joined @ values[f"{ROOT}/attention_layer/kernel"]
        expected.append(attention_value if output_attention else cell)
        expected_history.append(align)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(weights, align, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(history, expected_history, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(attended, attention_value, rtol=1e-3, atol=1e-4)
    assert time == STEPS


def test_several_mechanisms_and_ones_own_input_function():
    first = seq2seq.LuongAttention(UNITS, MEMORY)
    second = seq2seq.BahdanauAttention(8, OTHER)
    wrapper = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS),
        [first, second],
        cell_input_fn=lambda inputs, attention: inputs + attention[:, 1:3],
        alignment_history=True,
    )
    assert wrapper.output_size == DEPTH + 3
    assert wrapper.state_size.alignments == (PLACES, 2)
    outputs, state = unrolled(wrapper, zero_state(wrapper))
    (found, weights, histories), values = run_with_variables(
        [outputs, list(state.alignments), [h.stack() for h in state.alignment_history]]
    )
    scope = f"{ROOT}/bahdanau_attention"
    cell, attended = np.zeros((BATCH, UNITS)), np.zeros((BATCH, DEPTH + 3))
    expected = []
    for x in INPUTS:
        cell = gru_step(x + attended[:, 1:3], cell, values, f"{ROOT}/gru_cell")
        aligns = [
            softmax(luong_score(cell, MEMORY @ values["memory_layer/kernel"])),
            softmax(
                bahdanau_score(
                    cell @ values[f"{scope}/query_layer/kernel"],
                    OTHER @ values["memory_layer_1/kernel"],
                    values[f"{scope}/attention_v"],
                )
            ),
        ]
        attended = np.concatenate(
            [np.einsum("bt,btd->bd", a, m) for a, m in zip(aligns, (MEMORY, OTHER), strict=True)], 1
        )
        expected.append(attended)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    for align, found_align, history in zip(aligns, weights, histories, strict=True):
        np.testing.assert_allclose(found_align, align, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(history[-1], align, rtol=1e-3, atol=1e-4)


def test_an_attention_layer_and_an_attention_function_of_ones_own():
    attention = seq2seq.LuongAttention(UNITS, MEMORY)

    def attend(mechanism, cell_output, attention_state, attention_layer):
        weights, state = mechanism(cell_output, attention_state)
        return attention_layer(cell_output), weights, state

    wrapper = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS),
        attention,
        attention_layer=tf.layers.Dense(2, activation=tf.nn.relu, name="mine"),
        attention_fn=attend,
    )
    output, state = wrapper(tf.constant(INPUTS[0]), zero_state(wrapper))
    (found, cell), values = run_with_variables([output, state.cell_state])
    sums = cell @ values[f"{ROOT}/mine/kernel"] + values[f"{ROOT}/mine/bias"]
    np.testing.assert_allclose(found, np.maximum(sums, 0), rtol=1e-3, atol=1e-4)


def test_the_state_to_begin_with():
    begin = tf.constant(RNG.normal(size=(BATCH, UNITS)).astype(np.float32))
    attention = seq2seq.LuongAttention(UNITS, MEMORY)
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    given = seq2seq.AttentionWrapper(cell, attention, initial_cell_state=begin)
    cloned = seq2seq.AttentionWrapper(cell, attention).zero_state(BATCH, tf.float32)
    cloned = cloned.clone(cell_state=begin)
    assert isinstance(cloned, seq2seq.AttentionWrapperState)
    with tf.Session() as sess:
        a, b, c = sess.run([zero_state(given).cell_state, cloned.cell_state, begin])
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(b, c)


def test_cells_in_layers():
    attention = seq2seq.BahdanauAttention(UNITS, MEMORY, LENGTHS)
    layers = tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.BasicLSTMCell(UNITS), tf.nn.rnn_cell.BasicLSTMCell(5)]
    )
    wrapper = seq2seq.AttentionWrapper(layers, attention, attention_layer_size=4)
    outputs, state = unrolled(wrapper, zero_state(wrapper))
    grads = tf.gradients(outputs[-1], tf.trainable_variables())
    assert all(g is not None for g in grads)
    (found, lstm), _ = run_with_variables([outputs, state.cell_state[1].h])
    assert np.shape(found) == (STEPS, BATCH, 4) and lstm.shape == (BATCH, 5)


def test_dynamic_rnn_runs_it():
    attention = seq2seq.LuongAttention(UNITS, MEMORY, LENGTHS)
    wrapper = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), attention)
    unrolled_outputs, _ = unrolled(wrapper, zero_state(wrapper))
    outputs, _ = tf.nn.dynamic_rnn(
        wrapper,
        tf.constant(INPUTS),
        initial_state=zero_state(wrapper),
        dtype=tf.float32,
        time_major=True,
    )
    (one, other), _ = run_with_variables([outputs, tf.stack(unrolled_outputs)])
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_mistakes():
    attention = seq2seq.LuongAttention(UNITS, MEMORY)
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    wrapper = seq2seq.AttentionWrapper(cell, attention)
    with pytest.raises(TypeError, match="AttentionMechanism"):
        seq2seq.AttentionWrapper(cell, cell)
    with pytest.raises(TypeError, match="not an RNNCell"):
        seq2seq.AttentionWrapper(attention, attention)
    with pytest.raises(ValueError, match="Only one of"):
        seq2seq.AttentionWrapper(
            cell, attention, attention_layer_size=3, attention_layer=tf.layers.Dense(3)
        )
    with pytest.raises(ValueError, match="exactly one entry per attention_mechanism, saw: 2 vs 1"):
        seq2seq.AttentionWrapper(cell, attention, attention_layer_size=[3, 4])
    with pytest.raises(TypeError, match="AttentionWrapperState"):
        wrapper(tf.constant(INPUTS[0]), tf.zeros([BATCH, UNITS]))
    with pytest.raises(ValueError, match="tile_batch"):
        wrapper.zero_state(4, tf.float32)
    with pytest.raises(ValueError, match="tile_batch"):
        zero_state(wrapper).clone(cell_state=tf.zeros([4, UNITS]))
    with pytest.raises(ValueError, match="same structure"):
        zero_state(wrapper).clone(cell_state=(tf.zeros([BATCH, UNITS]),) * 2)


def test_a_batch_that_turns_out_wrong():
    memory = tf.placeholder(tf.float32, [None, PLACES, DEPTH])
    attention = seq2seq.LuongAttention(UNITS, memory)
    wrapper = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), attention)
    inputs = tf.placeholder(tf.float32, [None, 2])
    state = wrapper.zero_state(tf.shape(inputs)[0], tf.float32)
    output, _ = wrapper(inputs, state)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match="tile_batch"):
                sess.run(output, {memory: MEMORY[:1], inputs: INPUTS[0]})
