"""Loops and conditionals in compiled steps: what compiles with what, how often, what stays out."""

import logging

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import compiler, loop_trace
from runnel.runtime.schedule.unit import RegionUnit
from tests.both_tiers import COMPILED, run_both, session


def segments(sess):
    """For each segment of the session's newest step, whether it ran compiled."""
    plan = list(sess._prepared.values())[-1].plan
    assert not any(isinstance(unit, RegionUnit) for unit in plan.schedule.units)
    return [
        runner.segment.compilable and any(v.executable for v in runner._variants._known.values())
        for runner in plan.schedule.runners
    ]


def recurrent(x, w):
    """The last state and all states of a small recurrent network over the first axis of ``x``."""
    steps = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, steps).unstack(x)
    outputs = tf.TensorArray(tf.float32, steps)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(tf.concat([inputs.read(i), h], 1), w))
        return i + 1, h, out.write(i, h)

    start = tf.zeros([tf.shape(x)[1], 3])
    _, last, outputs = tf.while_loop(lambda i, *_: i < steps, body, [0, start, outputs])
    return last, outputs.stack()


def by_hand(x, w):
    h = np.zeros((x.shape[1], 3), np.float32)
    states = []
    for row in x:
        h = np.tanh(np.concatenate([row, h], 1) @ w)
        states.append(h)
    return h, np.stack(states)


def test_a_loop_its_gradient_and_the_update_are_one_compiled_segment():
    x = tf.placeholder(tf.float32, [None, None, 2])
    w = tf.Variable(np.linspace(-1, 1, 15).reshape(5, 3).astype("f"))
    last, states = recurrent(x, w)
    loss = tf.reduce_sum(states**2)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    data = np.random.RandomState(0).randn(4, 2, 2).astype("f")
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(w)
        np.testing.assert_allclose(sess.run(states, {x: data}), by_hand(data, before)[1], 1e-5)
        sess.run(train, {x: data})
        assert segments(sess) == [True]
        after = sess.run(w)
    step = 1e-2
    for place in [(0, 0), (2, 1), (4, 2)]:
        sides = []
        for sign in (1, -1):
            moved = before.copy()
            moved[place] += sign * step
            sides.append((by_hand(data, moved)[1] ** 2).sum())
        slope = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose((before - after)[place] / 0.1, slope, rtol=2e-2)


def test_one_compilation_for_each_shape_and_none_the_second_time(caplog):
    x = tf.placeholder(tf.float32, [None, None, 2])
    w = tf.constant(np.linspace(-1, 1, 15).reshape(5, 3).astype("f"))
    last, states = recurrent(x, w)
    (gradient,) = tf.gradients(states, x)
    shapes = [(1 + k % 5, 1 + k // 5, 2) for k in range(20)]
    batches = [np.full(shape, 0.1, np.float32) for shape in shapes]
    with session(COMPILED) as sess, caplog.at_level(logging.WARNING, "runnel"):
        first = compiler.compilations
        for batch in batches:
            found = sess.run([last, gradient], {x: batch})
            np.testing.assert_allclose(found[0], by_hand(batch, sess.run(w))[0], 1e-5)
        constants = 1  # fetching w is a step of its own, compiled or not
        assert compiler.compilations - first <= len(shapes) + constants
        again = compiler.compilations
        for batch in batches:
            sess.run([last, gradient], {x: batch})
        assert compiler.compilations == again
    assert "the shape of Placeholder:0" in caplog.text


def test_a_fed_number_of_iterations_does_not_compile_again():
    n = tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, s * 2), [0, 1.0])
    with session(COMPILED) as sess:
        assert sess.run(y, {n: 3}) == 8.0
        before = compiler.compilations
        assert [sess.run(y, {n: k}) for k in range(6)] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
        assert compiler.compilations == before


def test_a_loop_without_known_limit_is_compiled_but_its_gradient_is_not():
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda s: s < 100.0, lambda s: s * x, [x])
    (gradient,) = tf.gradients(y, x)
    with session(COMPILED) as sess:
        assert sess.run(y, {x: 2.0}) == 128.0
        assert segments(sess) == [True]
        assert sess.run(gradient, {x: 2.0}) == 7 * 2.0**6
        assert False in segments(sess)


def test_the_memory_of_a_gradient_grows_with_the_iterations_run_not_with_their_maximum():
    x = tf.placeholder(tf.float32, [1000])
    y = tf.while_loop(
        lambda s: tf.reduce_sum(s) < 5000.0, lambda s: s * x, [x], maximum_iterations=10**6
    )
    (gradient,) = tf.gradients(y, x)
    with session(COMPILED) as sess:  # a buffer for the maximum would have four gigabytes
        found = sess.run(gradient, {x: np.full(1000, 2.0, np.float32)})
        np.testing.assert_allclose(found, 3 * 2.0**2)
        assert False in segments(sess)


