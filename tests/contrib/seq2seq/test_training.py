"""A small model with attention learns to reverse digits; greedy and beam search use it."""

from __future__ import annotations

import numpy as np

import runnel as tf

seq2seq = tf.contrib.seq2seq
GO, END, FIRST_DIGIT, DIGITS = 0, 1, 2, 6
VOCABULARY = FIRST_DIGIT + DIGITS
LONGEST, UNITS, BEAMS = 4, 32, 3


def batch(rng, size):
    """Sequences of digits, their lengths, and the same reversed, with the end token."""
    lengths = rng.integers(2, LONGEST + 1, size)
    sources = np.full((size, LONGEST), END)
    targets = np.full((size, LONGEST + 1), END)
    for row, length in enumerate(lengths):
        digits = rng.integers(FIRST_DIGIT, VOCABULARY, length)
        sources[row, :length] = digits
        targets[row, :length] = digits[::-1]
    return sources, lengths, targets


def test_reversing_digits():
    tf.set_random_seed(1)
    source = tf.placeholder(tf.int32, [None, None])
    length = tf.placeholder(tf.int32, [None])
    target = tf.placeholder(tf.int32, [None, None])
    size = tf.shape(source)[0]
    table = tf.get_variable("table", [VOCABULARY, 16])
    memory, state = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(UNITS), tf.gather(table, source), length, dtype=tf.float32
    )
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    output_layer = tf.layers.Dense(VOCABULARY, use_bias=False)

    def decode(make, tiles, **options):
        """Decodes with the same variables, over a memory repeated for each beam."""
        tiled = seq2seq.tile_batch((memory, length, state), tiles) if tiles > 1 else None
        places, lengths, begin = tiled or (memory, length, state)
        with tf.variable_scope("decode", reuse=tf.AUTO_REUSE):
            attention = seq2seq.LuongAttention(UNITS, places, lengths, scale=True)
            attending = seq2seq.AttentionWrapper(cell, attention, UNITS)
            initial = attending.zero_state(size * tiles, tf.float32).clone(cell_state=begin)
            return seq2seq.dynamic_decode(make(attending, initial), **options)

    shifted = tf.concat([tf.fill([size, 1], GO), target[:, :-1]], 1)
    helper = seq2seq.TrainingHelper(tf.gather(table, shifted), length + 1)
    outputs, _, _ = decode(
        lambda cell, initial: seq2seq.BasicDecoder(cell, helper, initial, output_layer), 1
    )
    steps = tf.shape(outputs.rnn_output)[1]
    weights = tf.sequence_mask(length + 1, steps, tf.float32)
    loss = seq2seq.sequence_loss(outputs.rnn_output, target[:, :steps], weights)
    train = tf.train.AdamOptimizer(0.02).minimize(loss)

    start = tf.fill([size], GO)
    choosing = seq2seq.GreedyEmbeddingHelper(table, start, END)
    greedy, _, _ = decode(
        lambda cell, initial: seq2seq.BasicDecoder(cell, choosing, initial, output_layer),
        1,
        maximum_iterations=LONGEST + 1,
        impute_finished=False,
    )
    beams, _, _ = decode(
        lambda cell, initial: seq2seq.BeamSearchDecoder(
            cell, table, start, END, initial, BEAMS, output_layer
        ),
        BEAMS,
        maximum_iterations=LONGEST + 1,
    )
    names = [v.op.name for v in tf.trainable_variables()]
    assert len(names) == len(set(names)) == 13, names  # the three decoders share them

    rng = np.random.default_rng(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(170):
            sources, lengths, targets = batch(rng, 64)
            sess.run(train, {source: sources, length: lengths, target: targets})
        sources, lengths, targets = batch(rng, 200)
        feed = {source: sources, length: lengths}
        one, best = sess.run([greedy.sample_id, beams.predicted_ids[:, :, 0]], feed)
    for found in (one, best):
        padded = np.full_like(targets, END)
        padded[:, : found.shape[1]] = found
        kept = np.arange(LONGEST + 1) <= lengths[:, None]
        exact = ((padded == targets) | ~kept).all(1)
        assert exact.mean() > 0.95
