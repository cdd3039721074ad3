"""Cells: one step, against NumPy; their variables, sizes, states and mistakes."""

import numpy as np
import pytest

import runnel as tf
from runnel.control_flow.structure import flatten
from tests.nn import numpy_cells
from tests.nn.weights import run_with_weights, weights

rnn = tf.nn.rnn_cell
RNG = np.random.default_rng(1)
X = RNG.normal(size=(3, 4)).astype(np.float32)
C = RNG.normal(size=(3, 5)).astype(np.float32)
H = RNG.normal(size=(3, 5)).astype(np.float32)


def names(variables=None):
    return [v.op.name for v in (tf.global_variables() if variables is None else variables)]


def assert_step(found, expected):
    for a, b in zip(flatten(found), flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class TestValues:
    def test_basic(self):
        step = rnn.BasicRNNCell(5)(X, H)
        assert names() == ["basic_rnn_cell/kernel", "basic_rnn_cell/bias"]
        assert_step(run_with_weights(step), numpy_cells.basic(X, H, *weights().values()))

    def test_gru(self):
        step = rnn.GRUCell(5)(X, H)
        assert names() == [
            "gru_cell/gates/kernel",
            "gru_cell/gates/bias",
            "gru_cell/candidate/kernel",
            "gru_cell/candidate/bias",
        ]
        assert_step(run_with_weights(step), numpy_cells.gru(X, H, *weights().values()))

    @pytest.mark.parametrize("forget_bias", [1.0, 0.25])
    def test_basic_lstm(self, forget_bias):
        step = rnn.BasicLSTMCell(5, forget_bias=forget_bias)(X, rnn.LSTMStateTuple(C, H))
        assert names() == ["basic_lstm_cell/kernel", "basic_lstm_cell/bias"]
        kernel, bias = weights().values()
        expected = numpy_cells.lstm(X, (C, H), kernel, bias, forget_bias=forget_bias)
        assert_step(run_with_weights(step), expected)

    @pytest.mark.parametrize("cell", [rnn.BasicLSTMCell, rnn.LSTMCell])
    def test_an_lstm_whose_state_is_one_tensor(self, cell):
        made = cell(5, state_is_tuple=False)
        assert made.state_size == 10
        output, state = made(X, np.concatenate([C, H], 1))
        kernel, bias = weights().values()
        h, (c, _) = numpy_cells.lstm(X, (C, H), kernel, bias)
        found = run_with_weights([output, state])
        np.testing.assert_allclose(found[1], np.concatenate([c, h], 1), rtol=1e-5, atol=1e-6)

    def test_lstm_with_peepholes_clipping_and_projection(self):
        cell = rnn.LSTMCell(5, use_peepholes=True, cell_clip=0.4, num_proj=2, proj_clip=0.1)
        assert cell.state_size == rnn.LSTMStateTuple(5, 2)
        assert cell.output_size == 2
        step = cell(X, rnn.LSTMStateTuple(C, H[:, :2]))
        assert names() == [
            f"lstm_cell/{name}"
            for name in ("kernel", "bias", "w_f_diag", "w_i_diag", "w_o_diag", "projection/kernel")
        ]
        kernel, bias, *diagonals, projection = weights().values()
        _, (c, h) = numpy_cells.lstm(
            X, (C, H[:, :2]), kernel, bias, peepholes=diagonals, clip=0.4, projection=projection
        )
        h = np.clip(h, -0.1, 0.1)
        assert np.abs(h).max() == np.float32(0.1)  # the bounds are reached
        assert_step(run_with_weights(step), (h, (c, h)))

    def test_layer_norm_lstm(self):
        cell = tf.contrib.rnn.LayerNormBasicLSTMCell(5, forget_bias=0.5)
        step = cell(X, rnn.LSTMStateTuple(C, H))
        places = ["input", "transform", "forget", "output", "state"]
        scope = "layer_norm_basic_lstm_cell"
        assert names() == [f"{scope}/kernel"] + [
            f"{scope}/{place}/{name}" for place in places for name in ("gamma", "beta")
        ]
        values = weights()
        gains = [(values[f"{scope}/{p}/gamma"], values[f"{scope}/{p}/beta"]) for p in places]
        expected = numpy_cells.layer_norm_lstm(
            X, (C, H), values[f"{scope}/kernel"], gains, forget_bias=0.5
        )
        assert_step(run_with_weights(step), expected)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            gamma = sess.run(f"{scope}/state/gamma:0")
            np.testing.assert_array_equal(gamma, np.ones(5))

    def test_layer_norm_lstm_without_the_norm_is_an_lstm(self):
        cell = tf.contrib.rnn.LayerNormBasicLSTMCell(5, layer_norm=False)
        step = cell(X, rnn.LSTMStateTuple(C, H))
        kernel, bias = weights().values()
        assert_step(run_with_weights(step), numpy_cells.lstm(X, (C, H), kernel, bias))

    def test_block_cells_have_the_names_of_the_others(self):
        step = tf.contrib.rnn.LSTMBlockCell(5)(X, rnn.LSTMStateTuple(C, H))
        assert names() == ["lstm_cell/kernel", "lstm_cell/bias"]
        assert_step(run_with_weights(step), numpy_cells.lstm(X, (C, H), *weights().values()))
        tf.contrib.rnn.GRUBlockCellV2(5)(X, H)
        assert names()[2:4] == ["gru_cell/gates/kernel", "gru_cell/gates/bias"]


class TestSizesAndStates:
    def test_zero_states(self):
        cell = rnn.MultiRNNCell([rnn.LSTMCell(5, num_proj=2), rnn.GRUCell(3)])
        assert cell.state_size == (rnn.LSTMStateTuple(5, 2), 3)
        (c, h), s = state = cell.zero_state(4, tf.float64)
        assert isinstance(state[0], rnn.LSTMStateTuple)
        assert state[0].dtype == tf.float64
        assert [x.shape.as_list() for x in (c, h, s)] == [[4, 5], [4, 2], [4, 3]]
        values = tf.Session().run(state)
        assert all(x.dtype == np.float64 and not x.any() for x in (*values[0], values[1]))

    def test_a_batch_size_known_only_at_run_time(self):
        batch = tf.placeholder(tf.int32, [])
        state = rnn.GRUCell(3).zero_state(batch, tf.float32)
        assert state.shape.as_list() == [None, 3]
        assert tf.Session().run(state, {batch: 7}).shape == (7, 3)

    def test_a_state_with_more_dimensions(self):
        class Grid(rnn.RNNCell):
            state_size = tf.TensorShape([2, 3])
            output_size = 3

        assert Grid().zero_state(4, tf.float32).shape.as_list() == [4, 2, 3]

    def test_get_initial_state(self):
        cell = rnn.GRUCell(3)
        assert cell.get_initial_state(inputs=X).shape.as_list() == [3, 3]
        with pytest.raises(ValueError, match="batch size 3, but batch_size=2"):
            cell.get_initial_state(inputs=X, batch_size=2)
        with pytest.raises(ValueError, match="float32, but dtype=float64"):
            cell.get_initial_state(inputs=X, dtype=tf.float64)
        with pytest.raises(ValueError, match="batch_size and dtype"):
            cell.get_initial_state(batch_size=2)

    @pytest.mark.parametrize("dtype", [np.float16, np.float64])
    def test_the_type_is_that_of_the_input(self, dtype):
        cell = rnn.LSTMCell(5)
        assert cell.dtype is None
        output, _ = cell(X.astype(dtype), cell.zero_state(3, dtype))
        assert cell.dtype == dtype
        assert output.dtype == dtype
        assert all(v.dtype.base_dtype == dtype for v in cell.variables)


class TestVariables:
    def test_a_cell_that_is_called_again_shares_them(self):
        cell = rnn.GRUCell(4)
        _, state = cell(X, X)
        output, _ = cell(X, state)
        assert len(tf.global_variables()) == 4
        assert output.op.name == "gru_cell/add_1"
        assert names(cell.trainable_weights) == names()

    def test_another_cell_has_its_own(self):
        rnn.GRUCell(4)(X, X)
        rnn.GRUCell(4)(X, X)
        rnn.GRUCell(4, name="mine")(X, X)
        assert {name.split("/")[0] for name in names()} == {"gru_cell", "gru_cell_1", "mine"}

    def test_reuse(self):
        rnn.GRUCell(4)(X, X)
        rnn.GRUCell(4, reuse=True)(X, X)
        for _ in range(2):
            with tf.variable_scope("scope", reuse=tf.AUTO_REUSE):
                rnn.GRUCell(4, name="g")(X, X)
        assert len(names()) == 8

    def test_a_scope(self):
        rnn.BasicRNNCell(4)(X, X, scope="named")
        assert names() == ["named/kernel", "named/bias"]

    def test_a_cell_that_gets_variables_in_call_owns_them(self):
        class Scale(rnn.RNNCell):
            state_size = output_size = 4

            def call(self, inputs, state):
                w = tf.get_variable("w", [4])
                frozen = tf.get_variable("frozen", [4], trainable=False)
                return inputs * w + frozen, state

        cell = Scale()
        cell(X, X)
        cell(X, X)
        assert names(cell.trainable_weights) == ["scale/w"]
        assert names(cell.non_trainable_weights) == ["scale/frozen"]

    def test_a_cell_that_does_not_call_the_constructor(self):
        class Old(rnn.RNNCell):
            def __init__(self, units):
                self._units = units

            @property
            def state_size(self):
                return self._units

            @property
            def output_size(self):
                return self._units

            def __call__(self, inputs, state, scope=None):
                with tf.variable_scope(scope or type(self).__name__):
                    w = tf.get_variable("w", [4, self._units])
                    state = tf.tanh(tf.matmul(inputs, w) + state)
                    return state, state

        outputs, _ = tf.nn.dynamic_rnn(Old(3), X[:, None], dtype=tf.float32)
        assert names() == ["rnn/Old/w"]
        expected = np.tanh(X @ weights()["rnn/Old/w"])[:, None]
        np.testing.assert_allclose(run_with_weights(outputs), expected, rtol=1e-5)

    def test_of_a_stack_of_wrapped_cells(self):
        cell = rnn.MultiRNNCell(
            [rnn.DropoutWrapper(rnn.ResidualWrapper(rnn.GRUCell(4)), 0.5), rnn.LSTMCell(2)]
        )
        cell(X, cell.zero_state(3, tf.float32))
        assert names()[0] == "multi_rnn_cell/cell_0/gru_cell/gates/kernel"
        assert names()[4:] == [
            "multi_rnn_cell/cell_1/lstm_cell/kernel",
            "multi_rnn_cell/cell_1/lstm_cell/bias",
        ]
        assert names(cell.trainable_weights) == names()
        cell.trainable = False
        assert cell.trainable_weights == []
        assert names(cell.non_trainable_weights) == names()

    def test_an_initializer(self):
        cell = rnn.LSTMCell(2, initializer=tf.constant_initializer(3.0), use_peepholes=True)
        cell(X, cell.zero_state(3, tf.float32))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            kernel, bias, *diagonals = sess.run(cell.variables)
        assert (kernel == 3).all() and not bias.any() and (np.array(diagonals) == 3).all()

    def test_the_gates_of_a_gru_start_open(self):
        cell = rnn.GRUCell(2)
        cell(X, np.zeros([3, 2], np.float32))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert (sess.run("gru_cell/gates/bias:0") == 1).all()
            assert (sess.run("gru_cell/candidate/bias:0") == 0).all()


class TestMistakes:
    def test_unknown_depth(self):
        x = tf.placeholder(tf.float32, [3, None])
        with pytest.raises(ValueError, match=r"inputs.shape\[-1\] to be known.*\(3, \?\)"):
            rnn.GRUCell(4)(x, X)

    def test_a_wrong_rank(self):
        with pytest.raises(ValueError, match="expected ndim=2, found ndim=3"):
            rnn.GRUCell(4)(X[None], X)

    def test_integers(self):
        with pytest.raises(ValueError, match="floating-point.*int32.*tf.cast"):
            rnn.GRUCell(4)(np.ones([3, 4], np.int32), X)
        with pytest.raises(ValueError, match="floating-point"):
            rnn.LSTMCell(4, dtype=tf.int32)

    def test_an_lstm_given_one_tensor_for_two(self):
        with pytest.raises(ValueError, match="LSTMStateTuple.*state_is_tuple=False"):
            rnn.LSTMCell(5)(X, C)

    def test_a_stack_given_too_few_states(self):
        cell = rnn.MultiRNNCell([rnn.GRUCell(4), rnn.GRUCell(4)])
        with pytest.raises(ValueError, match="tuple of length 2"):
            cell(X, (X,))
        with pytest.raises(ValueError, match="tuple of length 2"):
            cell(X, X)

    def test_a_stack_of_nothing(self):
        with pytest.raises(ValueError, match="at least one cell"):
            rnn.MultiRNNCell([])
        with pytest.raises(TypeError, match="list or tuple"):
            rnn.MultiRNNCell(rnn.GRUCell(3))
        with pytest.raises(TypeError, match=r"cells\[1\].*not an RNNCell"):
            rnn.MultiRNNCell([rnn.GRUCell(3), "gru"])

    def test_states_that_cannot_be_joined(self):
        with pytest.raises(ValueError, match="state_is_tuple=False"):
            rnn.MultiRNNCell([rnn.LSTMCell(3)], state_is_tuple=False)

    def test_a_state_of_another_size(self):
        cell = rnn.GRUCell(4)
        cell(X, X)
        with pytest.raises(ValueError, match="(?i)dimension|shape"):
            cell(X, C)

    def test_a_batch_of_another_size(self):
        with pytest.raises(ValueError, match="(?i)dimension|shape"):
            rnn.GRUCell(4)(X, X[:2])

    def test_an_activation_nobody_knows(self):
        with pytest.raises(ValueError, match="Unknown activation 'tan'.*tanh"):
            rnn.GRUCell(4, activation="tan")

    def test_an_argument_nobody_knows(self):
        with pytest.raises(TypeError, match="'units'"):
            rnn.GRUCell(4, units=3)