def test_buffers_are_as_large_as_what_bounds_a_data_dependent_length():
    """As in dynamic_rnn with sequence lengths: the smaller of a shape and a number in the data."""
    x = tf.placeholder(tf.float32, [None])
    lengths = tf.placeholder(tf.int32, [2])
    limit = tf.minimum(tf.shape(x)[0], tf.reduce_max(lengths))
    elements = tf.TensorArray(tf.float32, tf.shape(x)[0], clear_after_read=False).unstack(x)
    _, y = tf.while_loop(
        lambda i, _: i < limit, lambda i, s: (i + 1, tf.sin(s + elements.read(i))), [0, 0.5]
    )
    (gradient,) = tf.gradients(y, x)
    data = np.array([0.3, -0.2, 0.9, 0.1], np.float32)
    with session(COMPILED) as sess, session(-1) as interpreted:
        for longest in (1, 3, 4):
            feeds = {x: data, lengths: [1, longest]}
            found, expected = (s.run([y, gradient], feeds) for s in (sess, interpreted))
            np.testing.assert_allclose(found[0], expected[0], 1e-6)
            np.testing.assert_allclose(found[1], expected[1], 1e-6)
        assert segments(sess) == [True]


def test_a_shape_that_changes_is_interpreted():
    x = tf.placeholder(tf.float32, [None])
    _, grown = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, s: (i + 1, tf.concat([s, s], 0)),
        [0, x],
        shape_invariants=[(), (None,)],
    )
    with session(COMPILED) as sess:
        assert sess.run(grown, {x: [1.0, 2.0]}).shape == (16,)
        assert segments(sess) == [False]


@pytest.fixture
def counted(monkeypatch):
    """How often each loop runs of which XLA knows that, in the order in which they are traced."""
    found = []

    def counted_loop(times, body, start):
        found.append(times)
        return original(times, body, start)

    original = loop_trace.counted_loop
    monkeypatch.setattr(loop_trace, "counted_loop", counted_loop)
    return found


def test_xla_knows_how_often_a_loop_and_its_gradient_run(counted):
    x = tf.placeholder(tf.float32, [None, 2, 2])
    w = tf.Variable(np.linspace(-1, 1, 15).reshape(5, 3).astype("f"))
    _, outputs = recurrent(x, w)
    (gradient,) = tf.gradients(outputs, w)
    run_both(gradient, {x: np.ones([7, 2, 2], "f")}, init=w.initializer)
    assert set(counted) == {7} and len(counted) >= 2


def test_loops_in_a_loop_are_counted_where_none_depends_on_data(counted):
    def nested(goes_on):
        def outer(i, total):
            inner = tf.while_loop(
                goes_on, lambda j, t: (j + 1, t + tf.cast(i, tf.float32)), [0, total]
            )
            return i + 1, inner[1]

        return tf.while_loop(lambda i, _: i < 4, outer, [0, tf.placeholder_with_default(1.0, [])])[
            1
        ]

    run_both(nested(lambda j, _: j < 3))
    assert {3, 4} == set(counted)
    counted.clear()
    run_both(nested(lambda j, t: (j < 3) & (t < 5.0)))
    assert not counted


def test_an_accelerator_need_not_ask_whether_a_counted_loop_goes_on():
    def loop(x):
        return loop_trace.counted_loop(9, lambda y: y * x, x)

    assert '"known_trip_count":{"n":"9"}' in jax.jit(loop).lower(2.0).compile().as_text()


def test_a_failed_check_in_an_iteration_changes_nothing_and_is_named():
    v = tf.Variable(1.0)
    table = tf.placeholder(tf.float32, [3])

    def body(i, s):
        return i + 1, s + tf.gather(table, i, name="look_up")

    _, total = tf.while_loop(lambda i, _: i < 5, body, [0, 0.0])
    update = tf.assign_add(v, total)
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            sess.run(update, {table: [1.0, 2.0, 3.0]})
        assert raised.value.op.name == "while/look_up"
        assert sess.run(v) == 1.0


def test_random_numbers_go_on_where_a_compiled_loop_left_off():
    def drawn(level):
        with tf.Graph().as_default():
            noise = tf.random_uniform([], seed=5)
            n = tf.placeholder(tf.int32, [])
            _, total = tf.while_loop(
                lambda i, _: i < n,
                lambda i, s: (i + 1, s * 0.5 + tf.random_uniform([], seed=7)),
                [0, noise],
            )
            with session(level) as sess:
                return [float(sess.run(total, {n: k})) for k in (3, 0, 2, 5)]

    np.testing.assert_allclose(drawn(COMPILED), drawn(-1), rtol=1e-6)


def test_a_variable_that_a_loop_writes():
    v = tf.Variable(1.0, use_resource=True)

    def body(i):
        with tf.control_dependencies([v.assign(v.read_value() * 2.0)]):
            return i + 1

    n = tf.placeholder(tf.int32, [])
    loop = tf.while_loop(lambda i: i < n, body, [0])
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        sess.run(loop, {n: 5})
        assert segments(sess) == [True]
        assert sess.run(v) == 32.0


def test_an_embedding_and_a_loop_are_traced_once():
    """Updates of rows are gated by checks: that must not compute the loop a second time."""
    table = tf.get_variable("table", [7, 3], initializer=tf.ones_initializer())
    ids = tf.placeholder(tf.int32, [4])
    rows = tf.nn.embedding_lookup(table, ids)
    _, total = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, tf.sin(s)), [0, rows])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(total))
    with session(COMPILED) as sess, session(-1) as interpreted:
        for s in (sess, interpreted):
            s.run(tf.global_variables_initializer())
            s.run(train, {ids: [0, 1, 1, 6]})
        np.testing.assert_allclose(sess.run(table), interpreted.run(table), 1e-6)


def test_the_executor_type_must_be_one_that_exists():
    config = tf.ConfigProto()
    config.experimental.executor_type = "QUANTUM"
    with pytest.raises(ValueError, match="QUANTUM.*'DATAFLOW'"):
        tf.Session(config=config)
