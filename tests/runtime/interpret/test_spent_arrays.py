"""Interpreted loops compute in the memory of arrays that are spent, and in no other."""

import re

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.interpret import function_writer, verification
from tests.execution_modes import forced

X = np.random.RandomState(0).randn(3, 4).astype("f")
W = np.random.RandomState(1).randn(4, 4).astype("f")


@pytest.fixture(autouse=True)
def _plain_kernels(monkeypatch):
    monkeypatch.setattr(verification, "enabled", False)


@pytest.fixture
def written(monkeypatch):
    """The lines of all loops that are written."""
    lines = []
    function = function_writer.FunctionWriter.function

    def noted(self, *arguments):
        lines.extend(self._lines)
        return function(self, *arguments)

    monkeypatch.setattr(function_writer.FunctionWriter, "function", noted)
    return lines


def in_place(lines):
    """The lines whose result goes where an argument is."""
    calls = [re.search(r"\((.*)\)$", line) for line in lines]
    arguments = [call[1].split(", ") for call in calls if call]
    return [
        given
        for given in arguments
        if given[-1].split(" if ")[0].removeprefix("out=") in given[:-1]
    ]


def looped(body, *variables):
    """What three iterations of ``body`` make of ``variables``."""
    return tf.while_loop(
        lambda i, *_: i < 3, lambda i, *v: (i + 1, *body(*v)), [tf.constant(0), *variables]
    )[1:]


def run(fetches, feeds):
    """The values in the written loop, optimized, to the bit those by pending counts."""
    with forced("structured"), tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            found = sess.run(fetches, feeds)
    with forced("event-driven"), tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        expected = sess.run(fetches, feeds)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def test_a_chain_is_computed_in_one_place(written):
    x, w, b = (tf.placeholder(tf.float32, shape) for shape in ([None, 4], [4, 4], [4]))
    run(
        looped(lambda h: [tf.tanh(tf.nn.bias_add(tf.matmul(h, w), b) * 0.5)], x),
        {x: X, w: W, b: W[0]},
    )
    assert len(in_place(written)) >= 3


def test_a_result_that_is_larger_than_what_is_spent_is_new(written):
    x, row = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    grown = looped(lambda h: [h + tf.exp(row * 0.1)], x)
    for rows in (1, 3):
        (found,) = run(grown, {x: X, row: X[:rows]})
        assert found.shape == (3, 4)
    swapped = looped(lambda r, h: [r, tf.multiply(tf.exp(r * 0.1), tf.tanh(h))], row, x)
    run(swapped, {x: X, row: X[:1]})
    assert in_place(written)


def test_what_others_hold_stays_as_it_was():
    x = tf.placeholder(tf.float32, [None, 4])
    kept = tf.TensorArray(tf.float32, 3)

    def body(i, h, kept):
        a = tf.exp(h * 0.1)
        kept = kept.write(i, a)
        parts = tf.split(a + 1.0, 2, 1)
        b = tf.reshape(tf.negative(a), [-1, 4])
        c = tf.tanh(b) + tf.concat([parts[1], parts[0]], 1)
        return i + 1, c * tf.cond(i > 0, lambda: a, lambda: b), kept

    _, h, kept = tf.while_loop(lambda i, *_: i < 3, body, [0, x, kept])
    all_kept = kept.stack()
    loss = tf.reduce_sum(h) + tf.reduce_sum(all_kept**2)
    run([h, all_kept, *tf.gradients(loss, x)], {x: X})


def test_a_variable_that_a_loop_updates_keeps_its_value():
    variable = tf.Variable(tf.ones([4]))
    x = tf.placeholder(tf.float32, [4])

    def body(i, h):
        added = tf.assign_add(variable, tf.exp(h))
        with tf.control_dependencies([added]):
            return i + 1, tf.tanh(added) * 0.5

    _, h = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    with tf.control_dependencies([h]):
        after = tf.identity(variable)
    found = []
    for mode in ("structured", "event-driven"):
        with forced(mode), tf.Session() as sess:
            sess.run(variable.initializer)
            for _ in range(3):
                found.append(sess.run([h, after], {x: X[0]}))
    np.testing.assert_array_equal(found[:3], found[3:])


def test_an_observer_sees_what_each_operation_gave():
    x = tf.placeholder(tf.float32, [None, 4])
    (h,) = looped(lambda h: [tf.exp(tf.tanh(h * 0.5) + 1.0)], x)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with forced("structured"), tf.Session() as sess:
        plain = [sess.run(h, {x: X}) for _ in range(2)]
        traced = sess.run(h, {x: X}, options=options, run_metadata=tf.RunMetadata())
    np.testing.assert_array_equal(traced, plain[1])


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize("extremum", [tf.maximum, tf.minimum])
def test_the_place_of_an_extremum_is_given_as_numpy_wants_it(written, extremum):
    x = tf.placeholder(tf.float32, [3, 4])
    run(looped(lambda v: [extremum(v * 2.0, x) - x], x), {x: X})
    assert any("out=" in line for line in written)
