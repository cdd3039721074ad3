"""Wrappers around cells: what they change, and what they leave alone."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.nn.weights import run_with_weights, weights

rnn = tf.nn.rnn_cell


class Echo(rnn.RNNCell):
    """Gives its input back and adds it up, without variables."""

    state_size = output_size = 1000

    def call(self, inputs, state):
        return inputs, state + inputs


ONES = np.ones([8, 1000], np.float32)


def share_of_zeros(values):
    return float((np.asarray(values) == 0).mean())


class TestDropout:
    def test_of_inputs_outputs_and_states(self):
        for argument, places in (("input", (0, 1)), ("output", (0,)), ("state", (1,))):
            cell = rnn.DropoutWrapper(Echo(), **{f"{argument}_keep_prob": 0.75}, seed=1)
            found = run_both(cell(ONES, ONES * 0.0))
            for place, values in enumerate(found):
                if place in places:
                    assert abs(share_of_zeros(values) - 0.25) < 0.03
                    np.testing.assert_allclose(values[values > 0], 1 / 0.75, rtol=1e-6)
                else:
                    np.testing.assert_array_equal(values, ONES)

    def test_another_draw_at_every_step(self):
        cell = rnn.DropoutWrapper(Echo(), output_keep_prob=0.5, seed=1)
        outputs, _ = tf.nn.dynamic_rnn(cell, np.ones([8, 3, 1000], np.float32), dtype=tf.float32)
        values = run_both(outputs)
        agree = (values[:, 0] > 0) == (values[:, 1] > 0)
        assert abs(agree.mean() - 0.5) < 0.05

    def test_the_same_draw_at_every_step_and_for_the_whole_batch(self):
        cell = rnn.DropoutWrapper(
            Echo(), output_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
        )
        outputs, _ = tf.nn.dynamic_rnn(cell, np.ones([8, 3, 1000], np.float32), dtype=tf.float32)
        with tf.Session() as sess:
            values, again = sess.run(outputs), sess.run(outputs)
        np.testing.assert_array_equal(values, np.broadcast_to(values[:1, :1], values.shape))
        assert abs(share_of_zeros(values) - 0.5) < 0.06
        assert (values != again).any()  # but another one in another step of the session

    def test_the_memory_of_an_lstm_is_not_dropped(self):
        cell = rnn.DropoutWrapper(rnn.LSTMCell(50), state_keep_prob=0.5, seed=2)
        _, state = cell(ONES[:, :3], cell.zero_state(8, tf.float32))
        c, h = run_with_weights(state)
        assert share_of_zeros(c) == 0
        assert abs(share_of_zeros(h) - 0.5) < 0.15

    def test_a_filter_of_states(self):
        cell = rnn.DropoutWrapper(
            rnn.MultiRNNCell([rnn.LSTMCell(50), rnn.GRUCell(50)]),
            state_keep_prob=0.5,
            dropout_state_filter_visitor=lambda s: (
                rnn.LSTMStateTuple(c=True, h=False) if isinstance(s, rnn.LSTMStateTuple) else True
            ),
            seed=2,
        )
        _, state = cell(ONES[:, :3], cell.zero_state(8, tf.float32))
        (c, h), s = run_with_weights(state)
        assert share_of_zeros(h) == 0
        assert share_of_zeros(c) > 0.3 and share_of_zeros(s) > 0.3

    def test_a_probability_known_only_at_run_time(self):
        keep = tf.placeholder(tf.float32, [])
        output, _ = rnn.DropoutWrapper(Echo(), output_keep_prob=keep, seed=1)(ONES, ONES)
        with tf.Session() as sess:
            assert share_of_zeros(sess.run(output, {keep: 1.0})) == 0
            assert abs(share_of_zeros(sess.run(output, {keep: 0.25})) - 0.75) < 0.03

    def test_seeds_make_it_repeatable(self):
        def draw(seed):
            with tf.Graph().as_default():
                tf.set_random_seed(1)
                output, _ = rnn.DropoutWrapper(Echo(), output_keep_prob=0.5, seed=seed)(ONES, ONES)
                return tf.Session().run(output)

        np.testing.assert_array_equal(draw(3), draw(3))
        assert (draw(3) != draw(4)).any()

    def test_nothing_to_drop_adds_nothing(self):
        output, _ = rnn.DropoutWrapper(Echo())(ONES, ONES)
        assert not [op for op in tf.get_default_graph().get_operations() if "andom" in op.type]
        np.testing.assert_array_equal(run_both(output), ONES)

    def test_mistakes(self):
        with pytest.raises(ValueError, match="state_keep_prob must be between 0 and 1, not 1.5"):
            rnn.DropoutWrapper(Echo(), state_keep_prob=1.5)
        with pytest.raises(ValueError, match="dtype must be provided"):
            rnn.DropoutWrapper(Echo(), variational_recurrent=True)
        with pytest.raises(ValueError, match="input_size must be provided"):
            rnn.DropoutWrapper(
                Echo(), input_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
            )
        with pytest.raises(TypeError, match="must be callable"):
            rnn.DropoutWrapper(Echo(), dropout_state_filter_visitor=True)
        with pytest.raises(TypeError, match="not an RNNCell: 'output_size' property is missing"):
            rnn.DropoutWrapper(3)


class TestResidual:
    def test_adds_the_input(self):
        output, _ = rnn.ResidualWrapper(Echo())(ONES, ONES)
        np.testing.assert_array_equal(run_both(output), ONES * 2)

    def test_a_function(self):
        cell = rnn.ResidualWrapper(Echo(), residual_fn=lambda i, o: i * 10 + o)
        np.testing.assert_array_equal(run_both(cell(ONES, ONES)[0]), ONES * 11)

    def test_shapes_that_differ(self):
        with pytest.raises(ValueError, match=r"\(8, 1000\).*\(8, 3\).*residual_fn"):
            rnn.ResidualWrapper(rnn.GRUCell(3))(ONES, ONES[:, :3])


def test_a_device():
    cell = rnn.DeviceWrapper(rnn.GRUCell(3), "/cpu:0")
    state = cell.zero_state(8, tf.float32)
    output, _ = cell(ONES[:, :3], state)
    assert "CPU:0" in state.device.upper() and "CPU:0" in output.device.upper()
    assert cell.state_size == cell.output_size == 3
    assert run_with_weights(output).shape == (8, 3)


def test_projections_and_embeddings():
    contrib = tf.contrib.rnn
    cell = contrib.OutputProjectionWrapper(
        contrib.InputProjectionWrapper(rnn.BasicRNNCell(2), num_proj=3), 5, activation=tf.tanh
    )
    output, state = cell(ONES[:, :4], cell.zero_state(8, tf.float32))
    values = weights()
    scope = "output_projection_wrapper"
    inner = f"{scope}/input_projection_wrapper"
    assert set(values) == {
        f"{where}/{name}"
        for where in (scope, inner, f"{inner}/basic_rnn_cell")
        for name in ("kernel", "bias")
    }
    x = ONES[:, :4] @ values[f"{inner}/kernel"] + values[f"{inner}/bias"]
    x = np.concatenate([x, np.zeros([8, 2])], 1)
    h = np.tanh(
        x @ values[f"{inner}/basic_rnn_cell/kernel"] + values[f"{inner}/basic_rnn_cell/bias"]
    )
    expected = np.tanh(h @ values[f"{scope}/kernel"] + values[f"{scope}/bias"])
    found = run_with_weights([output, state])
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], h, rtol=1e-5, atol=1e-6)


def test_an_embedding():
    cell = tf.contrib.rnn.EmbeddingWrapper(Echo(), embedding_classes=6, embedding_size=1000)
    output, _ = cell(np.array([[1], [5]]), cell.zero_state(2, tf.float32))
    table = weights()["embedding_wrapper/embedding"]
    np.testing.assert_array_equal(run_with_weights(output), table[[1, 5]])
