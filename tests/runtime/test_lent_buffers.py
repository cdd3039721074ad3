"""Large buffers of compiled loops: a run works in those of the run before, and nobody can tell."""

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile.buffers import _SMALL
from tests.both_tiers import COMPILED, INTERPRETED, session

UNITS, BATCH = 32, 16


def network():
    """A training step of a recurrent network whose stacks are large, and all of its states."""
    x = tf.placeholder(tf.float32, [None, BATCH, UNITS])
    w = tf.Variable(np.random.RandomState(1).randn(2 * UNITS, UNITS).astype("f") / 10)
    kept = tf.Variable(tf.zeros([1]), validate_shape=False, trainable=False)
    steps = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.check_numerics(x, "x is bad"))
    outputs = tf.TensorArray(tf.float32, steps)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(tf.concat([inputs.read(i), h], 1), w))
        return i + 1, h, out.write(i, h)

    start = tf.zeros([BATCH, UNITS])
    loop = tf.while_loop(lambda i, *_: i < steps, body, [0, start, outputs])
    states = loop[2].stack()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(states**2))
    return x, w, states, train, tf.assign(kept, states, validate_shape=False), kept


def data(steps, seed=0):
    return np.random.RandomState(seed).randn(steps, BATCH, UNITS).astype("f")


LONG, SHORT = 200, 150
assert SHORT * BATCH * UNITS * 4 > _SMALL


def test_steps_of_several_lengths_in_turn_are_those_of_the_interpreter():
    x, w, states, train, _, _ = network()
    results = []
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            seen = [
                sess.run([states, train], {x: data(steps, i)})[0]
                for i, steps in enumerate([LONG, LONG, SHORT, LONG, 0, SHORT, SHORT])
            ]
            results.append([*seen, sess.run(w)])
    for interpreted, compiled in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, interpreted, 1e-4, 1e-5)


def test_what_was_fetched_or_stored_is_not_worked_in_again():
    x, _, states, train, keep, kept = network()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        fetched, _, _ = sess.run([states, train, keep], {x: data(LONG, 1)})
        copy = fetched.copy()
        np.testing.assert_array_equal(sess.run(kept), copy)
        sess.run([states, train], {x: data(LONG, 2)})
        sess.run(train, {x: data(LONG, 3)})
        np.testing.assert_array_equal(fetched, copy)
        np.testing.assert_array_equal(sess.run(kept), copy)


def test_a_step_that_fails_leaves_the_next_one_whole():
    x, w, states, train, _, _ = network()
    bad = data(LONG)
    bad[3, 0, 0] = np.nan
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: data(LONG)})
        before = sess.run(w)
        with pytest.raises(tf.errors.InvalidArgumentError, match="x is bad"):
            sess.run(train, {x: bad})
        np.testing.assert_array_equal(sess.run(w), before)
        with session(INTERPRETED) as other:
            other.run(w.assign(before))
            expected = other.run([states, train], {x: data(LONG, 5)})[0]
        found = sess.run([states, train], {x: data(LONG, 5)})[0]
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_steps_at_once_do_not_share_buffers():
    x, _, states, _, _, _ = network()
    gradient = tf.gradients(states, x)[0]
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        expected = [sess.run(gradient, {x: data(LONG, seed)}) for seed in range(4)]
        failures = []

        def work(seed):
            try:
                for _ in range(8):
                    found = sess.run(gradient, {x: data(LONG, seed)})
                    np.testing.assert_array_equal(found, expected[seed])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert not failures
