"""cuDNN's networks compute what the cells do that TensorFlow names for its checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

INPUTS = np.random.RandomState(0).normal(size=(4, 3, 2)).astype(np.float32)
STATE = np.random.RandomState(1).normal(size=(4, 3, 5)).astype(np.float32)
LENGTHS = [4, 2, 3]


def test_a_network_of_both_directions_is_restored_into_cells(tmp_path):
    with tf.Graph().as_default():
        lstm = tf.contrib.cudnn_rnn.CudnnLSTM(2, 5, direction="bidirectional")
        found = lstm(INPUTS, (tf.constant(STATE), tf.constant(2 * STATE)), sequence_lengths=LENGTHS)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            outputs, (h, c) = sess.run(found)
            path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    # The program that TensorFlow's documentation has for such a checkpoint.
    with tf.variable_scope("cudnn_lstm"):
        ways = [
            [tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(5) for _ in range(2)] for _ in range(2)
        ]
        starts = [
            [tf.nn.rnn_cell.LSTMStateTuple(2 * h0, h0) for h0 in map(tf.constant, STATE[way::2])]
            for way in range(2)
        ]
        found = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            *ways, tf.constant(INPUTS), *starts, sequence_length=LENGTHS, time_major=True
        )
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, path)
        expected, forward, backward = sess.run(found)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    states = [forward[0], backward[0], forward[1], backward[1]]
    np.testing.assert_allclose(h, [state.h for state in states], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c, [state.c for state in states], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("CudnnLSTM", "cudnn_lstm"),
        ("CudnnGRU", "cudnn_gru"),
        ("CudnnRNNTanh", "cudnn_rnn_tanh"),
        ("CudnnRNNRelu", "cudnn_rnn_relu"),
    ],
)
def test_networks_of_one_direction_train(name, scope):
    tf.set_random_seed(3)
    network = getattr(tf.contrib.cudnn_rnn, name)(2, 5, dropout=0.5)
    training = tf.placeholder(tf.bool, [])
    outputs, state = network(INPUTS, training=training)
    assert outputs.shape.as_list() == [4, 3, 5]
    assert len(state) == (2 if name == "CudnnLSTM" else 1)
    again, _ = network(INPUTS.transpose(1, 0, 2), time_major=False, training=False)
    assert network.trainable_variables == tf.trainable_variables()
    names = {v.op.name for v in tf.trainable_variables()}
    assert all(n.startswith(f"{scope}/rnn/multi_rnn_cell/cell_") for n in names)
    loss = tf.reduce_mean(tf.square(outputs - 0.2))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, other = sess.run([outputs, again], {training: False})
        np.testing.assert_allclose(one, other.transpose(1, 0, 2), rtol=1e-5, atol=1e-6)
        first = sess.run(loss, {training: False})
        for _ in range(30):
            sess.run(train, {training: True})
        assert sess.run(loss, {training: False}) < first
