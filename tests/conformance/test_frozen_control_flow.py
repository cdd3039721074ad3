"""Variables that loops and branches read become constants, for runnel and for TensorFlow."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

TABLE = np.arange(12, dtype=np.float32).reshape(6, 2)


def a_loop(tf, x, w, table):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w + 1.0), (0, x))[1]


def a_branch(tf, x, w, table):
    return tf.cond(x[0] > 0.0, lambda: x * w, lambda: x - w)


def a_gather_in_a_loop(tf, x, w, table):
    def body(i, a):
        return i + 1, a + tf.gather(table, [i, i + 2])[1]

    return tf.while_loop(lambda i, a: i < 3, body, (0, x))[1]


def a_gather_in_a_branch(tf, x, w, table):
    return tf.cond(x[0] > 0.0, lambda: tf.gather(table, 1), lambda: tf.gather(table, 2))


def a_branch_in_a_loop(tf, x, w, table):
    def body(i, a):
        row = tf.cond(i > 1, lambda: tf.gather(table, i) * w, lambda: a + w)
        return i + 1, a + row

    return tf.while_loop(lambda i, a: i < 4, body, (0, x))[1]


def a_loop_in_a_branch(tf, x, w, table):
    return tf.cond(x[0] > 0.0, lambda: a_loop(tf, x, w, table), lambda: x + w)


def a_loop_in_a_loop(tf, x, w, table):
    def body(i, a):
        return i + 1, a_loop(tf, a * w, w, table)

    return tf.while_loop(lambda i, a: i < 2, body, (0, x))[1]


def a_shape_in_a_loop(tf, x, w, table):
    def body(i, a):
        return i + 1, a * tf.cast(tf.shape(table.read_value())[0], tf.float32)

    return tf.while_loop(lambda i, a: i < 2, body, (0, x))[1]


MODELS = [
    a_loop,
    a_branch,
    a_gather_in_a_loop,
    a_gather_in_a_branch,
    a_branch_in_a_loop,
    a_loop_in_a_branch,
    a_loop_in_a_loop,
    a_shape_in_a_loop,
]


def build(tf, model, use_resource):
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.Variable([2.0, 3.0], name="w", use_resource=use_resource)
    table = tf.Variable(TABLE, name="table", use_resource=use_resource)
    tf.identity(model(tf, x, w, table), name="y")
    return tf.global_variables_initializer()


FEEDS = [{"x:0": [1.0, -1.0]}, {"x:0": [-0.5, 2.0]}]


def values(tf, graph_def):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(tf.GraphDef.FromString(graph_def.SerializeToString()), name="")
        return [sess.run("y:0", feed) for feed in FEEDS]


@pytest.mark.parametrize("add_shapes", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_both_systems_run_what_runnel_froze(model, use_resource, add_shapes):
    with runnel.Graph().as_default() as graph, runnel.Session() as sess:
        sess.run(build(runnel, model, use_resource))
        expected = [sess.run("y:0", feed) for feed in FEEDS]
        frozen = runnel.graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(add_shapes=add_shapes), ["y"]
        )
    assert not [node.name for node in frozen.node if "Variable" in node.op or "Ref" in node.op]
    for tf in (runnel, reference):
        np.testing.assert_allclose(values(tf, frozen), expected, rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_runnel_freezes_what_tensorflow_built(model, use_resource):
    reference.disable_control_flow_v2()
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        init = build(reference, model, use_resource).name
        sess.run(init)
        expected = [sess.run("y:0", feed) for feed in FEEDS]
    with runnel.Graph().as_default(), runnel.Session() as sess:
        graph_def = runnel.GraphDef.FromString(graph.as_graph_def().SerializeToString())
        runnel.import_graph_def(graph_def, name="")
        sess.run(init)
        frozen = runnel.graph_util.convert_variables_to_constants(sess, graph_def, ["y"])
    for tf in (runnel, reference):
        np.testing.assert_allclose(values(tf, frozen), expected, rtol=1e-6)
