"""One formula for whole variables and for rows: in the graph and in a compiled step."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.passes.clusters.test_cluster import segments

OPTIMIZERS = {
    "gradient_descent": lambda step: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda step: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda step: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda step: tf.train.AdagradDAOptimizer(0.1, step),
    "adadelta": lambda step: tf.train.AdadeltaOptimizer(0.1),
    "rmsprop": lambda step: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adam": lambda step: tf.train.AdamOptimizer(0.1),
    "ftrl": lambda step: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1),
    "proximal": lambda step: tf.train.ProximalAdagradOptimizer(0.1),
}


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_that_trains_an_embedding_compiles_as_a_whole(name, resource):
    words = tf.placeholder(tf.int32, [None, 3])
    labels = tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", [50, 4], use_resource=resource)
    weights = tf.get_variable("weights", [4, 5], use_resource=resource)
    context = tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.matmul(context, weights)
        )
    )
    step = tf.train.get_or_create_global_step()
    optimizer = OPTIMIZERS[name](step)
    pairs = optimizer.compute_gradients(loss)
    assert [type(grad) for grad, _ in pairs] == [tf.IndexedSlices, tf.Tensor]
    train = optimizer.apply_gradients(pairs, global_step=step)
    (segment,) = segments([loss], [words, labels], [train])
    assert segment.compilable
    assert not any(node.op_def.host for node in segment.nodes)
    assert not segment.specialized  # it is compiled for shapes, never for the words themselves


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"gradient_descent", "adam"}))
def test_a_sparse_step_changes_only_rows(name):
    """No node but the gathers and scatters sees a whole table."""
    table = tf.get_variable("table", [50, 4])
    step = tf.train.get_or_create_global_step()
    train = OPTIMIZERS[name](step).minimize(
        tf.reduce_sum(tf.square(tf.gather(table, [3, 7, 3]))), global_step=step, var_list=[table]
    )
    (segment,) = segments([], targets=[train])
    for node in segment.nodes:
        if node.op_def.name in ("ScatterUpdate", "VariableV2", "Identity"):
            continue
        for tensor in node.op.outputs:
            assert tensor.shape.as_list()[:1] != [50], node


def test_coefficients_are_made_once_for_each_type():
    variables = [tf.Variable(np.ones(2, t), name=f"v{i}") for i, t in enumerate("ffddf")]
    loss = tf.add_n([tf.cast(tf.reduce_sum(v), tf.float64) for v in variables])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    pairs = optimizer.compute_gradients(loss)
    before = set(tf.get_default_graph().get_operations())
    optimizer.apply_gradients(pairs)
    made = [op for op in tf.get_default_graph().get_operations() if op not in before]
    # The rate and the momentum, once as float32 and once cast to float64.
    assert sum(op.type == "Cast" for op in made) == 2
    assert {op.name for op in made if op.type == "Const" and op.name.startswith("Momentum/")} == {
        "Momentum/learning_rate",
        "Momentum/momentum",
    }
