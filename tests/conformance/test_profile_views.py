"""Profiles of a graph against TensorFlow's: parameters and arithmetic, by every view."""

import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

reference.disable_v2_behavior()


def model(tf):
    x = tf.placeholder(tf.float32, [8, 6], name="x")
    with tf.variable_scope("first"):
        w = tf.get_variable("w", [6, 5], use_resource=False)
        h = tf.matmul(x, w, name="product")
    with tf.variable_scope("second"):
        v = tf.get_variable("v", [5, 3], use_resource=False)
        tf.add(tf.matmul(h, v, name="product"), 1.0, name="sum")


OPTIONS = {
    "parameters": lambda build: build.trainable_variables_parameter(),
    "arithmetic": lambda build: build.float_operation(),
    "hidden, all": lambda build: (
        build(build.float_operation())
        .with_node_names(hide_name_regexes=["first.*"])
        .account_displayed_op_only(False)
        .build()
    ),
    "hidden": lambda build: (
        build(build.float_operation())
        .with_node_names(hide_name_regexes=["first.*"])
        .account_displayed_op_only(True)
        .build()
    ),
}


@pytest.mark.parametrize("cmd", ["scope", "graph", "op"])
@pytest.mark.parametrize("chosen", OPTIONS)
def test_totals_are_tensorflows(cmd, chosen):
    found = []
    for tf in (reference, runnel):
        with tf.Graph().as_default() as graph:
            model(tf)
            build = tf.profiler.ProfileOptionBuilder
            options = build(OPTIONS[chosen](build)).with_empty_output().build()
            root = tf.profiler.profile(graph, cmd=cmd, options=options)
            counts = chosen == "parameters"
            found.append(root.total_parameters if counts else root.total_float_ops)
    assert found[0] == found[1]
