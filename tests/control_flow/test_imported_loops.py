"""Loops and conditionals of an imported GraphDef: they run, and have gradients."""

import numpy as np
import pytest

import runnel as tf


def loop(n, step, start):
    return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start])[1]


PROGRAMS = {
    "while": lambda x: loop(3, lambda i, s: tf.sin(s * x), x),
    "cond": lambda x: tf.cond(x[0] > 0, lambda: x * x, lambda: tf.sin(x)) * x,
    "cond in while": lambda x: loop(
        4, lambda i, s: tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: tf.exp(-s)), x
    ),
    "while in cond": lambda x: tf.cond(
        x[0] > 0, lambda: loop(3, lambda i, s: s * x, x), lambda: -x * x
    ),
    "nest": lambda x: loop(
        3,
        lambda i, s: tf.cond(
            tf.equal(i % 2, 1), lambda: loop(i, lambda j, t: tf.sin(t * s), x * s), lambda: s + x
        ),
        x,
    ),
    "scan": lambda x: tf.scan(lambda s, e: tf.sin(s) * e + s * x, x, initializer=x),
    "gather": lambda x: loop(3, lambda i, s: s + tf.gather(x, [i % 2, 0]) * s, x),
}
POINTS = [[0.6, 1.2], [-0.7, 0.3]]


def derivatives(y, x):
    first = tf.gradients(y, x)[0]
    second = tf.gradients(tf.reduce_sum(tf.sin(tf.convert_to_tensor(first))), x)[0]
    return [tf.convert_to_tensor(g) for g in (first, second)]


def exported(program):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [2], name="x")
        y = tf.identity(PROGRAMS[program](x), name="y")
        d = tf.convert_to_tensor(tf.gradients(y, x)[0], name="d")
        tf.identity(d, name="first")
        fetches = [y, *derivatives(y, x)]
        with tf.Session() as sess:
            values = [sess.run(fetches, {x: point}) for point in POINTS]
        return graph.as_graph_def(), values


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradients_are_those_of_the_original(program):
    graph_def, expected = exported(program)
    with tf.Graph().as_default():
        x, y, d = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0", "first:0"])
        # The second derivative also of the gradient that was imported.
        of_imported = tf.gradients(tf.reduce_sum(tf.sin(d)), x)[0]
        fetches = [y, *derivatives(y, x), tf.convert_to_tensor(of_imported)]
        with tf.Session() as sess:
            for point, values in zip(POINTS, expected, strict=True):
                found = sess.run(fetches, {x: point})
                for a, b in zip(found, [*values, values[2]], strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_loop_imported_twice_is_two_loops():
    graph_def, _ = exported("while")
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [2])
        ys = [
            tf.import_graph_def(graph_def, {"x:0": x}, ["y:0"], name=name)[0]
            for name in ("a", "b", "", "")
        ]
        nested = tf.import_graph_def(graph_def, {"x:0": ys[0]}, ["y:0"], name="c")[0]
        (grad,) = tf.gradients([*ys, nested], x)
        with tf.Session() as sess:
            found = sess.run(grad, {x: POINTS[0]})
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float64, [2])
            once = PROGRAMS["while"]
            (grad,) = tf.gradients([once(x) * 4.0, once(once(x))], x)
            with tf.Session() as sess:
                np.testing.assert_allclose(found, sess.run(grad, {x: POINTS[0]}))


def test_what_nothing_uses_may_be_missing():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [], name="x")
        _, _, y = tf.while_loop(
            lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * 2.0, b * a * x), [0, x, x]
        )
        tf.identity(y, name="y")
        graph_def = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["y"])
        with tf.Session() as sess:
            expected = sess.run(tf.gradients(y, x), {x: 1.1})
    assert sum(node.op == "Exit" for node in graph_def.node) == 1
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0"])
        with tf.Session() as sess:
            assert sess.run(tf.gradients(y, x), {x: 1.1}) == pytest.approx(expected)


def test_a_loop_that_has_no_condition_says_so():
    with tf.Graph().as_default():
        from runnel.ops.control_flow import enter, exit, merge, next_iteration, switch

        x = tf.constant(1.0)
        entered = enter(x, "frame")
        merged = merge([entered, entered])[0]
        stop, go_on = switch(merged, merged > 5.0)
        merged.op._update_input(1, next_iteration(go_on * 2.0))
        with pytest.raises(LookupError, match="not of the form that tf.while_loop builds"):
            tf.gradients(exit(stop), x)
