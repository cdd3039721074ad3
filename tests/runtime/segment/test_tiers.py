"""Tiers: when a step is compiled, and that the process's JAX is left alone."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import compiler
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, session


@pytest.fixture
def compilations():
    """The number of compilations since the test began."""
    start = compiler.compilations
    return lambda: compiler.compilations - start


def heavy_step(size):
    x = tf.placeholder(tf.float32, [None, size])
    w = tf.Variable(tf.ones([size, size]) / size)
    y = x
    for _ in range(4):
        y = tf.tanh(tf.matmul(y, w))
    return x, tf.reduce_sum(y)


def test_what_runs_once_is_interpreted(compilations):
    x, y = heavy_step(8)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(y, {x: np.ones((2, 8))})
    assert compilations() == 0


def test_a_repeated_heavy_step_is_compiled_and_agrees(compilations):
    x, y = heavy_step(256)
    feed = {x: np.ones((64, 256), np.float32)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(y, feed)
        for _ in range(2000):
            value = sess.run(y, feed)
            if compilations():
                break
        await_compilations()
        assert compilations() == 1
        np.testing.assert_allclose(sess.run(y, feed), first, rtol=1e-5)
        assert value == pytest.approx(first, rel=1e-5)


def test_a_tiny_step_stays_interpreted_however_often_it_runs(compilations):
    v = tf.Variable(0, dtype=tf.int64)
    bump = v.assign_add(1)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for _ in range(3000):
            sess.run(bump)
        assert sess.run(v) == 3000
    assert compilations() == 0


def test_tiers_can_be_forced(compilations):
    x, y = heavy_step(8)
    feed = {x: np.ones((2, 8))}
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(10):
            sess.run(y, feed)
        assert compilations() == 0
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        before = compilations()
        for _ in range(10):
            sess.run(y, feed)
        assert compilations() == before + 1


def test_each_shape_is_compiled_once_and_many_are_mentioned(compilations, caplog):
    x, y = heavy_step(8)
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        before = compilations()
        with caplog.at_level(logging.WARNING, logger="runnel"):
            for _ in range(3):
                for rows in range(1, 11):
                    sess.run(y, {x: np.ones((rows, 8))})
    assert compilations() == before + 10
    (message,) = [r.getMessage() for r in caplog.records if "signatures" in r.getMessage()]
    assert x.name in message


def test_64_bit_types_work_in_both_tiers_and_jax_is_not_reconfigured():
    import jax
    import jax.numpy as jnp

    x = tf.placeholder(tf.float64, [2])
    n = tf.constant(2**40, tf.int64)
    outcomes, y = [], x * 2.0
    graph, more = tf.get_default_graph(), n + 1

    def run() -> None:
        for level in (INTERPRETED, COMPILED):
            with session(level, graph) as sess:
                outcomes.append(sess.run([y, more], {x: [1e300, 1.0]}))
        # The user's own JAX code sees JAX's defaults.
        outcomes.append((jnp.arange(3).dtype, jax.config.jax_enable_x64))

    # JAX's setting is the thread's: an interrupt in another test may have left this one another.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    *values, defaults = outcomes
    for found in values:
        assert found[0].dtype == np.float64 and found[0][0] == 2e300
        assert found[1] == 2**40 + 1 and found[1].dtype == np.int64
    assert len(values) == 2 and defaults == (jnp.int32, False)


def test_import_runnel_does_not_import_jax_or_protocol_buffers():
    script = (
        "import sys, runnel as tf\n"
        "x = tf.placeholder(tf.float32)\n"
        "assert tf.Session().run(x * 2.0, {x: 3.0}) == 6.0\n"
        "heavy = ('jax', 'google.protobuf', 'tensorboard', 'rich')\n"
        "print([m for m in heavy if m in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


def test_large_constants_are_passed_not_embedded():
    data = np.arange(1 << 18, dtype=np.float32)
    c = tf.constant(data)
    i = tf.placeholder(tf.int32, [])
    with session(COMPILED) as sess:
        assert sess.run(tf.reduce_sum(c * tf.cast(i, tf.float32)), {i: 2}) == pytest.approx(
            2 * data.sum(dtype=np.float64), rel=1e-5
        )


def test_a_compiled_shape_error_names_its_operation():
    a, b = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
    c = tf.matmul(a, b)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            with pytest.raises(tf.errors.InvalidArgumentError) as e:
                sess.run(c, {a: np.ones((2, 3)), b: np.ones((4, 5))})
            assert e.value.op is c.op
            assert sess.run(c, {a: np.ones((2, 3)), b: np.ones((3, 5))}).shape == (2, 5)


def test_a_value_to_compile_for_may_be_that_of_a_branch_not_taken():
    x, shape = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [2])
    with session(COMPILED) as sess:
        sess.run(tf.reshape(x, shape), {x: np.ones(6), shape: [2, 3]})
        (prepared, *_) = sess._prepared.values()
        (runner,) = prepared.plan.schedule.runners
        (place,) = runner._variants.specialized
        inputs = [np.ones(6, np.float32), np.ones(6, np.float32)]
        inputs[place] = None
        assert runner._variants.find(inputs) is None
