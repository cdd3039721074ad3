"""Gradients with an unknown batch: what turns out not to be broadcast is not summed, nor kept."""

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.prune import prune
from runnel.passes.rewrites.symbolic_shapes import SymbolicShapes
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import nested_nodes
from tests.both_tiers import COMPILED, session
from tests.execution_modes import MODES, forced

BROADCASTING = {"BroadcastGradientArgs", "Reshape"}


def kinds_in_loops(fetches, feeds):
    """The operations that the loops of a prepared step contain."""
    with session(COMPILED) as sess:
        step = sess._plan(fetches, [], feeds)
        nodes = [node for runner in step.schedule.runners for node in runner.segment.nodes]
    return [n.op_def.name for n in nested_nodes(nodes) if n not in nodes]


def same_in_all_modes(fetches, feeds, modes=tuple(MODES)):
    """The values of the second run, which is optimized, in every mode; they agree."""
    found = []
    for mode in modes:
        with forced(mode), tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(2):
                values = sess.run(fetches, feeds)
            found.append(values)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
    return found[0]


def lstm(x):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    y, last = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)
    return tf.reduce_sum(y) + tf.reduce_sum(last[0] ** 2)


def gru(x):
    y, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), x, dtype=tf.float32)
    return tf.reduce_sum(y**2)


def with_dropout(x):
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.LSTMCell(4, use_peepholes=True, num_proj=3), state_keep_prob=0.5, seed=3
    )
    y, _ = tf.nn.dynamic_rnn(cell, x, sequence_length=tf.fill([tf.shape(x)[0]], 2), dtype=x.dtype)
    return tf.reduce_sum(y**2)


def both_ways(x):
    cells = [tf.nn.rnn_cell.BasicRNNCell(4) for _ in range(2)]
    y, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    return tf.reduce_sum(y[0] * y[1])


@pytest.mark.parametrize("network", [lstm, gru, both_ways, with_dropout])
def test_a_recurrent_network_keeps_no_shapes_for_its_gradient(network):
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, None, 3])
    loss = network(x)
    weights = tf.trainable_variables()
    gradients = tf.gradients(loss, weights)
    assert BROADCASTING.isdisjoint(kinds_in_loops(gradients, [x]))
    interpreted = ("event-driven", "structured")
    for shape, modes in (([4, 2, 3], tuple(MODES)), ([1, 1, 3], interpreted)):
        data = np.random.RandomState(0).randn(*shape).astype("f")
        same_in_all_modes([loss, *gradients], {x: data}, modes)


def test_a_state_for_all_rows_gets_the_sum_of_their_gradients():
    x = tf.placeholder(tf.float32, [None, None, 4])
    start = tf.placeholder(tf.float32, [None, 4])
    scale = tf.placeholder(tf.float32, [None, 4])
    h = tf.while_loop(
        lambda i, h: i < tf.shape(x)[0],
        lambda i, h: (i + 1, tf.tanh(h * scale + x[i])),
        [0, start],
    )[1]
    gradients = tf.gradients(h, [start, scale, x])
    rows = np.random.RandomState(0).randn(3, 2, 4).astype("f")
    for size in (1, 2):
        feeds = {x: rows, start: rows[0], scale: rows[1, :size]}
        found = same_in_all_modes(gradients, feeds)
        assert [g.shape for g in found] == [(2, 4), (size, 4), (3, 2, 4)]


def test_a_variable_that_grows_is_as_large_as_it_is():
    x = tf.placeholder(tf.float32, [None, 2])

    def body(i, grown, fixed):
        return i + 1, tf.concat([grown * 2.0, fixed], 0), fixed * tf.reduce_sum(grown)

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2]), x.shape]
    _, grown, fixed = tf.while_loop(lambda i, *_: i < 3, body, [0, x, x], shapes)
    step = SymbolicShapes(raise_control_flow(program := prune([x, grown, fixed], [], [x])))
    of_x, of_grown, of_fixed = (step.sizes(value) for value in program.fetches)
    assert of_x == of_fixed
    assert of_x != of_grown
    y = grown * tf.tile(x, [4, 1])
    gradient = tf.gradients(y, x)
    same_in_all_modes([y, *gradient], {x: np.random.RandomState(0).randn(3, 2).astype("f")})


def test_what_is_pushed_when_rows_differ_from_iteration_to_iteration_is_popped_as_it_was():
    x = tf.placeholder(tf.float32, [None, 2])

    def body(i, total):
        part = x[: i + 1] * 2.0
        return i + 1, total + tf.reduce_sum(tf.tanh(part) * tf.exp(part))

    _, total = tf.while_loop(lambda i, _: i < tf.shape(x)[0], body, [0, 0.0])
    gradients = tf.gradients(total, x)
    same_in_all_modes([total, *gradients], {x: np.random.RandomState(0).randn(4, 2).astype("f")})


