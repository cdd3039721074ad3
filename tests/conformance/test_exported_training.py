"""Training graphs with reference variables that are written here train in TensorFlow."""

from __future__ import annotations

import os

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import assert_same
from tests.conformance import generated_training
from tests.conformance.generated_training import OPTIMIZERS, random_training_program

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

PASS_ON = {"Identity", "Reshape", "Enter", "Switch", "Merge", "RefSwitch", "RefEnter"}


def ancestors(op):
    seen, queue = {op}, [op]
    for current in queue:
        for source in (*(t.op for t in current.inputs), *current.control_inputs):
            if source not in seen:
                seen.add(source)
                queue.append(source)
    return seen


def unordered(train_op):
    """Pairs of a read and an update of a trained variable whose order TensorFlow does not know."""
    trained = {variable.op.name for variable in tf.trainable_variables()}
    needed = ancestors(train_op)
    before = {}
    found = []
    updates = [op for op in needed if op.inputs and op.inputs[0].dtype._is_ref_dtype]
    updates = [op for op in updates if "Assign" in op.type or "Scatter" in op.type]
    for update in updates:
        variable = update.inputs[0].op
        while variable.type in ("RefSwitch", "Switch"):  # into a branch
            variable = variable.inputs[0].op
        if variable.name not in trained:
            continue  # a program that updates others itself has to say when
        reads, queue = set(), [variable]
        for op in queue:
            taken = [c for tensor in op.outputs for c in tensor.consumers()]
            new = [c for c in taken if c in needed and c not in reads and c not in updates]
            reads.update(new)
            queue += [c for c in new if c.type in PASS_ON]
        for read in reads:
            for op in (update, read):
                if op not in before:
                    before[op] = ancestors(op)
            if read not in before[update] and update not in before[read]:
                found.append((read.name, update.name))
    return found


def exported(train_op):
    """The graph in TensorFlow; its operation that trains."""
    content = tf.train.export_meta_graph().SerializeToString()
    graph = reference.Graph()
    with graph.as_default():
        reference.train.import_meta_graph(reference.MetaGraphDef.FromString(content))
    return graph, graph.get_operation_by_name(train_op.name)


def network(kind):
    """A loss in whose gradient weights are read again."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w1, w2, table = (
        tf.get_variable(name, initializer=tf.ones(shape) * 0.3, use_resource=False)
        for name, shape in (("w1", [4, 5]), ("w2", [5, 5]), ("table", [6, 5]))
    )
    hidden = tf.tanh(tf.matmul(x, w1))
    if kind == "dense":
        hidden = tf.matmul(tf.tanh(tf.matmul(hidden, w2)), tf.transpose(w2))
    elif kind == "loop":
        _, hidden = tf.while_loop(
            lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w2))), [0, hidden]
        )
    elif kind == "branch":
        hidden = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(hidden, w2), lambda: hidden * 2.0)
    rows = tf.gather(table, [1, 3, 1])
    return tf.reduce_mean(tf.square(tf.matmul(hidden, rows, transpose_b=True) - 0.5))


def losses(sess, trains, loss, feeds):
    sess.run("init")
    return [sess.run([loss.name, trains], {"x:0": fed})[0] for fed in feeds]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["dense", "loop", "branch"])
def test_every_update_waits_for_what_reads_its_variable(kind, optimizer):
    loss = network(kind)
    step = tf.train.get_or_create_global_step()
    train_op = OPTIMIZERS[optimizer](tf.train, step).minimize(loss, step)
    tf.global_variables_initializer()
    graph, theirs = exported(train_op)
    assert unordered(theirs) == []
    feeds = [np.random.default_rng(i).normal(size=(3, 4)) for i in range(4)]
    with tf.Session() as ours, reference.Session(graph=graph) as other:
        expected = losses(ours, train_op, loss, feeds)
        np.testing.assert_allclose(losses(other, theirs, loss, feeds), expected, rtol=1e-5)


def test_nothing_runs_more_than_it_did():
    """What a graph has beside the training step is not run with it, nor an update with a read."""
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
    w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=False)
    count = tf.get_variable("count", initializer=0, use_resource=False, trainable=False)
    tf.reduce_sum(v * tf.placeholder(tf.float32, [2]), name="evaluated")
    counted = tf.identity(count.assign_add(1), name="counted")
    with tf.control_dependencies([counted]):
        also = tf.reduce_sum(v * 2.0)
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(v * w))
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, tf.group(train_op, also, name="both"))
    tf.global_variables_initializer()
    graph, theirs = exported(train_op)
    with reference.Session(graph=graph) as sess:
        sess.run("init")
        sess.run(theirs)
        assert sess.run(["v:0", "w:0"])[0].tolist() == [0.5, 1.0]
        assert sess.run("count:0") == 0
        sess.run("both")
        assert sess.run("count:0") == 1


def check_generated(program):
    """Trains with reference variables here, and the exported graph in TensorFlow."""
    found = []
    with tf.Graph().as_default() as ours:
        built, fetches = generated_training._built(tf, program, use_resource=False)
        tf.global_variables_initializer()
        if any(op.type == "PyFunc" for op in ours.get_operations()):
            return  # whose function stays in this process
        graph, theirs = exported(tf.get_collection(tf.GraphKeys.TRAIN_OP)[-1])
        assert unordered(theirs) == []
        variables = tf.trainable_variables()
        for lib, there in ((tf, ours), (reference, graph)):
            steps = []
            config = lib.ConfigProto(device_count={"CPU": 2})
            with lib.Session(graph=there, config=config) as sess:
                sess.run("init")
                for x, training, count in program.feeds():
                    feed = {built.x: x, built.training: training, built.count: count}
                    feed = {placeholder.name: value for placeholder, value in feed.items()}
                    step = sess.run([fetch.name for fetch in fetches], feed)
                    steps.append([*step, *sess.run([v.name for v in variables])])
            found.append(steps)
    assert_same(*found, rtol=1e-6, atol=1e-7)


# More: RUNNEL_FUZZ=20 pytest tests/conformance/test_exported_training.py -k generated
PROGRAMS = int(5 * float(os.environ.get("RUNNEL_FUZZ", "1")))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_generated_training_goes_on_in_tensorflow(seed):
    check_generated(random_training_program(seed))
