"""Conditionals and loops against TensorFlow: graphs, values, gradients; whole graphs exchanged."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel
from tests.execution_modes import MODES, forced

reference.disable_v2_behavior()
reference.disable_control_flow_v2()

IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)


# The same operations --------------------------------------------------------------------------


def describe(graph: Any) -> list[tuple[Any, ...]]:
    """The operations by name: TensorFlow makes a captured tensor's Switch after its consumer."""
    return sorted(
        (
            op.name,
            op.type,
            [tensor.name for tensor in op.inputs],
            sorted(control.name for control in op.control_inputs),
        )
        for op in graph.get_operations()
    )


def conds(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.cond(x > 0, lambda: tf.square(x) + tf.constant(1.0), lambda: -x)
    tf.cond(
        x > 0,
        lambda: [x, tf.cond(x > 1, lambda: x, lambda: x * 2)],
        lambda: [x, x],
        name="outer",
    )
    v = tf.Variable(0.0, use_resource=False)
    tf.cond(x > 0, lambda: tf.assign_add(v, x), lambda: tf.assign_sub(v, 1.0))
    tf.cond(x > 0, tf.no_op, tf.no_op)


def cases(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.case([(x > 0, lambda: x), (x > 1, lambda: x + 1)], default=lambda: x + 2)


def loops(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + x * tf.constant(2.0)), [0, x])
    tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + x), (0, x), maximum_iterations=5)


def nests(tf):
    x = tf.placeholder(tf.float32, [], name="x")

    def inner(i, a):
        def body(j, b):
            return j + 1, b + x * tf.cond(j > 1, lambda: 2.0, lambda: 1.0)

        return i + 1, a + tf.while_loop(lambda j, b: j < i, body, [0, 0.0])[1]

    tf.while_loop(lambda i, a: i < 4, inner, [0, 0.0])
    tf.cond(
        x > 0,
        lambda: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [0, x]),
        lambda: (1, 2.0),
    )


def initialized(tf):
    v = tf.Variable([1.0, 2.0], use_resource=False, name="v")
    v.initialized_value()


@pytest.mark.parametrize("program", [conds, cases, loops, nests, initialized])
def test_the_graph_is_tensorflows(program):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default() as graph:
            program(tf)
            found.append(describe(graph))
    ours, theirs = found
    assert ours == theirs


# Exchanging graphs -----------------------------------------------------------------------------


def exchanged(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    w = tf.constant([[0.5, -1.0, 0.2], [0.1, 0.3, -0.4], [0.7, 0.2, 0.1]])

    def body(i, s):
        step = tf.tanh(tf.squeeze(tf.matmul(tf.expand_dims(s, 0), w), 0))
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: step + x, lambda: step * 0.5)

    _, last = tf.while_loop(lambda i, _: i < 5, body, [0, x])
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: last, lambda: -last)
    grads = tf.gradients(y, x)
    return tf.identity(y, name="y"), tf.identity(grads[0], name="g")


@IN_EACH_MODE
@pytest.mark.parametrize("x", [[1.0, 0.5, -0.3], [-1.0, 0.2, 0.3]])
def test_each_runs_what_the_other_writes(x, mode):
    with forced(mode):
        exchange(x)


def exchange(x):
    values = {}
    graphs = {}
    for tf in (runnel, reference):
        with tf.Graph().as_default() as graph:
            exchanged(tf)
            graphs[tf] = graph.as_graph_def().SerializeToString()
            with tf.Session() as sess:
                values[tf] = sess.run(["y:0", "g:0"], {"x:0": x})
    np.testing.assert_allclose(values[runnel], values[reference], rtol=1e-5)
    for tf, other in ((runnel, reference), (reference, runnel)):
        with tf.Graph().as_default():
            tf.import_graph_def(tf.GraphDef.FromString(graphs[other]), name="")
            with tf.Session() as sess:
                again = sess.run(["y:0", "g:0"], {"x:0": x})
        np.testing.assert_allclose(again, values[other], rtol=1e-5)


@pytest.mark.parametrize("x", [[1.0, 0.5, -0.3], [-1.0, 0.2, 0.3]])
def test_loops_that_tensorflow_wrote_have_gradients(x):
    with reference.Graph().as_default() as graph:
        exchanged(reference)
        written = graph.as_graph_def().SerializeToString()
    results = {}
    for source in ("here", "imported"):
        with runnel.Graph().as_default() as graph:
            if source == "here":
                exchanged(runnel)
            else:
                runnel.import_graph_def(runnel.GraphDef.FromString(written), name="")
            y, g, fed = (graph.get_tensor_by_name(f"{name}:0") for name in "ygx")
            first = runnel.gradients(y, fed)[0]
            # Of our gradient, and of the one in the graph, which TensorFlow may have made.
            seconds = [runnel.gradients(grad, fed)[0] for grad in (first, g)]
            with runnel.Session() as sess:
                results[source] = sess.run([first, *seconds], {fed: x})
    for a, b in zip(results["imported"], results["here"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


# Second derivatives of graphs ---------------------------------------------------------------------


def second(tf, x):
    def body(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(s * x), lambda: s * s + x)

    _, last = tf.while_loop(lambda i, _: i < 4, body, [tf.constant(0), x])
    scanned = tf.scan(lambda s, e: tf.tanh(s * e) + s, x, initializer=x[0])
    return last * tf.map_fn(lambda e: e * e * x[1], scanned)


def test_second_derivatives_are_those_of_tensorflows_later_control_flow():
    found = []
    for tf in (runnel, reference):
        later = tf is reference
        if later:
            reference.enable_control_flow_v2()
        try:
            with tf.Graph().as_default():
                x = tf.placeholder(tf.float64, [2])
                first = tf.gradients(second(tf, x), x)[0]
                fetches = [first, tf.gradients(tf.sin(first), x)[0]]
                with tf.Session() as sess:
                    found.append(sess.run(fetches, {x: [0.4, -0.6]}))
        finally:
            if later:
                reference.disable_control_flow_v2()
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


# Loops over slices ------------------------------------------------------------------------------

OVER_SLICES = {
    "map": lambda tf, x: tf.map_fn(lambda e: tf.sin(e) * e, x),
    "map to another type": lambda tf, x: tf.map_fn(
        lambda e: (e, tf.shape(e)), x, dtype=(tf.float64, tf.int32)
    )[0],
    "foldl": lambda tf, x: tf.foldl(lambda s, e: tf.sin(s) * e + s, x),
    "foldr": lambda tf, x: tf.foldr(lambda s, e: tf.sin(s) * e + s, x, initializer=x[1]),
    "scan": lambda tf, x: tf.scan(lambda s, e: tf.sin(s) * e + s, x),
    "reversed scan": lambda tf, x: tf.scan(
        lambda s, e: tf.sin(s) * e + s, x, initializer=x[0], reverse=True
    ),
    "scan of pairs": lambda tf, x: tf.scan(
        lambda s, e: (s[1] * e, s[0] + e), x, initializer=(x[0], x[1])
    )[0],
}


@IN_EACH_MODE
@pytest.mark.parametrize("program", OVER_SLICES)
def test_loops_over_slices(program, mode):
    data = np.array([[0.5, 1.0], [-0.3, 0.2], [0.8, -0.6]])
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float64, data.shape)
            y = OVER_SLICES[program](tf, x)
            with forced(mode), tf.Session() as sess:
                values = sess.run([y, tf.gradients(y, x)[0]], {x: data})
            found.append((values, y.shape.as_list()))
    (ours, shape), (theirs, expected) = found
    assert shape == expected
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