def test_a_reshape_waits_for_what_its_shape_waits_for():
    x = tf.placeholder(tf.float32, [None, 2])
    wrong = tf.Assert(tf.placeholder_with_default(False, []), ["as expected"])
    with tf.control_dependencies([wrong]):
        shape = tf.shape(x)
    variable = tf.Variable(0.0)
    scaled = tf.gradients(x * tf.tanh(x), x)[0]  # so that there is something to drop
    change = variable.assign(tf.reduce_sum(tf.reshape(scaled, shape)))
    for mode in MODES:
        with forced(mode), tf.Session() as sess:
            sess.run(variable.initializer)
            for _ in range(2):
                with pytest.raises(tf.errors.InvalidArgumentError, match="as expected"):
                    sess.run(change, {x: np.ones([3, 2])})
            assert sess.run(variable) == 0


def array_of(x):
    return tf.TensorArray(tf.float32, tf.shape(x)[0]).unstack(x)


OPERATIONS = {
    "elementwise": lambda x, y: [tf.tanh(x), x * 2.0, x + x, tf.maximum(x, tf.sigmoid(x))],
    "broadcast": lambda x, y: [x * y, x[:1] * y, x * x[:, :1], x + y[0], y * tf.ones([4])],
    "products": lambda x, y: [
        tf.matmul(x, y, transpose_b=True),
        tf.matmul(x, x, transpose_a=True),
        tf.matmul(x[:, None], y[:, :, None]),
        tf.matmul(x[:, :, None], y[:, :, None], transpose_b=True),
    ],
    "shapes": lambda x, y: [
        tf.zeros(tf.shape(x)),
        tf.fill([tf.shape(y)[0], 4], 1.0),
        tf.zeros(tf.concat([tf.shape(x)[:1], [3]], 0)),
        tf.zeros([tf.shape(x)[-1], tf.shape(y)[0]]),
        tf.broadcast_to(1.0, tf.shape(y)),
        tf.random_uniform(tf.shape(x)[::-1]),
    ],
    "joins": lambda x, y: [tf.concat([x, x], 1), tf.concat([x, y], 0), tf.stack([x, x], 1)],
    "parts": lambda x, y: [
        *tf.split(x, 2, 1),
        *tf.split(x, [1, 3], 1),
        x[:, 0],
        x[1:],
        x[::-1, 1:],
    ],
    "axes": lambda x, y: [
        tf.expand_dims(x, 1),
        tf.expand_dims(x, -1),
        tf.squeeze(tf.expand_dims(x, 0), [0]),
        tf.transpose(x),
        tf.transpose(x[:, None], [1, 2, 0]),
    ],
    "reductions": lambda x, y: [
        tf.reduce_sum(x, 1),
        tf.reduce_mean(x, [0], keepdims=True),
        tf.reduce_max(x, -1, keepdims=True),
        tf.reduce_sum(x),
    ],
    "reshapes": lambda x, y: [
        tf.reshape(x, [-1]),
        tf.reshape(x, [1, -1, 4]),
        tf.reshape(x, [-1, 2]),
        tf.reshape(x, [2, -1, 2]),
        tf.reshape(x, tf.shape(x)),
        tf.reshape(tf.matmul(x, y, transpose_b=True), [-1, tf.shape(x)[0]]),
    ],
    "choices": lambda x, y: [
        tf.where(x > 0, x, -x),
        tf.where_v2(x > 0, y, 0.0),
        tf.where_v2(x[:, :1] > 0, 1.0, x),
        tf.gather(x, tf.zeros(tf.shape(y)[:1], tf.int32)),
        tf.cond(tf.size(x) > 9, lambda: x, lambda: x * 2.0),
        tf.cond(tf.size(x) > 9, lambda: x, lambda: y),
    ],
    "arrays": lambda x, y: [array_of(x).read(0), array_of(x).stack(), array_of(y).gather([0, 0])],
    "classes": lambda x, y: [
        tf.nn.softmax(x),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(x[:, 0], tf.int32), logits=x),
    ],
}


@pytest.mark.parametrize("family", OPERATIONS)
def test_sizes_of_one_symbol_are_equal_whatever_is_fed(family):
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 4])
    fetches = OPERATIONS[family](x, y)
    program = raise_control_flow(prune(fetches, [], [x, y]))
    shapes = SymbolicShapes(program)
    sizes = [shapes.sizes(value) for value in program.fetches]
    feeds = list(program.feeds.values())
    assert len({shapes.sizes(value)[0] for value in feeds}) == 2
    ran = 0
    with tf.Session() as sess:
        for rows in ((3, 3), (2, 1), (1, 2), (1, 1), (4, 2)):
            arrays = [np.zeros([n, 4], np.float32) for n in rows]
            for fetch, found in zip(fetches, sizes, strict=True):
                try:
                    value = sess.run(fetch, dict(zip((x, y), arrays, strict=True)))
                except tf.errors.InvalidArgumentError:
                    continue  # these shapes do not go together
                ran += 1
                if found is None:
                    continue
                known = {shapes.sizes(v)[0]: n for v, n in zip(feeds, rows, strict=True)}
                assert len(found) == np.ndim(value)
                for size, actual in zip(found, np.shape(value), strict=True):
                    assert known.setdefault(size, size if type(size) is int else actual) == actual
    assert ran > len(fetches)
