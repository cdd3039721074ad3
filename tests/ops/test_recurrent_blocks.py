"""Gradients of recurrent cells as single operations, by finite differences."""

import numpy as np
import pytest

import runnel as tf

BATCH, SIZE, UNITS, TIME = 2, 3, 2, 3


def some(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 0.5


def lstm_inputs(*lead):
    shapes = [
        *((*lead, BATCH, SIZE), (BATCH, UNITS), (BATCH, UNITS), (SIZE + UNITS, 4 * UNITS)),
        *((UNITS,), (UNITS,), (UNITS,), (4 * UNITS,)),
    ]
    return [some(*shape, seed=k) for k, shape in enumerate(shapes)]


def lstm_cell(*given):
    made = tf.get_op_def("LSTMBlockCell")(*given, use_peephole=True, cell_clip=5.0)
    return tf.reduce_sum(made[1] * 0.3 + made[6])


def lstm(*given):
    length = tf.constant(TIME, tf.int64)
    made = tf.get_op_def("BlockLSTM")(length, *given, use_peephole=True, cell_clip=5.0)
    return tf.reduce_sum(made[1] * 0.3 + made[6])


def gru_cell(*given):
    return tf.reduce_sum(tf.square(tf.get_op_def("GRUBlockCell")(*given)[3]))


GRU = [
    some(*shape, seed=20 + k)
    for k, shape in enumerate(
        [
            *((BATCH, SIZE), (BATCH, UNITS), (SIZE + UNITS, 2 * UNITS)),
            *((SIZE + UNITS, UNITS), (2 * UNITS,), (UNITS,)),
        ]
    )
]


@pytest.mark.parametrize(
    ("cell", "inputs"),
    [(lstm_cell, lstm_inputs()), (lstm, lstm_inputs(TIME)), (gru_cell, GRU)],
    ids=["LSTMBlockCell", "BlockLSTM", "GRUBlockCell"],
)
def test_gradients(cell, inputs):
    tensors = [tf.constant(value) for value in inputs]
    y = cell(*tensors)
    with tf.Session() as sess:
        for tensor, value in zip(tensors, inputs):
            error = tf.test.compute_gradient_error(
                tensor, value.shape, y, (), x_init_value=value, delta=1e-2
            )
            assert error < 2e-3, tensor
    assert sess is not None


@pytest.mark.parametrize("jit", [0, 1])
def test_a_sequence_is_its_cells_one_after_another(jit):
    x, c, h, *weights = lstm_inputs(TIME)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = jit
    length = tf.constant(2, tf.int64)
    whole = tf.get_op_def("BlockLSTM")(length, x, c, h, *weights)
    steps = []
    for row in x[:2]:
        made = tf.get_op_def("LSTMBlockCell")(row, c, h, *weights)
        c, h = made[1], made[6]
        steps.append(made)
    with tf.Session(config=config) as sess:
        for _ in range(3):
            along, single = sess.run([list(whole), [list(made) for made in steps]])
    for k, rows in enumerate(along):
        np.testing.assert_allclose(rows[:2], [made[k] for made in single], rtol=1e-5)
        assert not rows[2].any()
