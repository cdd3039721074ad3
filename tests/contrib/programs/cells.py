"""The cells and fused networks of ``tf.contrib.rnn``, along a sequence, with gradients."""

import numpy as np

from tests.contrib.programs.frame import values

LENGTHS = [3, 1]


def _fetch(tf, run, outputs, state):
    """The outputs, the last state, and gradients of all variables."""
    leaves = tf.contrib.framework.nest.flatten([outputs, state])
    weights = tf.trainable_variables()
    grads = tf.gradients([tf.reduce_sum(tf.square(leaf)) for leaf in leaves], weights)
    return run(leaves + [grad for grad in grads if grad is not None])


def _along(tf, run, cell, *size, **how):
    inputs = tf.constant(values(1, 2, 3, *(size or (4,))))
    how.setdefault("sequence_length", LENGTHS)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32, **how)
    return _fetch(tf, run, outputs, state)


def attention(tf, run):
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    return _along(tf, run, tf.contrib.rnn.AttentionCellWrapper(cell, 3, attn_vec_size=2))


def attention_with_joined_state(tf, run):
    cell = tf.nn.rnn_cell.GRUCell(5)
    wrapped = tf.contrib.rnn.AttentionCellWrapper(
        cell, 2, attn_size=3, input_size=6, state_is_tuple=False
    )
    steps = [tf.constant(values(i, 2, 4)) for i in range(3)]
    outputs, state = tf.nn.static_rnn(wrapped, steps, dtype=tf.float32)
    return _fetch(tf, run, outputs, state)


def highway(tf, run):
    return _along(tf, run, tf.contrib.rnn.HighwayWrapper(tf.nn.rnn_cell.GRUCell(4)))


def highway_with_two_gates(tf, run):
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    return _along(tf, run, tf.contrib.rnn.HighwayWrapper(cell, False, 2.0))


def ugrnn(tf, run):
    return _along(tf, run, tf.contrib.rnn.UGRNNCell(5, forget_bias=0.5))


def intersection(tf, run):
    cell = tf.contrib.rnn.MultiRNNCell(
        [tf.contrib.rnn.IntersectionRNNCell(5, num_in_proj=5) for _ in range(2)]
    )
    return _along(tf, run, cell)


def nas(tf, run):
    return _along(tf, run, tf.contrib.rnn.NASCell(5))


def nas_with_projection(tf, run):
    return _along(tf, run, tf.contrib.rnn.NASCell(5, num_proj=3, use_bias=True))


def coupled(tf, run):
    return _along(tf, run, tf.contrib.rnn.CoupledInputForgetGateLSTMCell(5))


def derived_from_a_normalised_cell(tf, run):
    class Cell(tf.contrib.rnn.LayerNormBasicLSTMCell):
        def call(self, inputs, state):
            c, h = state
            gates = self._linear(tf.concat([inputs, h], 1))
            i, j, f, o = tf.split(gates, 4, axis=1)
            i = self._norm(i, "input", dtype=inputs.dtype)
            new_c = self._norm(c * tf.sigmoid(f) + tf.sigmoid(i) * self._activation(j), "state")
            new_h = self._activation(new_c) * tf.sigmoid(o)
            return new_h, tf.nn.rnn_cell.LSTMStateTuple(new_c, new_h)

    return _along(tf, run, Cell(5, norm_gain=0.8, norm_shift=0.1))


def coupled_with_an_initializer(tf, run):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        5, use_peepholes=True, initializer=tf.constant_initializer(0.25), num_proj=3
    )
    with tf.variable_scope("begun", initializer=tf.constant_initializer(0.5)):
        return _along(tf, run, cell)


def block_cell_with_peepholes(tf, run):
    found = _along(tf, run, tf.contrib.rnn.LSTMBlockCell(5, use_peephole=True))
    # Seeds of a graph depend on the order in which variables are made.
    names = " ".join(variable.op.name for variable in tf.trainable_variables())
    return found + [np.frombuffer(names.encode(), np.uint8)]


def coupled_with_everything(tf, run):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        5,
        use_peepholes=True,
        num_proj=3,
        proj_clip=0.2,
        num_unit_shards=2,
        num_proj_shards=2,
        layer_norm=True,
        norm_gain=1.5,
        norm_shift=0.1,
    )
    return _along(tf, run, cell, sequence_length=None)


def grouped(tf, run):
    return _along(tf, run, tf.contrib.rnn.GLSTMCell(6, number_of_groups=2))


def grouped_with_projection(tf, run):
    return _along(tf, run, tf.contrib.rnn.GLSTMCell(6, num_proj=4, number_of_groups=2))


