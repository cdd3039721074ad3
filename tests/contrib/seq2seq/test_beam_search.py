"""Beam search against trying every sequence, and against a textbook search in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import runnel as tf
from runnel.contrib.seq2seq.beam_score import length_penalty, scores_of
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.contrib.seq2seq.formulas import (
    gru_step,
    hidden,
    luong_score,
    masked,
    run_with_variables,
)
from tests.contrib.seq2seq.formulas import softmax as normalized
from tests.contrib.seq2seq.tiny_cell import (
    TABLE,
    UNITS,
    VOCABULARY,
    TinyCell,
    log_softmax,
    step,
)

seq2seq = tf.contrib.seq2seq
RNG = np.random.default_rng(1)
BATCH, STEPS, START, END = 3, 3, 1, 0
STATE = RNG.normal(size=(BATCH, UNITS)).astype(np.float32)


def search(width, state=STATE, cell=None, limit=STEPS, **options):
    decoder = seq2seq.BeamSearchDecoder(
        cell or TinyCell(),
        tf.constant(TABLE),
        tf.fill([BATCH], START),
        END,
        seq2seq.tile_batch(tf.constant(state), width),
        width,
        **options,
    )
    return seq2seq.dynamic_decode(decoder, maximum_iterations=limit)


def log_probability(state, tokens):
    """Of a sequence, up to and with its end token."""
    total, state, last = 0.0, state.astype(np.float64), START
    for token in tokens:
        logits, state = step(TABLE[last], state)
        total += log_softmax(logits)[token]
        if token == END:
            break
        last = token
    return total


def hypotheses():
    """Every sequence of at most STEPS tokens; what follows the end is the end."""
    found = set()
    for tokens in itertools.product(range(VOCABULARY), repeat=STEPS):
        if END in tokens:
            first = tokens.index(END)
            tokens = tokens[:first] + (END,) * (STEPS - first)
        found.add(tokens)
    return sorted(found)


def scored_length(tokens):
    """As TensorFlow counts: the end adds 0 in the step in which it comes, and 1 afterwards."""
    if END not in tokens:
        return STEPS
    return min(tokens.index(END) + 1, STEPS - 1)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_beam_as_wide_as_the_tree_finds_every_sequence(weight):
    width = VOCABULARY**STEPS
    outputs, state, _ = search(width, length_penalty_weight=weight)
    scores, ids, log_probs = run_both(
        [
            outputs.beam_search_decoder_output.scores[:, -1],
            outputs.predicted_ids,
            state.log_probs,
        ],
        rtol=1e-4,
        atol=1e-4,
    )
    everything = hypotheses()
    for b in range(BATCH):
        log_p = np.array([log_probability(STATE[b], tokens) for tokens in everything])
        lengths = np.array([scored_length(tokens) for tokens in everything])
        score = log_p / ((5 + lengths) / 6) ** weight
        order = np.argsort(-score)
        count = len(everything)
        np.testing.assert_allclose(scores[b, :count], score[order], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(log_probs[b, :count], log_p[order], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(ids[b, :, :count].T, np.array(everything)[order])
        assert (scores[b, count:] < -1e30).all()  # there are no others


def textbook(state, width, limit):
    """Keep the best ``width`` of all continuations of ``width`` hypotheses."""
    beams = [(0.0, [], state.astype(np.float64), False)]
    for _ in range(limit):
        grown = []
        for total, tokens, before, finished in beams:
            if finished:
                grown.append((total, [*tokens, END], before, True))
                continue
            logits, after = step(TABLE[tokens[-1] if tokens else START], before)
            for token, log_p in enumerate(log_softmax(logits)):
                grown.append((total + log_p, [*tokens, token], after, token == END))
        beams = sorted(grown, key=lambda beam: -beam[0])[:width]
        if all(finished for *_, finished in beams):
            break
    return beams


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_narrow_beam(width):
    outputs, state, _ = search(width, limit=8)
    assert outputs.predicted_ids.shape.as_list() == [BATCH, None, width]
    ids, cells, log_probs, lengths, finished = run_both(
        [outputs.predicted_ids, state.cell_state, state.log_probs, state.lengths, state.finished],
        rtol=1e-4,
        atol=1e-4,
    )
    for b in range(BATCH):
        for k, (total, tokens, cell, ended) in enumerate(textbook(STATE[b], width, 8)):
            padded = tokens + [END] * (ids.shape[1] - len(tokens))
            np.testing.assert_array_equal(ids[b, :, k], padded)
            np.testing.assert_allclose(log_probs[b, k], total, rtol=1e-4, atol=1e-4)
            count = tokens.index(END) + 1 if ended else len(tokens)
            assert lengths[b, k] == count and finished[b, k] == ended
            if not ended:
                np.testing.assert_allclose(cells[b, k], cell, rtol=1e-3, atol=1e-3)


def test_a_beam_of_one_is_greedy():
    helper = seq2seq.GreedyEmbeddingHelper(TABLE, tf.fill([BATCH], START), END)
    decoder = seq2seq.BasicDecoder(TinyCell(), helper, tf.constant(STATE))
    greedy, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=8, impute_finished=True)
    outputs, _, _ = search(1, limit=8)
    one, other = run_both([outputs.predicted_ids[:, :, 0], greedy.sample_id])
    np.testing.assert_array_equal(one, other)


def test_an_output_layer_and_a_batch_that_is_not_known():
    state = tf.placeholder(tf.float32, [None, UNITS])
    start = tf.fill([tf.shape(state)[0]], START)
    kernel = RNG.normal(size=(VOCABULARY, 5)).astype(np.float32)
    layer = tf.layers.Dense(5, use_bias=False, kernel_initializer=tf.constant_initializer(kernel))
    decoder = seq2seq.BeamSearchDecoder(
        TinyCell(),
        lambda ids: tf.gather(tf.constant(TABLE), ids % VOCABULARY),
        start,
        END,
        seq2seq.tile_batch(state, 2),
        2,
        output_layer=layer,
    )
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=1)
    scores = run_both(
        outputs.beam_search_decoder_output.scores[:, 0],
        {state: STATE},
        init=tf.global_variables_initializer(),
        rtol=1e-4,
        atol=1e-4,
    )
    logits, _ = step(TABLE[START], STATE.astype(np.float64))
    expected = np.sort(log_softmax(logits @ kernel), -1)[:, ::-1][:, :2]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def test_attention_its_history_and_coverage():
    """The weights of each hypothesis are those that it met, whatever beams it stood on."""
    width, limit, places = 3, 4, 5
    memory = RNG.normal(size=(BATCH, places, 4)).astype(np.float32)
    lengths = [5, 3, 4]
    attention = seq2seq.LuongAttention(
        UNITS,
        seq2seq.tile_batch(tf.constant(memory), width),
        seq2seq.tile_batch(tf.constant(lengths), width),
    )
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS), attention, attention_layer_size=6, alignment_history=True
    )
    decoder = seq2seq.BeamSearchDecoder(
        cell,
        tf.constant(TABLE),
        tf.fill([BATCH], START),
        END,
        cell.zero_state(BATCH * width, tf.float32),
        width,
        output_layer=tf.layers.Dense(VOCABULARY, name="logits"),
        coverage_penalty_weight=0.2,
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=limit)
    (ids, history, scores, log_probs, counts, total), values = run_with_variables(
        [
            outputs.predicted_ids,
            state.cell_state.alignment_history,
            outputs.beam_search_decoder_output.scores[:, -1],
            state.log_probs,
            state.lengths,
            state.accumulated_attention_probs,
        ]
    )
    assert history.shape == (limit, BATCH * width, places)
    history = history.reshape(limit, BATCH, width, places)
    root = "decoder/attention_wrapper"
    values_of = masked(memory, lengths)
    keys = values_of @ values["memory_layer/kernel"]
    for b in range(BATCH):
        for k in range(width):
            hidden_state, attended = np.zeros((1, UNITS)), np.zeros((1, 6))
            last, summed, log_p = START, np.zeros(places), 0.0
            for t in range(counts[b, k]):
                x = np.concatenate([TABLE[[last]], attended], 1)
                hidden_state = gru_step(x, hidden_state, values, f"{root}/gru_cell")
                weights = normalized(
                    hidden(luong_score(hidden_state, keys[b : b + 1]), lengths[b : b + 1])
                )
                context = weights @ values_of[b]
                attended = (
                    np.concatenate([hidden_state, context], 1)
                    @ values[f"{root}/attention_layer/kernel"]
                )
                logits = attended @ values["decoder/logits/kernel"]
                logits = logits + values["decoder/logits/bias"]
                last = ids[b, t, k]
                log_p += log_softmax(logits)[0, last]
                summed += weights[0]
                np.testing.assert_allclose(history[t, b, k], weights[0], rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(log_probs[b, k], log_p, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(total[b, k], summed, rtol=1e-3, atol=1e-4)
            penalty = 0.2 * np.log(np.minimum(total[b, k, : lengths[b]], 1)).sum()
            if counts[b, k] == limit:  # only what had ended counts, as in TensorFlow
                penalty = 0.0
            np.testing.assert_allclose(scores[b, k], log_probs[b, k] + penalty, rtol=1e-4)


def test_penalties():
    """Wu et al. (2016), equation 14; who has not ended may still look at the rest."""
    lengths = np.array([[[1, 4]]])
    log_probs = np.array([[[-2.0, -3.0]]], np.float32)
    accumulated = tf.constant([[[0.5, 2.0]]])

    def scores(finished):
        weights = 0.8, 0.3, tf.constant([[finished]])
        return scores_of(tf.constant(log_probs), tf.constant(lengths), *weights, accumulated)

    factor, ended, going_on = run_both(
        [length_penalty(lengths, 0.8), scores(finished=True), scores(finished=False)]
    )
    expected = ((5.0 + lengths) / 6.0) ** 0.8
    np.testing.assert_allclose(factor, expected, rtol=1e-5)
    np.testing.assert_allclose(ended, log_probs / expected + 0.3 * np.log(0.5), rtol=1e-5)
    np.testing.assert_allclose(going_on, log_probs / expected, rtol=1e-5)
    with pytest.raises(ValueError, match="penalty_weight should be a scalar"):
        length_penalty(lengths, [0.8])


def test_gather_tree_from_array():
    rng = np.random.default_rng(5)
    time, batch, width = 4, 2, 3
    parents = rng.integers(0, width, (time, batch, width)).astype(np.int32)
    lengths = np.array([[4, 4, 3], [2, 4, 4]])
    t = rng.normal(size=(time, batch * width, 2)).astype(np.float32)
    ordered = run_both(seq2seq.gather_tree_from_array(t, parents, lengths))
    rows = t.reshape(time, batch, width, 2)
    for b, k in itertools.product(range(batch), range(width)):
        place = k
        for at in reversed(range(time)):
            inside = at < lengths[b, k]
            if inside:
                # Beams beyond their end stay where they are.
                expected = rows[at, b, place]
                np.testing.assert_array_equal(ordered.reshape(rows.shape)[at, b, k], expected)
            place = parents[at, b, place]


def test_mistakes():
    tiled = seq2seq.tile_batch(tf.constant(STATE), 2)
    start = tf.fill([BATCH], START)
    build = seq2seq.BeamSearchDecoder
    with pytest.raises(ValueError, match="tile_batch"):
        build(TinyCell(), TABLE, start, END, tf.constant(STATE), 2)
    with pytest.raises(ValueError, match="beam_width must be a positive integer"):
        build(TinyCell(), TABLE, start, END, tiled, 0)
    with pytest.raises(ValueError, match="start_tokens must be a vector"):
        build(TinyCell(), TABLE, START, END, tiled, 2)
    with pytest.raises(ValueError, match="end_token must be a scalar"):
        build(TinyCell(), TABLE, start, [END], tiled, 2)
    with pytest.raises(TypeError, match="not an RNNCell"):
        build(TABLE, TABLE, start, END, tiled, 2)
    with pytest.raises(ValueError, match="impute_finished"):
        seq2seq.dynamic_decode(build(TinyCell(), TABLE, start, END, tiled, 2), impute_finished=True)
    state = tf.placeholder(tf.float32, [None, UNITS])
    decoder = build(TinyCell(), TABLE, start, END, state, 2)
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=2)
    for level in (INTERPRETED, COMPILED):
        wrong = pytest.raises(tf.errors.InvalidArgumentError, match="tile_batch")
        with session(level) as sess, wrong:
            sess.run(outputs.predicted_ids, {state: STATE})


def test_layers_of_cells_and_several_memories():
    """A beam of one must choose what the greedy decoder does, whatever the state's structure."""
    memories = [RNG.normal(size=(BATCH, n, 4)).astype(np.float32) for n in (5, 5)]
    cells = tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.BasicLSTMCell(UNITS), tf.nn.rnn_cell.LSTMCell(UNITS, use_peepholes=True)]
    )
    projection = tf.layers.Dense(VOCABULARY, name="logits")
    start = tf.fill([BATCH], START)

    def attending():
        mechanisms = [
            seq2seq.LuongAttention(UNITS, memories[0]),
            seq2seq.BahdanauMonotonicAttention(3, memories[1]),
        ]
        wrapper = seq2seq.AttentionWrapper(cells, mechanisms, [4, 3], alignment_history=True)
        return wrapper, wrapper.zero_state(BATCH, tf.float32)

    with tf.variable_scope("decode"):
        wrapper, initial = attending()
        helper = seq2seq.GreedyEmbeddingHelper(TABLE, start, END)
        decoder = seq2seq.BasicDecoder(wrapper, helper, initial, projection)
        greedy, greedy_state, lengths = seq2seq.dynamic_decode(
            decoder, maximum_iterations=6, impute_finished=True
        )
    with tf.variable_scope("decode", reuse=True):
        wrapper, initial = attending()
        search_one = seq2seq.BeamSearchDecoder(
            wrapper, TABLE, start, END, initial, 1, projection, coverage_penalty_weight=0.1
        )
        beams, beam_state, _ = seq2seq.dynamic_decode(
            search_one, maximum_iterations=6, output_time_major=True
        )
    # There is nothing to choose between with one beam, so the coverage changes nothing.
    (one, other, found_lengths, history, beam_history), _ = run_with_variables(
        [
            greedy.sample_id,
            beams.predicted_ids[:, :, 0],
            lengths,
            [array.stack() for array in greedy_state.alignment_history],
            list(beam_state.cell_state.alignment_history),
        ]
    )
    np.testing.assert_array_equal(one, other.T)
    kept = np.arange(one.shape[1])[:, None] < found_lengths
    for a, b in zip(history, beam_history, strict=True):
        np.testing.assert_allclose(a[kept], b[kept], rtol=1e-4, atol=1e-5)
