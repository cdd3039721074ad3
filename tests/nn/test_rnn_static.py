"""``static_rnn`` and the networks made of it: the same as in a loop, and their own mistakes."""

import numpy as np
import pytest

import runnel as tf
from tests.nn import numpy_cells
from tests.nn.weights import run_with_weights, weights

rnn = tf.nn.rnn_cell
X = np.random.default_rng(4).normal(size=(3, 5, 4)).astype(np.float32)
LENGTHS = [5, 0, 2]


def steps(x=X):
    return [tf.constant(x[:, t]) for t in range(x.shape[1])]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_values(lengths):
    outputs, state = tf.nn.static_rnn(
        rnn.LSTMCell(6), steps(), dtype=tf.float32, sequence_length=lengths
    )
    assert [v.op.name for v in tf.global_variables()] == [
        "rnn/lstm_cell/kernel",
        "rnn/lstm_cell/bias",
    ]
    assert len(outputs) == 5
    kernel, bias = weights().values()
    zero = np.zeros([3, 6])
    expected, (c, h) = numpy_cells.along(
        lambda i, s: numpy_cells.lstm(i, s, kernel, bias), X, (zero, zero), lengths
    )
    found, last = run_with_weights([tf.stack(outputs, 1), state])
    close(found, expected)
    close(last.c, c)
    close(last.h, h)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_the_same_as_in_a_loop_with_its_gradients(lengths):
    x = tf.constant(X)
    cell = rnn.MultiRNNCell([rnn.GRUCell(3), rnn.BasicRNNCell(2)])
    unrolled, _ = tf.nn.static_rnn(
        cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths
    )
    looped, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    found = []
    for outputs in (tf.stack(unrolled, 1), looped):
        sources = [x, *tf.trainable_variables()]
        found.append([outputs, *tf.gradients(tf.reduce_sum(tf.sin(outputs)), sources)])
    for one, other in zip(*run_with_weights(found), strict=True):
        close(one, other)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_both_directions(lengths):
    cells = [rnn.GRUCell(3), rnn.GRUCell(2)]
    outputs, fw, bw = tf.nn.static_bidirectional_rnn(
        *cells, steps(), dtype=tf.float32, sequence_length=lengths
    )
    joined, states = tf.nn.bidirectional_dynamic_rnn(*cells, X, lengths, dtype=tf.float32)
    assert outputs[0].shape.as_list() == [3, 5]
    found = run_with_weights([tf.stack(outputs, 1), fw, bw, tf.concat(joined, 2), states])
    close(found[0], found[3])
    close(found[1], found[4][0])
    close(found[2], found[4][1])


def test_a_state_that_is_kept_in_variables():
    class Saver:
        def __init__(self):
            self.variables = {n: tf.Variable(tf.zeros([3, 4]), name=n) for n in "ch"}

        def state(self, name):
            return self.variables[name].read_value()

        def save_state(self, name, value):
            return tf.assign(self.variables[name], value)

    cell = rnn.LSTMCell(4)
    saver = Saver()
    outputs, _ = tf.nn.static_state_saving_rnn(cell, steps(), saver, ("c", "h"))
    twice, _ = tf.nn.static_rnn(cell, steps() * 2, dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(outputs[-1])
        close(sess.run(outputs[-1]), sess.run(twice[-1]))


def test_mistakes():
    with pytest.raises(ValueError, match="no initial_state.*dtype"):
        tf.nn.static_rnn(rnn.GRUCell(3), steps())
    with pytest.raises(TypeError, match="list with an entry for each step.*tf.unstack"):
        tf.nn.static_rnn(rnn.GRUCell(3), tf.constant(X), dtype=tf.float32)
    with pytest.raises(ValueError, match="must not be empty"):
        tf.nn.static_rnn(rnn.GRUCell(3), [], dtype=tf.float32)
    with pytest.raises(ValueError, match="one batch size.* 3 and 2"):
        tf.nn.static_rnn(rnn.GRUCell(3), [tf.ones([3, 4]), tf.ones([2, 4])], dtype=tf.float32)
    with pytest.raises(ValueError, match="2 elements, but the batch has 3"):
        tf.nn.static_rnn(rnn.GRUCell(3), steps(), dtype=tf.float32, sequence_length=[1, 2])
    x = tf.placeholder(tf.float32, [3, None])
    with pytest.raises(ValueError, match=r"size of input .* must be known.*\(3, \?\)"):
        tf.nn.static_rnn(rnn.GRUCell(3), [x], dtype=tf.float32)
    with pytest.raises(ValueError, match="state_name"):
        tf.nn.static_state_saving_rnn(rnn.LSTMCell(3), steps(), None, "state")
    with pytest.raises(ValueError, match="one of both"):
        tf.contrib.rnn.stack_bidirectional_rnn([rnn.GRUCell(3)] * 2, [rnn.GRUCell(3)], steps())
