"""Recurrent networks against TensorFlow: variables, static shapes, values, gradients."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("tf_keras")

import runnel
from tests.conformance.same_network import compare_network

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

RNG = np.random.default_rng(0)
STEP = RNG.normal(size=(3, 4)).astype(np.float32)
SEQUENCE = RNG.normal(size=(3, 5, 4)).astype(np.float32)
UNKNOWN = [(None, None, 4)]
LENGTHS = np.array([5, 0, 2], np.int32)


def cells(tf):
    """Every cell, by the way it is made; all take an input of size 4."""
    rnn = tf.nn.rnn_cell
    return {
        "basic": lambda: rnn.BasicRNNCell(5),
        "basic, relu": lambda: rnn.BasicRNNCell(5, activation=tf.nn.relu),
        "basic, named activation": lambda: rnn.BasicRNNCell(5, activation="sigmoid"),
        "gru": lambda: rnn.GRUCell(5),
        "gru, name": lambda: rnn.GRUCell(5, name="mine", activation=tf.nn.softsign),
        "basic lstm": lambda: rnn.BasicLSTMCell(5),
        "basic lstm, one tensor": lambda: rnn.BasicLSTMCell(
            5, forget_bias=0.5, state_is_tuple=False
        ),
        "lstm": lambda: rnn.LSTMCell(5),
        "lstm, peepholes": lambda: rnn.LSTMCell(5, use_peepholes=True, forget_bias=0.3),
        "lstm, cell clip": lambda: rnn.LSTMCell(5, cell_clip=0.1, activation=tf.nn.relu),
        "lstm, projection": lambda: rnn.LSTMCell(5, num_proj=3),
        "lstm, everything": lambda: rnn.LSTMCell(
            5, use_peepholes=True, cell_clip=0.4, num_proj=3, proj_clip=0.2
        ),
        "lstm, one tensor": lambda: rnn.LSTMCell(
            5, num_proj=3, state_is_tuple=False, initializer=tf.ones_initializer()
        ),
        "lstm, shards": lambda: rnn.LSTMCell(5, num_unit_shards=3, num_proj=4, num_proj_shards=2),
        "multi": lambda: rnn.MultiRNNCell([rnn.LSTMCell(5), rnn.GRUCell(3), rnn.BasicLSTMCell(2)]),
        "multi, one tensor": lambda: rnn.MultiRNNCell(
            [rnn.GRUCell(5), rnn.BasicRNNCell(3)], state_is_tuple=False
        ),
        "multi, shared": lambda: rnn.MultiRNNCell([rnn.GRUCell(4)] * 2),
        "residual": lambda: rnn.ResidualWrapper(rnn.GRUCell(4)),
        "residual, function": lambda: rnn.ResidualWrapper(
            rnn.GRUCell(4), residual_fn=lambda i, o: tf.concat([i, o * 2], 1)[:, 2:6]
        ),
        "device": lambda: rnn.DeviceWrapper(rnn.LSTMCell(5), "/cpu:0"),
        "nothing dropped": lambda: rnn.DropoutWrapper(rnn.GRUCell(4)),
        "dropout": lambda: rnn.DropoutWrapper(
            rnn.LSTMCell(5),
            input_keep_prob=0.8,
            output_keep_prob=0.5,
            state_keep_prob=0.6,
            seed=3,
        ),
        "dropout, tensors": lambda: rnn.DropoutWrapper(
            rnn.GRUCell(5),
            input_keep_prob=tf.placeholder_with_default(0.7, []),
            output_keep_prob=tf.placeholder_with_default(0.5, []),
            seed=4,
        ),
        "dropout, variational": lambda: rnn.DropoutWrapper(
            rnn.LSTMCell(5),
            input_keep_prob=0.8,
            output_keep_prob=0.5,
            state_keep_prob=0.6,
            variational_recurrent=True,
            input_size=4,
            dtype=tf.float32,
            seed=5,
        ),
        "dropout, filter": lambda: rnn.DropoutWrapper(
            rnn.MultiRNNCell([rnn.LSTMCell(5), rnn.GRUCell(3)]),
            state_keep_prob=0.4,
            seed=6,
            dropout_state_filter_visitor=lambda state: not hasattr(state, "c"),
        ),
        "nest": lambda: rnn.MultiRNNCell(
            [
                rnn.ResidualWrapper(
                    rnn.DropoutWrapper(rnn.LSTMCell(4), output_keep_prob=0.5, seed=1)
                ),
                rnn.DeviceWrapper(rnn.GRUCell(3), "/cpu:0"),
            ]
        ),
    }


class _Names:
    """Stands for a library where only the names of the cells are wanted."""

    def __getattr__(self, name):
        return self


CELLS = list(cells(_Names()))


@pytest.mark.parametrize("name", CELLS)
def test_a_step(name):
    def build(tf, x):
        cell = cells(tf)[name]()
        state = cell.zero_state(3, tf.float32)
        output, state = cell(x, state)
        # A second step uses the same variables.
        return [output, state, cell(x * 2.0, state)]

    compare_network(build, STEP)


@pytest.mark.parametrize("name", CELLS)
def test_along_a_sequence(name):
    def build(tf, x, lengths):
        cell = cells(tf)[name]()
        # One iteration after the other: TensorFlow's random numbers come in any order otherwise.
        return tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, parallel_iterations=1)

    compare_network(build, SEQUENCE, LENGTHS, shapes=[(None, None, 4), (None,)])


@pytest.mark.parametrize("name", ["basic lstm", "gru", "multi", "dropout", "residual"])
def test_unrolled(name):
    def build(tf, x):
        cell = cells(tf)[name]()
        return tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)

    compare_network(build, SEQUENCE[:, :2])


def test_the_type_of_a_cell():
    def build(tf, x):
        cell = tf.nn.rnn_cell.LSTMCell(3, dtype=tf.float64)
        return tf.nn.dynamic_rnn(cell, x, dtype=tf.float64), cell.variables

    compare_network(build, SEQUENCE.astype(np.float64), rtol=1e-9, atol=1e-10)


# dynamic_rnn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5, 4), (None, 5, 4), (3, None, 4), (None, None, 4)])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_static_shapes(shape, time_major, limited):
    def build(tf, x, lengths):
        if time_major:
            x = tf.transpose(x, [1, 0, 2])
        cell = tf.nn.rnn_cell.BasicLSTMCell(2)
        length = lengths if limited else None
        return tf.nn.dynamic_rnn(cell, x, length, dtype=tf.float32, time_major=time_major)

    compare_network(build, SEQUENCE, LENGTHS, shapes=[shape, (3,)])


def test_an_initial_state_and_a_scope():
    def build(tf, x, c, h):
        state = tf.nn.rnn_cell.LSTMStateTuple(c, h)
        cell = tf.nn.rnn_cell.LSTMCell(4)
        options = {"parallel_iterations": 2, "swap_memory": True}
        first = tf.nn.dynamic_rnn(cell, x, initial_state=state, scope="encoder", **options)
        with tf.variable_scope("outer"):
            # The same cell keeps its variables, wherever it is used.
            again = tf.nn.dynamic_rnn(cell, x, initial_state=state)
            other = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), x, initial_state=state)
        return [first, again, other]

    compare_network(build, SEQUENCE, STEP, STEP * 2)


def test_variables_shared_by_reuse():
    def build(tf, x):
        outputs = []
        for reuse in (None, True):
            with tf.variable_scope("model", reuse=reuse):
                cell = tf.nn.rnn_cell.GRUCell(3)
                outputs.append(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32))
        return outputs

    compare_network(build, SEQUENCE)


def test_resource_variables():
    def build(tf, x):
        with tf.variable_scope("model", use_resource=True):
            return tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(3), x, dtype=tf.float32)

    compare_network(build, SEQUENCE)


def pair_cell(tf):
    """A cell whose inputs, outputs and states are structures."""

    class Pair(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return {"sum": 4, "both": (tf.TensorShape([2, 4]), 1)}

        @property
        def output_size(self):
            return (4, tf.TensorShape([2, 4]))

        def call(self, inputs, state):
            a, b = inputs["pair"] if isinstance(inputs, dict) else inputs
            scale = tf.get_variable("scale", [4])
            matrix, count = state["both"]
            total = state["sum"] + a * scale
            matrix = tf.tanh(matrix + b)
            return (total, matrix * scale), {"sum": total, "both": (matrix, count + 1.0)}

    return Pair()


@pytest.mark.parametrize("limited", [False, True])
def test_structures(limited):
    def build(tf, a, b, lengths):
        length = lengths if limited else None
        return tf.nn.dynamic_rnn(pair_cell(tf), {"pair": (a, b)}, length, dtype=tf.float32)

    b = RNG.normal(size=(3, 5, 2, 4)).astype(np.float32)
    compare_network(build, SEQUENCE, b, LENGTHS)


def test_a_structure_unrolled():
    def build(tf, a, b, lengths):
        steps = list(zip(tf.unstack(a, axis=1), tf.unstack(b, axis=1)))
        cell = pair_cell(tf)
        state = cell.zero_state(3, tf.float32)
        return tf.nn.static_rnn(cell, steps[1:], state, sequence_length=lengths)

    b = RNG.normal(size=(3, 5, 2, 4)).astype(np.float32)
    compare_network(build, SEQUENCE, b, LENGTHS)


def test_second_derivatives():
    def build(tf, x):
        cell = tf.nn.rnn_cell.GRUCell(2)
        if tf is runnel:
            outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        else:  # which has no second derivatives of loops
            steps, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
            outputs = tf.stack(steps, axis=1)
        return tf.gradients(tf.reduce_sum(outputs**2), [x, *tf.trainable_variables()])

    compare_network(build, SEQUENCE[:2, :3])


# The others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
def test_bidirectional(limited, time_major):
    def build(tf, x, lengths):
        if time_major:
            x = tf.transpose(x, [1, 0, 2])
        rnn = tf.nn.rnn_cell
        return tf.nn.bidirectional_dynamic_rnn(
            rnn.LSTMCell(3),
            rnn.GRUCell(2),
            x,
            lengths if limited else None,
            dtype=tf.float32,
            time_major=time_major,
        )

    compare_network(build, SEQUENCE, LENGTHS)


@pytest.mark.parametrize("limited", [False, True])
def test_unrolled_bidirectional(limited):
    def build(tf, x, lengths):
        rnn = tf.nn.rnn_cell
        return tf.nn.static_bidirectional_rnn(
            rnn.BasicLSTMCell(3),
            rnn.BasicLSTMCell(2),
            tf.unstack(x, axis=1),
            dtype=tf.float32,
            sequence_length=lengths if limited else None,
            scope="both",
        )

    compare_network(build, SEQUENCE[:, :3], np.array([3, 0, 2]))


@pytest.mark.parametrize("batch", [3, None])
def test_unrolled_with_lengths(batch):
    def build(tf, x, lengths):
        cell = tf.nn.rnn_cell.LSTMCell(3)
        steps = tf.unstack(x, axis=1)
        return tf.nn.static_rnn(cell, steps, dtype=tf.float32, sequence_length=lengths)

    compare_network(build, SEQUENCE, LENGTHS, shapes=[(batch, 5, 4), (None,)])


@pytest.mark.parametrize("structured", [False, True])
def test_saved_states(structured):
    def build(tf, x, c, h):
        saved = {}

        class Saver:
            def state(self, name):
                return {"c": c, "h": h}[name]

            def save_state(self, name, value):
                saved[name] = tf.identity(value)
                return saved[name]

        rnn = tf.nn.rnn_cell
        cell = rnn.LSTMCell(4) if structured else rnn.GRUCell(4)
        names = ("c", "h") if structured else "h"
        result = tf.nn.static_state_saving_rnn(cell, tf.unstack(x, axis=1), Saver(), names)
        return [result, [saved[name] for name in sorted(saved)]]

    compare_network(build, SEQUENCE, STEP, STEP * 2)


def test_raw_rnn_like_dynamic_rnn():
    def build(tf, x, lengths):
        cell = tf.nn.rnn_cell.LSTMCell(3)
        array = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))

        def loop(time, output, state, loop_state):
            next_state = cell.zero_state(3, tf.float32) if output is None else state
            finished = time >= lengths
            done = tf.reduce_all(finished)
            following = tf.cond(done, lambda: tf.zeros([3, 4]), lambda: array.read(time))
            return finished, following, next_state, output, None

        emitted, state, loop_state = tf.nn.raw_rnn(cell, loop)
        assert loop_state is None
        return [emitted.stack(), state]

    compare_network(build, SEQUENCE, LENGTHS)


def test_raw_rnn_with_a_loop_state_and_structures():
    def build(tf, x):
        cell = tf.nn.rnn_cell.GRUCell(4)

        def loop(time, output, state, loop_state):
            first = output is None
            emit = (
                (tf.zeros([4]), tf.zeros([], tf.int32))
                if first
                else (
                    output * 2.0,
                    tf.fill([3], time),
                )
            )
            return (
                tf.fill([3], time >= 4),
                x if first else output + x,
                x * 0.5 if first else state,
                emit,
                {"n": tf.constant(1.0)} if first else {"n": loop_state["n"] * 2.0},
            )

        emitted, state, loop_state = tf.nn.raw_rnn(cell, loop)
        return [emitted[0].stack(), emitted[1].stack(), state, loop_state]

    compare_network(build, STEP)
