"""Steps that are watched stop at the first value that is no number, and say where it came from."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, session


def here(offset: int = 0) -> str:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno + offset}"


@pytest.mark.parametrize("level", [0, COMPILED])
def test_a_step_stops_at_the_first_nan_with_its_line(level):
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.get_variable("w", initializer=np.float32([1.0, 1.0]))
    logs, line = tf.log(x * w, name="logs"), here()
    loss = tf.reduce_sum(logs * 0.0)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    with tf.debug.WatchedSession(session(level)) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: [1.0, 2.0]})
        before = sess.run(w)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run([train, loss], {x: [0.0, 2.0]})
        assert caught.value.op is logs.op
        text = str(caught.value)
        assert line in text and "1 infinite of 2" in text and "mul:0 was float32" in text
        assert "from 0 to 2" in text
        np.testing.assert_array_equal(sess.run(w), before)


@pytest.mark.parametrize("kind", ["while", "cond"])
def test_loops_and_branches_are_watched_too(kind):
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner)
        if kind == "while":
            made = tf.while_loop(
                lambda i, _: i < 5, lambda i, s: (i + 1, tf.sqrt(s - 1.0, name="root")), [0, x]
            )[1]
        else:
            made = tf.cond(x > 0.0, lambda: tf.sqrt(-x, name="root"), lambda: x)
        assert np.isnan(inner.run(made, {x: 3.0}))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(made, {x: 3.0})
        assert caught.value.op.name.endswith("root") and "1 NaN of 1" in str(caught.value)


def test_values_are_kept_by_the_names_of_their_tensors():
    with tf.name_scope("layer"):
        a = tf.constant([1.0, 2.0], name="a")
        b = tf.multiply(a, 3.0, name="b")
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner, names="layer/[ab]:0")
        np.testing.assert_array_equal(sess.run(b + 1.0), [4.0, 7.0])
        assert {*sess.watched} >= {"layer/b:0"}
        np.testing.assert_array_equal(sess.watched["layer/b:0"], [3.0, 6.0])


def test_a_condition_of_ones_own():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.square(x * 10.0, name="big")
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner, lambda name, value: name == "big:0" and value > 50)
        assert sess.run(y, {x: 0.1}) == 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="big:0 is float32"):
            sess.run(y, {x: 1.0})


def test_what_is_not_a_number_is_told_by_type():
    assert tf.debug.has_inf_or_nan("x:0", np.array([1.0, np.nan]))
    assert tf.debug.has_inf_or_nan("x:0", np.array([np.inf], np.float16))
    assert tf.debug.has_inf_or_nan("x:0", np.array([np.nan], tf.bfloat16.np_dtype))
    assert not tf.debug.has_inf_or_nan("x:0", np.array([1, 2]))
    assert not tf.debug.has_inf_or_nan("x:0", np.array([b"nan"], object))
    assert not tf.debug.has_inf_or_nan("x:0", None)


def test_the_options_of_a_step_hold_while_it_is_watched():
    hurry = threading.Event()
    waits = tf.py_func(lambda: (hurry.wait(0.05), np.float32(1.0))[1], [], tf.float32)
    late = tf.add(waits, 1.0, name="late")
    metadata = tf.RunMetadata()
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner, names=".*")
        with pytest.raises(tf.errors.DeadlineExceededError, match="timeout_in_ms"):
            sess.run(late, options=tf.RunOptions(timeout_in_ms=10))
        hurry.set()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=60_000)
        assert sess.run(late, options=options, run_metadata=metadata) == 2.0
        assert sess.watched["late:0"] == 2.0
    names = [s.node_name for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert "late" in names


def test_a_session_is_watched_once():
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner)
        with pytest.raises(TypeError, match="watched already"):
            tf.debug.LocalCLIDebugWrapperSession(sess)


def test_the_results_of_a_loop_are_not_taken_for_those_of_an_operation_in_it():
    made = tf.while_loop(lambda i: i < 3, lambda i: tf.add(i, 1, name="next"), [0])
    with tf.Session() as inner:
        sess = tf.debug.WatchedSession(inner, names=".*")
        assert sess.run(made) == 3
        dtypes = {name: value.dtype for name, value in sess.watched.items()}
    graph = tf.get_default_graph()
    assert dtypes == {n: graph.get_tensor_by_name(n).dtype.np_dtype for n in dtypes}
    assert sess.watched["while/next:0"] == 3