def phased(tf, run):
    cell = tf.contrib.rnn.PhasedLSTMCell(5, ratio_on=0.6, leak=0.01)
    times = tf.constant([[[0.1], [0.5], [1.25]], [[3.0], [3.5], [9.0]]])
    inputs = (times, tf.constant(values(1, 2, 3, 4)))
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, LENGTHS, dtype=tf.float32)
    return _fetch(tf, run, outputs, state)


def phased_with_peepholes(tf, run):
    cell = tf.contrib.rnn.PhasedLSTMCell(5, use_peepholes=True, trainable_ratio_on=False)
    inputs = (tf.constant([[0.1], [2.5]]), tf.constant(values(1, 2, 4)))
    return _fetch(tf, run, *cell(inputs, cell.zero_state(2, tf.float32)))


def convolutional_1d(tf, run):
    cell = tf.contrib.rnn.Conv1DLSTMCell(input_shape=[6, 2], output_channels=3, kernel_shape=[3])
    return _along(tf, run, cell, 6, 2)


def convolutional_2d(tf, run):
    cell = tf.contrib.rnn.ConvLSTMCell(2, [4, 5, 2], 3, [3, 2], forget_bias=0.5)
    return _along(tf, run, cell, 4, 5, 2)


def convolutional_3d(tf, run):
    cell = tf.contrib.rnn.Conv3DLSTMCell(
        input_shape=[3, 3, 2, 2], output_channels=2, kernel_shape=[2, 2, 2], use_bias=False
    )
    return _along(tf, run, cell, 3, 3, 2, 2)


def convolutional_with_skip(tf, run):
    cell = tf.contrib.rnn.Conv2DLSTMCell(
        input_shape=[4, 5, 2], output_channels=3, kernel_shape=[3, 3], skip_connection=True
    )
    state = cell.zero_state(2, tf.float32)
    return _fetch(tf, run, *cell(tf.constant(values(1, 2, 4, 5, 2)), state))


def simple_recurrent_unit(tf, run):
    return _along(tf, run, tf.contrib.rnn.SRUCell(5))


def independent(tf, run):
    return _along(tf, run, tf.contrib.rnn.IndRNNCell(5, activation=tf.nn.relu))


def independent_gru(tf, run):
    return _along(tf, run, tf.contrib.rnn.IndyGRUCell(5))


def independent_lstm(tf, run):
    return _along(tf, run, tf.contrib.rnn.IndyLSTMCell(5, forget_bias=0.5))


def gru_block(tf, run):
    return _along(tf, run, tf.contrib.rnn.GRUBlockCell(5))


def fused_lstm(tf, run):
    inputs = tf.constant(values(1, 3, 2, 4))
    cell = tf.contrib.rnn.LSTMBlockFusedCell(5)
    return _fetch(tf, run, *cell(inputs, dtype=tf.float32))


def fused_lstm_with_everything(tf, run):
    cell = tf.contrib.rnn.LSTMBlockFusedCell(
        5, forget_bias=0.5, cell_clip=0.3, use_peephole=True, name="fused"
    )
    inputs = tf.constant(values(1, 3, 2, 4))
    start = (tf.constant(values(7, 2, 5)), tf.constant(values(8, 2, 5)))
    # Without gradients: TensorFlow's are wrong where the memory is clipped.
    outputs, state = cell(inputs, initial_state=start, sequence_length=[2, 0])
    return run([outputs] + list(state))


def fused_bidirectional(tf, run):
    inputs = tf.constant(values(1, 3, 2, 4))
    forward = tf.contrib.rnn.LSTMBlockFusedCell(3)
    backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(3))
    found = []
    for name, cell in (("fw", forward), ("bw", backward)):
        with tf.variable_scope(name):
            found.append(cell(inputs, dtype=tf.float32, sequence_length=LENGTHS))
    return _fetch(tf, run, [out for out, _ in found], [state for _, state in found])


def adapted(tf, run):
    inputs = tf.constant(values(1, 3, 2, 4))
    found = []
    for dynamic in (False, True):
        cell = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.BasicRNNCell(3), dynamic)
        cell = tf.contrib.rnn.TimeReversedFusedRNN(cell)
        with tf.variable_scope("dynamic" if dynamic else "static"):
            found.append(cell(inputs, dtype=tf.float32))
            as_list = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.GRUCell(3), dynamic)
            found.append(as_list(tf.unstack(inputs), dtype=tf.float32, scope="listed"))
    return _fetch(tf, run, [out for out, _ in found], [state for _, state in found])


def cudnn_compatible_lstm(tf, run):
    return _along(tf, run, tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(5))


def cudnn_compatible_gru(tf, run):
    return _along(tf, run, tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(5))
