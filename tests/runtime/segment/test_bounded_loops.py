"""Loops whose number of iterations changes from step to step: compiled once for all of them."""

import threading
from concurrent.futures import Future

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.segment import bounded_loops
from tests.both_tiers import INTERPRETED, session

LENGTHS = [3, 5, 2, 7, 4, 6, 1, 15, 9, 0, 12, 3, 8]


@pytest.fixture
def loops(monkeypatch):
    """The loops that there are; each is compiled as soon as it is known to vary."""

    def at_once(function):
        done = Future()
        function()
        done.set_result(None)
        return done

    found = []

    class Watched(bounded_loops.BoundedLoop):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            found.append(self)

        @property
        def is_compiled(self):
            return any(form.executable is not None for form in self._forms.values())

    monkeypatch.setattr(bounded_loops, "BoundedLoop", Watched)
    monkeypatch.setattr(bounded_loops, "begin_beside", at_once)
    monkeypatch.setattr(bounded_loops, "_SHARE", 0.0)
    monkeypatch.setattr(bounded_loops, "_TRIAL_RUNS", -1)  # none is slower
    return found


def run_lengths(level, fetches, x, shape, lengths=LENGTHS):
    """What ``fetches`` give for sequences of each length, in one session."""
    random = np.random.RandomState(1)
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        return [
            sess.run(fetches, {x: random.standard_normal((n, *shape)).astype("f")}) for n in lengths
        ]


def require_same(fetches, x, shape, lengths=LENGTHS):
    """Asserts that steps with bounded loops give what interpreted ones give."""
    expected = run_lengths(INTERPRETED, fetches, x, shape, lengths)
    for got, wanted in zip(run_lengths(0, fetches, x, shape, lengths), expected, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_recurrent_network_is_trained_over_many_lengths(loops):
    x = tf.placeholder(tf.float32, [None, 2, 3])
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    with tf.variable_scope("rnn", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=3)):
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(outputs)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    with tf.control_dependencies([train]):
        after = [tf.identity(v) for v in tf.trainable_variables()]
    require_same([loss, outputs, *after], x, (2, 3))
    assert sum(loop.is_compiled for loop in loops) >= 2  # the network's and the gradient's


def test_sequences_that_end_early_are_masked_as_ever(loops):
    x = tf.placeholder(tf.float32, [None, 4, 2])
    length = tf.minimum(tf.shape(x)[0], [1, 4, 2, 9])
    cell = tf.nn.rnn_cell.GRUCell(3)
    outputs, state = tf.nn.dynamic_rnn(cell, x, length, dtype=tf.float32, time_major=True)
    gradient = tf.gradients(tf.reduce_sum(outputs**2) + tf.reduce_sum(state), x)[0]
    for variable in tf.trainable_variables():
        initial = np.random.RandomState(2).standard_normal(variable.shape.as_list())
        tf.add_to_collection("start", variable.assign(initial))
    with tf.control_dependencies(tf.get_collection("start")):
        started = tf.no_op()
    fetches = [outputs, state, gradient]
    random = np.random.RandomState(1)
    data = [random.standard_normal((n, 4, 2)).astype("f") for n in LENGTHS if n]
    results = []
    for level in (INTERPRETED, 0):
        with session(level) as sess:
            sess.run(started)
            results.append([sess.run(fetches, {x: d}) for d in data])
    for got, wanted in zip(*results, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert any(loop.is_compiled for loop in loops)


def test_a_limit_in_the_data_bounds_a_loop_that_pushes_on_stacks(loops):
    n = tf.placeholder(tf.int32, [])
    x = tf.Variable([0.5, -0.25])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.sin(y) * x + y), [0, x])
    (gradient,) = tf.gradients(y, x)
    results = []
    for level in (INTERPRETED, 0):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            results.append([sess.run([y, gradient], {n: k}) for k in [*LENGTHS, 40, 100, -1]])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4)
    assert any(loop.is_compiled for loop in loops)


def test_the_second_derivative_goes_through_loops_of_many_lengths(loops):
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable([0.7, -0.4])
    y = tf.foldl(lambda a, row: tf.tanh(a * w + row), x, initializer=tf.zeros([2]))
    (first,) = tf.gradients(y, w)
    (second,) = tf.gradients(first, w)
    require_same([y, first, second], x, (2,), [n for n in LENGTHS if n])
    assert any(loop.is_compiled for loop in loops)


def test_lengths_of_another_size_are_compiled_for_once_more(loops):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.scan(lambda a, row: a * 0.5 + row, x)
    require_same([y], x, (2,), [3, 4, 5, 6, 300, 7, 280, 3000])
    assert len({s.capacity for loop in loops for s in loop._forms}) >= 3


def reading(places):
    """A loop that reads an array of three elements at the first ``n`` of ``places``."""
    n = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, 3, element_shape=[]).unstack([1.0, 2.0, 3.0])
    at = tf.constant(places)
    _, total = tf.while_loop(
        lambda i, _: i < n, lambda i, s: (i + 1, s + array.read(at[i])), [0, 0.0]
    )
    return n, total


@pytest.mark.parametrize(
    "places, message",
    [
        ([0, 1, 2, 0, 1], "Could not read index 0 twice"),
        ([0, 1, 5, 2, 1], "Tried to read from index 5 but array size is: 3"),
    ],
    ids=["twice", "outside"],
)
def test_an_error_in_such_a_loop_is_the_interpreters(loops, places, message):
    n, total = reading(places)
    sess = tf.Session()
    for count in (0, 1, 2, 1, 2, 0, 1, 2):
        expected = sum(places[:count]) + count
        if count < 3:
            assert sess.run(total, {n: count}) == expected
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(total, {n: 5})
    assert sess.run(total, {n: 2}) == 3.0


def test_an_array_that_is_written_in_part_has_zeros_elsewhere(loops):
    n = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, 8, element_shape=[2], clear_after_read=False)
    _, array = tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, a.write(2 * i, tf.fill([2], tf.cast(i + 1, tf.float32)))),
        [0, array],
    )
    stacked = array.stack()
    with tf.Session() as sess:
        for count in [4, 1, 3, 2, 0, 4, 1, 2, 3]:
            expected = np.zeros((8, 2))
            expected[: 2 * count : 2] = np.arange(1, count + 1)[:, None]
            np.testing.assert_array_equal(sess.run(stacked, {n: count}), expected)


def test_steps_of_several_threads_do_not_share_memory(loops):
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.constant([0.9, 0.5, 0.1])
    y = tf.foldl(lambda a, row: tf.tanh(a * w + row), x, initializer=tf.zeros([3]))
    (gradient,) = tf.gradients(y, x)
    random = np.random.RandomState(0)
    data = [random.standard_normal((n, 3)).astype("f") for n in range(4, 24)]
    with session(INTERPRETED) as sess:
        expected = [sess.run([y, gradient], {x: d}) for d in data]
    failures = []
    with tf.Session() as sess:

        def run(first):
            for turn in range(60):
                k = (first + 7 * turn) % len(data)
                for got, wanted in zip(
                    sess.run([y, gradient], {x: data[k]}), expected[k], strict=True
                ):
                    if not np.allclose(got, wanted, 1e-4, 1e-5):
                        failures.append(k)

        threads = [threading.Thread(target=run, args=(5 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert any(loop.is_compiled for loop in loops)


def test_a_loop_of_one_length_is_left_to_its_segment(loops):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.scan(lambda a, row: a + row, x)
    run_lengths(0, [y], x, (2,), [5] * 20)
    assert not any(loop.is_compiled for loop in loops)
