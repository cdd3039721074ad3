"""``dynamic_rnn`` and the networks made of it: values, gradients, shapes, mistakes."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives
from tests.nn import numpy_cells
from tests.nn.weights import run_with_weights, weights

rnn = tf.nn.rnn_cell
RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 5, 4)).astype(np.float32)
LENGTHS = [5, 0, 2]


def names():
    return [v.op.name for v in tf.global_variables()]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


class TestValues:
    @pytest.mark.parametrize("lengths", [None, LENGTHS])
    def test_lstm(self, lengths):
        x = tf.placeholder(tf.float32, [None, None, 4])
        outputs, state = tf.nn.dynamic_rnn(rnn.LSTMCell(6), x, lengths, dtype=tf.float32)
        assert isinstance(state, rnn.LSTMStateTuple)
        assert names() == ["rnn/lstm_cell/kernel", "rnn/lstm_cell/bias"]
        kernel, bias = weights().values()
        zero = np.zeros([3, 6])
        expected, (c, h) = numpy_cells.along(
            lambda i, s: numpy_cells.lstm(i, s, kernel, bias), X, (zero, zero), lengths
        )
        found, (found_c, found_h) = run_with_weights([outputs, state], {x: X})
        close(found, expected)
        close(found_c, c)
        close(found_h, h)

    def test_an_initial_state(self):
        start = RNG.normal(size=(3, 6)).astype(np.float32)
        outputs, state = tf.nn.dynamic_rnn(rnn.GRUCell(6), X, initial_state=tf.constant(start))
        values = list(weights().values())
        expected, last = numpy_cells.along(lambda i, s: numpy_cells.gru(i, s, *values), X, start)
        found = run_with_weights([outputs, state])
        close(found[0], expected)
        close(found[1], last)

    def test_time_major(self):
        cell = rnn.GRUCell(6)
        one = tf.nn.dynamic_rnn(cell, X, LENGTHS, dtype=tf.float32)
        other = tf.nn.dynamic_rnn(
            cell, X.transpose(1, 0, 2), LENGTHS, dtype=tf.float32, time_major=True
        )
        assert len(names()) == 4
        a, b = run_with_weights([one, other])
        close(a[0], b[0].transpose(1, 0, 2))
        close(a[1], b[1])

    def test_a_stack_carries_state_between_batches(self):
        cell = rnn.MultiRNNCell([rnn.LSTMCell(3), rnn.GRUCell(2)])
        whole, _ = tf.nn.dynamic_rnn(cell, X, dtype=tf.float32)
        first, state = tf.nn.dynamic_rnn(cell, X[:, :2], dtype=tf.float32)
        second, _ = tf.nn.dynamic_rnn(cell, X[:, 2:], initial_state=state)
        a, b, c = run_with_weights([whole, first, second])
        close(a, np.concatenate([b, c], 1))

    def test_the_number_of_steps_is_that_of_the_input(self):
        x = tf.placeholder(tf.float32, [None, None, 4])
        outputs, _ = tf.nn.dynamic_rnn(rnn.GRUCell(3), x, dtype=tf.float32)
        for batch, steps in ((1, 1), (2, 7), (5, 3)):
            assert run_with_weights(outputs, {x: np.ones([batch, steps, 4])}).shape == (
                batch,
                steps,
                3,
            )

    def test_lengths_that_end_before_the_input(self):
        x = np.where(np.arange(5)[:, None] < 3, X, np.nan).astype(np.float32)
        outputs, state = tf.nn.dynamic_rnn(rnn.GRUCell(3), x, [3, 1, 2], dtype=tf.float32)
        values, last = run_with_weights([outputs, state])
        # The loop ends after three steps, so what lies behind them is never looked at.
        assert np.isfinite(values).all() and np.isfinite(last).all()
        assert not values[:, 3:].any() and not values[1, 1:].any()
        close(last, values[[0, 1, 2], [2, 0, 1]])

    def test_structures_of_inputs_outputs_and_states(self):
        class Pair(rnn.RNNCell):
            state_size = {"sum": 4, "steps": 1}
            output_size = (4, 1)

            def call(self, inputs, state):
                total = state["sum"] + inputs["a"] * inputs["b"]
                steps = state["steps"] + 1.0
                return (total, steps * 2.0), {"sum": total, "steps": steps}

        inputs = {"a": X, "b": X * 2}
        (totals, steps), state = tf.nn.dynamic_rnn(Pair(), inputs, LENGTHS, dtype=tf.float32)
        found = run_both([totals, steps, state["sum"], state["steps"]])
        going = (np.arange(5) < np.array(LENGTHS)[:, None])[..., None]
        expected = np.where(going, np.cumsum(X * X * 2, 1), 0)
        close(found[0], expected)
        close(found[1], np.where(going, 2.0 * np.arange(1, 6)[:, None], 0))
        close(found[3][:, 0], LENGTHS)

    def test_a_state_without_a_batch(self):
        class Clock(rnn.RNNCell):
            state_size = (4, tf.TensorShape([]))
            output_size = 4

            def call(self, inputs, state):
                total, time = state
                return inputs * time, (total + inputs, time + 1.0)

        start = (tf.zeros([3, 4]), tf.constant(1.0))
        outputs, (_, time) = tf.nn.dynamic_rnn(Clock(), X, LENGTHS, initial_state=start)
        found, last = run_both([outputs, time])
        assert last == 6  # it counts the steps of the loop, not those of a sequence
        close(found[0], X[0] * np.arange(1, 6)[:, None])


class TestBidirectional:
    @pytest.mark.parametrize("lengths", [None, LENGTHS])
    def test_values(self, lengths):
        outputs, states = tf.nn.bidirectional_dynamic_rnn(
            rnn.GRUCell(3), rnn.GRUCell(2), X, lengths, dtype=tf.float32
        )
        assert names()[0] == "bidirectional_rnn/fw/gru_cell/gates/kernel"
        assert names()[4] == "bidirectional_rnn/bw/gru_cell/gates/kernel"
        values = list(weights().values())
        turned = self.turn(X, lengths)
        forward, fw = numpy_cells.along(
            lambda i, s: numpy_cells.gru(i, s, *values[:4]), X, np.zeros([3, 3]), lengths
        )
        backward, bw = numpy_cells.along(
            lambda i, s: numpy_cells.gru(i, s, *values[4:]), turned, np.zeros([3, 2]), lengths
        )
        found, last = run_with_weights([outputs, states])
        close(found[0], forward)
        close(found[1], self.turn(backward, lengths))
        close(last[0], fw)
        close(last[1], bw)

    @staticmethod
    def turn(x, lengths):
        turned = x.copy()
        for row, length in enumerate([x.shape[1]] * len(x) if lengths is None else lengths):
            turned[row, :length] = x[row, :length][::-1]
        return turned

    def test_a_stack_of_them(self):
        outputs, fw, bw = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            [rnn.GRUCell(3), rnn.GRUCell(2)],
            [rnn.GRUCell(3), rnn.GRUCell(2)],
            X,
            dtype=tf.float32,
            sequence_length=LENGTHS,
        )
        steps, static_fw, static_bw = tf.contrib.rnn.stack_bidirectional_rnn(
            [rnn.GRUCell(3, reuse=True), rnn.GRUCell(2, reuse=True)],
            [rnn.GRUCell(3, reuse=True), rnn.GRUCell(2, reuse=True)],
            tf.unstack(tf.constant(X), axis=1),
            dtype=tf.float32,
            sequence_length=LENGTHS,
        )
        assert outputs.shape.as_list() == [3, 5, 4]
        assert len(names()) == 16
        prefix = "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell"
        assert names()[-1] == f"{prefix}/candidate/bias"
        a, b, c, d = run_with_weights([[outputs, fw, bw], tf.stack(steps, 1), static_fw, static_bw])
        close(a[0], b)
        for found, expected in ((a[1], c), (a[2], d)):
            for one, other in zip(found, expected, strict=True):
                close(one, other)


class TestRaw:
    def test_generating_until_a_condition(self):
        class Double(rnn.RNNCell):
            state_size = output_size = 1

            def call(self, inputs, state):
                return inputs + state, inputs + state

        start = np.array([[1.0], [3.0], [20.0]], np.float32)

        def loop(time, output, state, loop_state):
            if output is None:
                return tf.constant([False] * 3), start, tf.zeros([3, 1]), None, None
            return tf.reshape(output, [3]) > 10, output, state, output, None

        emitted, state, _ = tf.nn.raw_rnn(Double(), loop)
        values, last = run_both([emitted.stack(), state])
        # x, 2x, 4x, ... until 10 is passed; 0 afterwards.
        expected = [[1, 3, 20], [2, 6, 0], [4, 12, 0], [8, 0, 0], [16, 0, 0]]
        np.testing.assert_array_equal(values[:, :, 0], expected)
        np.testing.assert_array_equal(last[:, 0], [16, 12, 20])

    def test_what_is_emitted_and_remembered_is_free(self):
        cell = rnn.GRUCell(4)

        def loop(time, output, state, loop_state):
            first = output is None
            emit = {"time": tf.zeros([], tf.int32)} if first else {"time": tf.fill([3], time)}
            next_state = cell.zero_state(3, tf.float32) if first else state
            count = tf.constant(10) if first else loop_state + 1
            return tf.fill([3], time >= 4), X[:, 0], next_state, emit, count

        emitted, _, count = tf.nn.raw_rnn(cell, loop)
        times, last = run_with_weights([emitted["time"].stack(), count])
        np.testing.assert_array_equal(times, np.arange(1, 5)[:, None] * np.ones([1, 3]))
        assert last == 14

    def test_mistakes(self):
        with pytest.raises(TypeError, match="callable"):
            tf.nn.raw_rnn(rnn.GRUCell(3), 3)

        def wrong_state(time, output, state, loop_state):
            return tf.constant([False]), tf.ones([1, 3]), tf.ones([1, 3]), None, None

        with pytest.raises(ValueError, match="initial state.*state_size"):
            tf.nn.raw_rnn(rnn.LSTMCell(3), wrong_state)


class TestGradients:
    @pytest.mark.parametrize("lengths", [None, [3, 1]])
    @pytest.mark.parametrize("kind", ["gru", "lstm"])
    def test_through_time(self, lengths, kind):
        def build(x, kernel, state):
            class Fixed(rnn.RNNCell):
                """A cell whose weights are an input, so that differences can be taken."""

                state_size = output_size = 2

                def call(self, inputs, state):
                    joined = tf.concat([inputs, state], 1)
                    if kind == "gru":
                        r, u = tf.split(tf.sigmoid(tf.matmul(joined, kernel)), 2, axis=1)
                        state = u * state + (1.0 - u) * tf.tanh(r * inputs[:, :2])
                        return state, state
                    i, j = tf.split(tf.matmul(joined, kernel), 2, axis=1)
                    state = state * tf.sigmoid(i) + tf.tanh(j)
                    return tf.tanh(state), state

            outputs, last = tf.nn.dynamic_rnn(Fixed(), x, lengths, initial_state=state)
            return tf.reduce_sum(outputs * outputs * outputs) + tf.reduce_sum(tf.sin(last))

        rng = np.random.default_rng(3)
        assert_derivatives(
            build,
            rng.normal(size=(2, 3, 2)),
            rng.normal(size=(4, 4)),
            rng.normal(size=(2, 2)),
            order=1,
        )

    @pytest.mark.parametrize("name", ["BasicRNNCell", "GRUCell", "BasicLSTMCell", "LSTMCell"])
    def test_of_the_weights(self, name):
        x = tf.constant(X[:2, :3].astype(np.float64))
        cell = getattr(rnn, name)(2)
        outputs, _ = tf.nn.dynamic_rnn(cell, x, [3, 2], dtype=tf.float64)
        loss = tf.reduce_sum(tf.sin(outputs) * [1.0, 2.0])
        variables = tf.trainable_variables()
        found = tf.gradients(loss, variables)
        values = {v: value for v, value in zip(variables, weights().values(), strict=True)}
        feeds = {v: tf.placeholder(tf.float64, v.shape) for v in variables}
        loads = [tf.assign(v, feeds[v]) for v in variables]
        with tf.Session() as sess:

            def loss_at(changed):
                sess.run(loads, {feeds[v]: changed.get(v, values[v]) for v in variables})
                return sess.run(loss)

            loss_at({})
            gradients = sess.run(found)
            for variable, gradient in zip(variables, gradients, strict=True):
                direction = RNG.normal(size=gradient.shape)
                ahead = loss_at({variable: values[variable] + 1e-5 * direction})
                behind = loss_at({variable: values[variable] - 1e-5 * direction})
                slope = (ahead - behind) / 2e-5
                np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-6)

    def test_both_tiers_agree(self):
        cell = rnn.MultiRNNCell([rnn.LSTMCell(3), rnn.GRUCell(2)])
        x = tf.placeholder(tf.float32, [None, None, 4])
        outputs, state = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32)
        loss = tf.reduce_sum(tf.sin(outputs)) + tf.reduce_sum(state[0].c)
        run_with_weights(tf.gradients(loss, [x, *tf.trainable_variables()]), {x: X})

    def test_training(self):
        """A network learns to tell how many ones it has seen."""
        rng = np.random.default_rng(5)
        bits = rng.integers(0, 2, size=(32, 6, 1)).astype(np.float32)
        outputs, _ = tf.nn.dynamic_rnn(rnn.GRUCell(8), bits, dtype=tf.float32)
        counts = tf.layers.dense(outputs, 1)
        loss = tf.reduce_mean(tf.squared_difference(counts, np.cumsum(bits, 1)))
        tf.set_random_seed(1)
        train = tf.train.AdamOptimizer(0.05).minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            before = sess.run(loss)
            for _ in range(80):
                sess.run(train)
            assert sess.run(loss) < before / 50


class TestForm:
    """What the compiler relies on to make one scan of the loop."""

    def loop(self, lengths):
        x = tf.placeholder(tf.float32, [None, None, 4])
        tf.nn.dynamic_rnn(rnn.LSTMCell(3), x, lengths, dtype=tf.float32)
        graph = tf.get_default_graph()
        (condition,) = (op for op in graph.get_operations() if op.type == "LoopCond")
        return condition.inputs[0].op

    def test_a_counter_below_a_limit_from_the_shape(self):
        less = self.loop(None)
        assert less.type == "Less"
        counter, limit = less.inputs
        assert counter.op.type == "Merge" and limit.op.type == "Enter"
        assert limit.op.inputs[0].op.type == "StridedSlice"

    def test_a_limit_from_the_lengths(self):
        limit = self.loop(LENGTHS).inputs[1].op.inputs[0].op
        assert limit.type == "Minimum"

    def test_variables_are_read_before_the_loop(self):
        with tf.variable_scope("model", use_resource=True):
            self.loop(None)
        inside = [op for op in tf.get_default_graph().get_operations() if "while/" in op.name]
        assert not [op for op in inside if op.type == "ReadVariableOp"]


class TestMistakes:
    def test_neither_state_nor_type(self):
        with pytest.raises(ValueError, match="no initial_state.*dtype"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), X)

    def test_not_a_cell(self):
        with pytest.raises(TypeError, match="'cell'.*not an RNNCell"):
            tf.nn.dynamic_rnn("lstm", X, dtype=tf.float32)
        with pytest.raises(TypeError, match="'cell_bw'.*not an RNNCell"):
            tf.nn.bidirectional_dynamic_rnn(rnn.GRUCell(3), None, X, dtype=tf.float32)

    def test_inputs_without_time(self):
        with pytest.raises(ValueError, match=r"\[batch, time, depth\].*\(5, 3\)"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), X[:, :, 0], dtype=tf.float32)

    def test_unknown_depth(self):
        x = tf.placeholder(tf.float32, [3, 5, None])
        with pytest.raises(ValueError, match=r"depth of inputs.*\(5, 3, \?\)"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), x, dtype=tf.float32)

    def test_inputs_of_different_lengths(self):
        with pytest.raises(ValueError, match="number of time steps.* 5 and 4"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), (X, X[:, :4]), dtype=tf.float32)

    def test_lengths_that_are_not_a_vector(self):
        with pytest.raises(ValueError, match=r"vector.*\(1, 3\)"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), X, [LENGTHS], dtype=tf.float32)

    def test_too_few_lengths(self):
        with pytest.raises(ValueError, match="2 elements, but the batch has 3 members"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), X, [5, 5], dtype=tf.float32)

    def test_too_few_lengths_found_at_run_time(self):
        lengths = tf.placeholder(tf.int32, [None])
        x = tf.placeholder(tf.float32, [None, 5, 4])
        outputs, _ = tf.nn.dynamic_rnn(rnn.GRUCell(3), x, lengths, dtype=tf.float32)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(outputs, {x: X, lengths: LENGTHS})
            with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)sequence_length.*3.*2"):
                sess.run(outputs, {x: X, lengths: [5, 5]})

    def test_a_state_of_another_form(self):
        state = (tf.zeros([3, 3]), tf.zeros([3, 3]))
        with pytest.raises(TypeError, match="tuple and the other a LSTMStateTuple"):
            tf.nn.dynamic_rnn(rnn.LSTMCell(3), X, initial_state=state)
        with pytest.raises(ValueError, match="must be an LSTMStateTuple"):
            tf.nn.dynamic_rnn(rnn.LSTMCell(3), X, initial_state=tf.zeros([3, 6]), scope="b")

    def test_a_state_for_another_batch(self):
        with pytest.raises(ValueError, match="(?i)dimension|shape"):
            tf.nn.dynamic_rnn(rnn.GRUCell(3), X, initial_state=tf.zeros([2, 3]))

    def test_states_of_several_types(self):
        class Mixed(rnn.RNNCell):
            state_size = (1, 1)
            output_size = 1

        state = (tf.zeros([3, 1]), tf.zeros([3, 1], tf.int32))
        with pytest.raises(ValueError, match="float32.*int32.*give dtype"):
            tf.nn.dynamic_rnn(Mixed(), X, initial_state=state)
