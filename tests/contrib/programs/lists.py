"""Sequence to sequence over lists of steps: ``tf.contrib.legacy_seq2seq``."""

import numpy as np

from tests.contrib.programs.frame import values

ENCODED = [[3, 1], [4, 0], [1, 2]]
DECODED = [[0, 2], [5, 1], [3, 3], [2, 0]]


def _steps(tf, numbers):
    return [tf.constant(step) for step in numbers]


def _fetch(tf, run, outputs, state, feed=None):
    """The outputs, the last state, and gradients of all variables."""
    leaves = tf.contrib.framework.nest.flatten([outputs, state])
    weights = tf.trainable_variables()
    grads = tf.gradients([tf.reduce_sum(tf.square(leaf)) for leaf in leaves], weights)
    grads = [tf.convert_to_tensor(grad) for grad in grads if grad is not None]
    return run(leaves + grads, feed)


def _projection(tf, size, symbols):
    return tf.get_variable("proj_w", [size, symbols]), tf.get_variable("proj_b", [symbols])


def embedding_rnn(tf, run):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    found = tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(
        _steps(tf, ENCODED), _steps(tf, DECODED), cell, 5, 6, 3
    )
    return _fetch(tf, run, *found)


def embedding_rnn_fed_back(tf, run):
    found = tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(
        _steps(tf, ENCODED),
        _steps(tf, DECODED),
        tf.nn.rnn_cell.GRUCell(4),
        5,
        6,
        3,
        output_projection=_projection(tf, 4, 6),
        feed_previous=True,
    )
    return _fetch(tf, run, *found)


def embedding_rnn_fed_back_if(tf, run):
    back = tf.placeholder(tf.bool, [])
    found = tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(
        _steps(tf, ENCODED),
        _steps(tf, DECODED),
        tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(4) for _ in range(2)]),
        5,
        6,
        3,
        feed_previous=back,
    )
    return _fetch(tf, run, *found, feed={back: True}) + run(found[0], {back: False})


def tied(tf, run):
    found = tf.contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq(
        _steps(tf, ENCODED), _steps(tf, DECODED), tf.nn.rnn_cell.GRUCell(4), 6, 3
    )
    return _fetch(tf, run, *found)


def tied_fed_back_if(tf, run):
    back = tf.placeholder(tf.bool, [])
    found = tf.contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq(
        _steps(tf, ENCODED),
        _steps(tf, DECODED),
        tf.nn.rnn_cell.BasicLSTMCell(4),
        6,
        3,
        feed_previous=back,
    )
    return _fetch(tf, run, *found, feed={back: True}) + run(found[0], {back: False})


def attention(tf, run):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    found = tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        _steps(tf, ENCODED), _steps(tf, DECODED), cell, 5, 6, 3, num_heads=2
    )
    return _fetch(tf, run, *found)


def attention_fed_back(tf, run):
    found = tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        _steps(tf, ENCODED),
        _steps(tf, DECODED),
        tf.nn.rnn_cell.GRUCell(4),
        5,
        6,
        3,
        output_projection=_projection(tf, 4, 6),
        feed_previous=True,
        initial_state_attention=True,
    )
    return _fetch(tf, run, *found)


def attention_fed_back_if(tf, run):
    back = tf.placeholder(tf.bool, [])
    found = tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        _steps(tf, ENCODED),
        _steps(tf, DECODED),
        tf.nn.rnn_cell.BasicLSTMCell(4),
        5,
        6,
        3,
        feed_previous=back,
    )
    return _fetch(tf, run, *found, feed={back: True}) + run(found[0], {back: False})


def attention_over_states(tf, run):
    states = tf.placeholder(tf.float32, [None, None, 3])
    inputs = [tf.constant(values(i, 2, 5)) for i in range(3)]
    cell = tf.nn.rnn_cell.GRUCell(4)
    found = tf.contrib.legacy_seq2seq.attention_decoder(
        inputs, cell.zero_state(2, tf.float32), states, cell, output_size=7
    )
    return _fetch(tf, run, *found, feed={states: values(9, 2, 6, 3)})


def one_to_many(tf, run):
    cells = {name: tf.nn.rnn_cell.GRUCell(4) for name in "ab"}
    outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
        _steps(tf, ENCODED),
        {"a": _steps(tf, DECODED), "b": _steps(tf, ENCODED)},
        tf.nn.rnn_cell.GRUCell(4),
        cells,
        5,
        {"a": 6, "b": 5},
        3,
    )
    return _fetch(tf, run, [outputs[name] for name in "ab"], [states[name] for name in "ab"])


def buckets(tf, run):
    encoder, decoder = _steps(tf, ENCODED), _steps(tf, DECODED)
    weights = [tf.constant(np.abs(values(i, 2))) for i in range(4)]

    def model(sources, targets):
        return tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
            sources, targets, tf.nn.rnn_cell.GRUCell(4), 5, 6, 3
        )

    found = [
        tf.contrib.legacy_seq2seq.model_with_buckets(
            encoder, decoder, decoder, weights, [(2, 3), (3, 4)], model, per_example_loss=each
        )
        for each in (False,)
    ]
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        found.append(
            tf.contrib.legacy_seq2seq.model_with_buckets(
                encoder, decoder, decoder, weights, [(3, 4)], model, per_example_loss=True
            )
        )
    return _fetch(tf, run, [losses for _, losses in found], [outputs for outputs, _ in found])
