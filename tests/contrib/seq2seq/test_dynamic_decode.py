"""Decoding with every helper, against the same steps in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.contrib.seq2seq.tiny_cell import DEPTH, TABLE, UNITS, VOCABULARY, TinyCell, step

seq2seq = tf.contrib.seq2seq
RNG = np.random.default_rng(0)
BATCH, TIME = 4, 5
INPUTS = RNG.normal(size=(BATCH, TIME, DEPTH)).astype(np.float32)
STATE = RNG.normal(size=(BATCH, UNITS)).astype(np.float32)
LENGTHS = np.array([5, 2, 0, 3], np.int32)
END = 0


def decoded(helper, output_layer=None, **options):
    decoder = seq2seq.BasicDecoder(TinyCell(), helper, tf.constant(STATE), output_layer)
    return seq2seq.dynamic_decode(decoder, **options)


def reference(lengths=LENGTHS, impute=True):
    """Outputs and final state of feeding the inputs."""
    steps = int(max(lengths))
    outputs, state = np.zeros((BATCH, steps, VOCABULARY)), STATE.astype(np.float64)
    for t in range(steps):
        logits, new = step(INPUTS[:, t], state)
        running = (t < lengths)[:, None] | (not impute)
        outputs[:, t] = np.where(running, logits, 0)
        state = np.where(running, new, state)
    return outputs, state


@pytest.mark.parametrize("impute", [True, False])
@pytest.mark.parametrize("time_major", [True, False])
def test_training(impute, time_major):
    inputs = INPUTS.swapaxes(0, 1) if time_major else INPUTS
    helper = seq2seq.TrainingHelper(inputs, LENGTHS, time_major=time_major)
    outputs, state, lengths = decoded(helper, impute_finished=impute, output_time_major=time_major)
    logits, ids, final, found_lengths = run_both(
        [outputs.rnn_output, outputs.sample_id, state, lengths], rtol=1e-4, atol=1e-5
    )
    expected, expected_state = reference(impute=impute)
    if time_major:
        logits, ids = logits.swapaxes(0, 1), ids.swapaxes(0, 1)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ids, expected.argmax(-1))
    np.testing.assert_allclose(final, expected_state, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found_lengths, LENGTHS)


def test_sizes_that_are_not_known_and_structures_of_inputs():
    one, other = (tf.placeholder(tf.float32, [None, None, n]) for n in (1, DEPTH - 1))
    lengths = tf.placeholder(tf.int64, [None])

    class Joined(TinyCell):
        def call(self, inputs, state):
            return super().call(tf.concat([inputs["a"], inputs["b"]], 1), state)

    helper = seq2seq.TrainingHelper({"a": one, "b": other}, lengths)
    state = tf.placeholder(tf.float32, [None, UNITS])
    decoder = seq2seq.BasicDecoder(Joined(), helper, state)
    outputs, _, _ = seq2seq.dynamic_decode(decoder, impute_finished=True)
    assert outputs.rnn_output.shape.as_list() == [None, None, VOCABULARY]
    feed = {one: INPUTS[..., :1], other: INPUTS[..., 1:], lengths: LENGTHS, state: STATE}
    values = run_both(outputs.rnn_output, feed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values, reference()[0], rtol=1e-4, atol=1e-4)


def test_an_output_layer():
    projection = tf.layers.Dense(3, kernel_initializer=tf.constant_initializer(0.5), name="out")
    outputs, _, _ = decoded(seq2seq.TrainingHelper(INPUTS, LENGTHS), projection)
    assert outputs.rnn_output.shape.as_list() == [BATCH, None, 3]
    values = run_both(
        outputs.rnn_output, init=tf.global_variables_initializer(), rtol=1e-4, atol=1e-5
    )
    expected = reference(impute=False)[0].sum(-1, keepdims=True) * 0.5
    np.testing.assert_allclose(values, np.repeat(expected, 3, -1), rtol=1e-4, atol=1e-4)
    assert [v.op.name for v in tf.global_variables()] == ["decoder/out/kernel", "decoder/out/bias"]


@pytest.mark.parametrize("limit", [0, 2, 9])
def test_a_limit(limit):
    maximum = tf.placeholder(tf.int32, [])
    outputs, _, lengths = decoded(
        seq2seq.TrainingHelper(INPUTS, LENGTHS), maximum_iterations=maximum, impute_finished=True
    )
    values, found = run_both([outputs.rnn_output, lengths], {maximum: limit}, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found, np.minimum(LENGTHS, limit))
    np.testing.assert_allclose(values, reference()[0][:, :limit], rtol=1e-4, atol=1e-4)


def greedy_reference(choose=None, limit=6):
    """The likeliest token of each step, or what ``choose`` makes of the logits."""
    choose = choose or (lambda logits: logits.argmax(-1))
    tokens = np.ones(BATCH, int)
    state = STATE.astype(np.float64)
    ids, finished, lengths = [], np.zeros(BATCH, bool), np.zeros(BATCH, int)
    while not finished.all() and len(ids) < limit:
        logits, state = step(TABLE[tokens], state)
        tokens = choose(logits)
        lengths = np.where(finished, lengths, len(ids) + 1)
        ids.append(np.where(finished, 0, tokens))
        finished = finished | (tokens == END)
    return np.array(ids).T, lengths


@pytest.mark.parametrize("as_function", [False, True])
def test_greedy(as_function):
    table = tf.constant(TABLE)
    embedding = (lambda ids: tf.gather(table, ids)) if as_function else table
    helper = seq2seq.GreedyEmbeddingHelper(embedding, tf.ones([BATCH], tf.int32), END)
    outputs, _, lengths = decoded(helper, maximum_iterations=6, impute_finished=True)
    ids, found_lengths = run_both([outputs.sample_id, lengths])
    expected, expected_lengths = greedy_reference()
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(found_lengths, expected_lengths)
    assert END in expected and expected_lengths.max() > 1  # some end, and not at once


def test_sampling_with_a_low_temperature_is_greedy():
    helper = seq2seq.SampleEmbeddingHelper(TABLE, tf.ones([BATCH], tf.int32), END, 1e-4, seed=1)
    outputs, _, _ = decoded(helper, maximum_iterations=6, impute_finished=True)
    np.testing.assert_array_equal(run_both(outputs.sample_id), greedy_reference()[0])


def test_samples_follow_the_distribution():
    many = 4000
    helper = seq2seq.SampleEmbeddingHelper(TABLE, tf.ones([many], tf.int32), END, seed=3)
    state = np.tile(STATE[:1], (many, 1))
    decoder = seq2seq.BasicDecoder(TinyCell(), helper, tf.constant(state))
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=1)
    with tf.Session() as sess:
        ids = sess.run(outputs.sample_id)[:, 0]
    logits, _ = step(TABLE[1], STATE[0].astype(np.float64))
    probabilities = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(
        np.bincount(ids, minlength=VOCABULARY) / many, probabilities, atol=0.03
    )


def test_scheduled_sampling_of_embeddings():
    """With probability 1 the samples are fed, with 0 the truth; -1 marks the truth."""
    for probability in (0.0, 1.0):
        helper = seq2seq.ScheduledEmbeddingTrainingHelper(
            INPUTS, LENGTHS, tf.constant(TABLE), probability, seed=1, scheduling_seed=2
        )
        outputs, _, _ = decoded(helper, impute_finished=True)
        logits, ids = run_both([outputs.rnn_output, outputs.sample_id], rtol=1e-4, atol=1e-5)
        running = np.arange(TIME) < LENGTHS[:, None]
        if probability == 0:
            np.testing.assert_allclose(logits, reference()[0], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(ids[running], -1)
            continue
        assert (ids[running] >= 0).all()
        state = STATE.astype(np.float64)
        x = INPUTS[:, 0]
        for t in range(TIME):
            expected, state = step(x, state)
            alive = running[:, t]
            np.testing.assert_allclose(logits[alive, t], expected[alive], rtol=1e-3, atol=1e-3)
            x = TABLE[ids[:, t]]


@pytest.mark.parametrize("with_function", [False, True])
def test_scheduled_sampling_of_outputs(with_function):
    extra = RNG.normal(size=(BATCH, TIME, 1)).astype(np.float32)
    function = (lambda x: tf.tanh(x[:, : DEPTH - 1])) if with_function else None

    class Narrow(TinyCell):
        output_size = DEPTH - 1

        def call(self, inputs, state):
            logits, state = super().call(inputs, state)
            return logits[:, : DEPTH - 1], state

    helper = seq2seq.ScheduledOutputTrainingHelper(
        INPUTS[..., : DEPTH - 1],
        LENGTHS,
        0.5,
        seed=1,
        next_inputs_fn=function,
        auxiliary_inputs=extra,
    )
    decoder = seq2seq.BasicDecoder(Narrow(), helper, tf.constant(STATE))
    outputs, _, _ = seq2seq.dynamic_decode(decoder, impute_finished=True)
    logits, chosen = run_both([outputs.rnn_output, outputs.sample_id], rtol=1e-4, atol=1e-5)
    running = np.arange(TIME) < LENGTHS[:, None]
    assert set(chosen[running]) == {0, 1}
    state = STATE.astype(np.float64)
    fed = INPUTS[:, 0, : DEPTH - 1]
    for t in range(TIME):
        output, state = step(np.concatenate([fed, extra[:, t]], 1), state)
        output = output[:, : DEPTH - 1]
        alive = running[:, t]
        np.testing.assert_allclose(logits[alive, t], output[alive], rtol=1e-3, atol=1e-3)
        if t + 1 < TIME:
            own = np.tanh(output) if with_function else output
            fed = np.where(chosen[:, t, None] == 1, own, INPUTS[:, t + 1, : DEPTH - 1])


def test_helpers_of_functions():
    custom = seq2seq.CustomHelper(
        initialize_fn=lambda: (tf.zeros([BATCH], tf.bool), tf.constant(INPUTS[:, 0])),
        sample_fn=lambda time, outputs, state: tf.cast(outputs[:, :2] * 10, tf.int64),
        next_inputs_fn=lambda time, outputs, state, sample_ids: (
            tf.fill([BATCH], time >= 2),
            outputs[:, :DEPTH],
            state,
        ),
        sample_ids_shape=[2],
        sample_ids_dtype=tf.int64,
    )
    inference = seq2seq.InferenceHelper(
        sample_fn=lambda outputs: outputs[:, :DEPTH],
        sample_shape=[DEPTH],
        sample_dtype=tf.float32,
        start_inputs=INPUTS[:, 0],
        end_fn=lambda samples: samples[:, 0] > 1.5,
    )
    with pytest.raises(ValueError, match="before initialize"):
        _ = custom.batch_size
    outputs, _, lengths = decoded(custom, maximum_iterations=10)
    inferred, _, inferred_lengths = decoded(inference, maximum_iterations=4, scope="other")
    values = run_both([outputs, lengths, inferred, inferred_lengths], rtol=1e-4, atol=1e-5)
    x, state, expected = INPUTS[:, 0], STATE.astype(np.float64), []
    for _ in range(4):
        logits, state = step(x, state)
        expected.append(logits)
        x = logits[:, :DEPTH]
    expected = np.stack(expected, 1)
    np.testing.assert_allclose(values[0].rnn_output, expected[:, :3], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(values[0].sample_id, np.trunc(values[0].rnn_output[..., :2] * 10))
    np.testing.assert_array_equal(values[1], [3] * BATCH)
    steps = values[2].rnn_output.shape[1]
    np.testing.assert_allclose(values[2].rnn_output, expected[:, :steps], rtol=1e-3, atol=1e-3)
    over = expected[:, :, 0] > 1.5
    ends = np.where(over.any(1), over.argmax(1) + 1, 4)
    np.testing.assert_array_equal(values[3], ends)


def test_gradients_pass_through_decoding():
    """What a step at a time gives, the loop gives: differences of the loop agree."""
    inputs = tf.placeholder(tf.float32, INPUTS.shape)
    state = tf.placeholder(tf.float32, STATE.shape)
    helper = seq2seq.TrainingHelper(inputs, LENGTHS)
    decoder = seq2seq.BasicDecoder(TinyCell(), helper, state)
    outputs, final, _ = seq2seq.dynamic_decode(decoder, impute_finished=True)
    loss = tf.reduce_sum(tf.square(outputs.rnn_output)) / 20 + tf.reduce_sum(final)
    with tf.Session():
        error = tf.test.compute_gradient_error(
            [inputs, state], [INPUTS.shape, STATE.shape], loss, [], [INPUTS, STATE], delta=1e-2
        )
    assert error < 2e-2
    unused = run_both(tf.gradients(loss, inputs)[0], {inputs: INPUTS, state: STATE}, rtol=1e-3)
    np.testing.assert_array_equal(unused[np.arange(TIME) >= LENGTHS[:, None]], 0)


def test_the_scope_of_variables():
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    decoder = seq2seq.BasicDecoder(
        cell, seq2seq.TrainingHelper(INPUTS, LENGTHS), tf.constant(STATE)
    )
    seq2seq.dynamic_decode(decoder, scope="mine")
    assert {v.op.name.split("/")[0] for v in tf.global_variables()} == {"mine"}
    # The cell keeps its variables wherever it is used again.
    seq2seq.dynamic_decode(decoder, scope="again")
    assert {v.op.name.split("/")[0] for v in tf.global_variables()} == {"mine"}


def test_mistakes():
    helper = seq2seq.TrainingHelper(INPUTS, LENGTHS)
    with pytest.raises(TypeError, match="not an RNNCell"):
        seq2seq.BasicDecoder(helper, helper, tf.constant(STATE))
    with pytest.raises(TypeError, match="must be a Helper"):
        seq2seq.BasicDecoder(TinyCell(), TinyCell(), tf.constant(STATE))
    with pytest.raises(TypeError, match="output_layer must be a layer"):
        seq2seq.BasicDecoder(TinyCell(), helper, tf.constant(STATE), output_layer=tf.tanh)
    with pytest.raises(TypeError, match="type Decoder"):
        seq2seq.dynamic_decode(helper)
    with pytest.raises(ValueError, match="sequence_length to be a vector"):
        seq2seq.TrainingHelper(INPUTS, 3)
    with pytest.raises(ValueError, match="start_tokens must be a vector"):
        seq2seq.GreedyEmbeddingHelper(TABLE, 1, END)
    with pytest.raises(ValueError, match="end_token must be a scalar"):
        seq2seq.GreedyEmbeddingHelper(TABLE, [1], [END])
    with pytest.raises(ValueError, match="maximum_iterations must be a scalar"):
        decoded(helper, maximum_iterations=[3])
    with pytest.raises(ValueError, match="sampling_probability must be a scalar"):
        seq2seq.ScheduledOutputTrainingHelper(INPUTS, LENGTHS, [0.1, 0.2])

    class Restless(TinyCell):
        def call(self, inputs, state):
            output, state = super().call(inputs, state)
            return output, (state, state)

    decoder = seq2seq.BasicDecoder(Restless(), helper, tf.constant(STATE))
    with pytest.raises(ValueError, match="same structure"):
        seq2seq.dynamic_decode(decoder)
