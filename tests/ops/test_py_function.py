"""Python functions in a graph."""

import gc
import weakref

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session


def test_values():
    x = tf.placeholder(tf.float32, [None])
    y = tf.py_func(np.sinh, [x], tf.float32)
    total, size = tf.py_func(lambda a: (a.sum(), np.int64(a.size)), [x], [tf.float32, tf.int64])
    assert y.shape.rank is None
    values = run_both([y + 1, total, size], {x: [1.0, 2.0]})
    np.testing.assert_allclose(values[0], np.sinh([1.0, 2.0]) + 1, rtol=1e-6)
    assert values[1] == 3.0 and values[2] == 2


def test_arguments():
    seen = []
    inputs = [tf.constant(1.0), tf.constant([2]), tf.constant("a"), tf.constant(["b"])]
    op = tf.py_func(lambda *args: seen.extend(args), inputs, [])
    assert isinstance(op, tf.Operation)
    with tf.Session() as sess:
        sess.run(op)
    scalar, vector, text, texts = seen
    assert isinstance(scalar, np.float32) and vector.dtype == np.int32
    assert text == b"a" and texts.tolist() == [b"b"]


def test_writing_into_arguments_and_results_harms_nobody():
    kept = np.zeros(2, np.float32)

    def scribble(a):
        a[:] = 99
        return kept

    x = tf.constant([1.0, 2.0])
    y = tf.py_func(scribble, [x], tf.float32)
    with tf.Session() as sess:
        before, result = sess.run([x, y])
        kept[:] = 7
    np.testing.assert_array_equal(before, [1, 2])
    np.testing.assert_array_equal(result, [0, 0])


def test_state_is_run_every_time_and_pure_functions_may_be_shared():
    calls = []
    x = tf.constant(1.0)
    stateful = [tf.py_func(lambda a: calls.append(a) or a, [x], tf.float32) for _ in range(2)]
    with tf.Session() as sess:
        sess.run(stateful)
        sess.run(stateful)
    assert len(calls) == 4
    pure = tf.py_func(lambda a: a, [x], tf.float32, stateful=False)
    assert pure.op.type == "PyFuncStateless"
    assert run_both(pure) == 1.0


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (NotImplementedError, tf.errors.UnimplementedError),
        (KeyError, tf.errors.UnknownError),
    ],
)
def test_errors(level, error, kind):
    def fails(x):
        raise error("boom")

    y = tf.py_func(fails, [1.0], tf.float32, name="mine")
    with session(level) as sess, pytest.raises(kind) as caught:
        sess.run(y)
    assert caught.value.op is y.op
    assert "boom" in caught.value.message
    assert 'raise error("boom")' in caught.value.message  # the function's own line
    assert "runnel" not in caught.value.message.replace(__file__, "")  # and none of ours


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.float64(1.5), "0-th value returned by .* is float64, but expects float32"),
        ((1.0, 2.0), "returns 2 values, but expects to see 1"),
        (None, "returns 0 values"),
        ("text", "expects float32"),
    ],
)
def test_results_of_another_kind(result, message):
    y = tf.py_func(lambda: result, [], tf.float32)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(y)


def test_python_numbers_and_lists_take_the_declared_type():
    y = tf.py_func(lambda: 1.5, [], tf.float32)
    z = tf.py_func(lambda: [1, 2, 3], [], tf.int64)
    s = tf.py_func(lambda: "text", [], tf.string)
    values = run_both([y, z, s])
    assert values[0] == np.float32(1.5) and values[2] == b"text"
    np.testing.assert_array_equal(values[1], [1, 2, 3])


def test_an_unknown_function():
    op_def = tf.get_op_def("PyFunc")
    (y,) = op_def([], token="pyfunc_of_another_process", Tout=[tf.float32])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="process"):
        sess.run(y)
    with pytest.raises(ValueError, match="callable"):
        tf.py_func(3, [], tf.float32)


def test_functions_die_with_their_graph():
    def function(x):
        return x

    alive = weakref.ref(function)
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        tf.py_func(lambda a, f=function, t=x: f(a), [x], tf.float32)  # refers to the graph, too
    del function, x
    gc.collect()
    assert alive() is None
