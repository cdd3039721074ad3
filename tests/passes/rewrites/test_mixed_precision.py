"""Mixed precision: what runs in 16 bits, where casts stand, what stays in float32."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.checker import check_program
from runnel.passes.program.program import Program
from runnel.passes.program.prune import prune
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.rewrites.mixed_precision import mixed_precision
from runnel.passes.structure.frames import Frames
from runnel.passes.structure.structured import nested_nodes
from runnel.runtime.schedule.plan import raise_control_flow
from tests.both_tiers import COMPILED, INTERPRETED, session

HALVES = (tf.bfloat16, tf.float16)
# Rounding may also move a maximum to its neighbour, and its gradient with it.
TOLERANCE = {tf.bfloat16: 5e-2, tf.float16: 2e-2}


def rewritten(fetches: list[Any], dtype: Any = tf.bfloat16, raised: bool = False) -> Program:
    """The program that computes tensors and operations, in mixed precision."""
    tensors = [f for f in fetches if isinstance(f, tf.Tensor)]
    targets = [f for f in fetches if isinstance(f, tf.Operation)]
    program = prune(tensors, targets, [], frozenset())
    if raised:
        program = raise_control_flow(program)
    program = mixed_precision(explicit_reads(program), dtype)
    check_program(program, "mixed_precision")
    return program


def types_of(program: Program) -> Counter[tuple[str, str]]:
    """How many nodes there are of each type, with the 16-bit type where they have one."""
    return Counter(
        (node.op_def.name, "16" if node.attrs.get("T") in HALVES else "")
        for node in nested_nodes(program.nodes)
    )


def casts(program: Program) -> list[tuple[str, str]]:
    """From which type to which each cast goes."""
    return [
        (node.attrs["SrcT"].name, node.attrs["DstT"].name)
        for node in program.nodes
        if node.op_def.name == "Cast"
    ]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(images: np.ndarray) -> tuple[Any, Any]:
    """Logits and loss of a small convolutional network."""
    w1 = tf.Variable(normal(3, 3, 3, 8, seed=1) * 0.2)
    b1 = tf.Variable(tf.zeros([8]))
    w2 = tf.Variable(normal(288, 5, seed=2) * 0.05)
    b2 = tf.Variable(tf.zeros([5]))
    value = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, w1, 1, "SAME"), b1))
    value = tf.nn.max_pool(value, 2, 2, "SAME")
    logits = tf.matmul(tf.reshape(value, [-1, 288]), w2) + b2
    labels = np.arange(len(images)) % 5
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return logits, tf.reduce_mean(entropy)


def test_casts_stand_only_where_the_types_meet():
    _, loss = network(normal(4, 12, 12, 3))
    program = rewritten([loss])
    # The images and four variables go down; the product comes up once, for the last bias and loss.
    assert Counter(casts(program)) == {("float32", "bfloat16"): 4, ("bfloat16", "float32"): 1}
    kinds = types_of(program)
    for name in ("Conv2D", "BiasAdd", "Relu", "MaxPool", "Reshape", "MatMul"):
        assert kinds[name, "16"] == 1, name
    assert kinds["SparseSoftmaxCrossEntropyWithLogits", ""] == 1
    assert kinds["Mean", ""] == 1


def test_no_value_is_cast_there_and_back():
    _, loss = network(normal(4, 12, 12, 3))
    program = rewritten([tf.train.AdamOptimizer(0.1).minimize(loss), loss])
    producer = {v: node for node in program.nodes for v in node.outputs}
    for node in program.nodes:
        if node.op_def.name == "Cast":
            before = producer.get(node.inputs[0])
            assert before is None or before.op_def.name != "Cast"
    narrowed = [n.inputs[0] for n in program.nodes if n.op_def.name == "Cast"]
    assert len(narrowed) == len(set(narrowed)), "a value is cast twice"


def test_a_variable_is_cast_once_for_all_its_uses():
    w = tf.Variable(normal(6, 6))
    x = tf.constant(normal(2, 6, seed=3))
    program = rewritten([tf.matmul(tf.matmul(x, w), w)])
    assert Counter(casts(program))["float32", "bfloat16"] == 2
    assert types_of(program)["MatMul", "16"] == 2


def test_updates_and_sums_stay_in_float32():
    _, loss = network(normal(4, 12, 12, 3))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    kinds = types_of(rewritten([train]))
    for name in ("Sub", "Mul", "Sqrt", "RealDiv", "BiasAddGrad", "Assign"):
        assert not kinds[name, "16"], name
    assert kinds["AddV2", "16"] == 1, "only the logits' bias"
    for name in ("ReluGrad", "MaxPoolGrad", "Conv2DBackpropFilter"):
        assert kinds[name, "16"] == 1, name


def test_batch_normalisation_takes_its_statistics_in_float32():
    x = tf.nn.conv2d(normal(2, 4, 4, 3), tf.Variable(normal(1, 1, 3, 4)), 1, "SAME")
    y, mean, _ = tf.nn.fused_batch_norm(x, tf.Variable(tf.ones([4])), tf.Variable(tf.zeros([4])))
    product = tf.nn.conv2d(y, tf.Variable(normal(1, 1, 4, 4)), 1, "SAME")
    program = rewritten([product, mean])
    assert types_of(program)["FusedBatchNormV3", "16"] == 1
    assert Counter(casts(program)) == {("float32", "bfloat16"): 3, ("bfloat16", "float32"): 1}


def test_a_program_without_products_of_float32_is_left_alone():
    double = tf.constant(np.eye(2))
    value = tf.nn.relu(tf.Variable(normal(2)))
    program = rewritten([value, tf.matmul(double, double)])
    assert not casts(program)
    assert not any(kind == "16" for _, kind in types_of(program))


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_values_are_those_of_float32_to_the_precision_of_the_type(dtype, level):
    logits, loss = network(normal(4, 12, 12, 3))
    variables = tf.trainable_variables()
    fetches = [logits, loss, *tf.gradients(loss, variables)]
    init = tf.global_variables_initializer()
    with session(level) as sess:
        sess.run(init)
        expected = sess.run(fetches)
    tf.get_default_graph().set_mixed_precision(dtype)
    with session(level) as sess:
        sess.run(init)
        given = sess.run(fetches)
        kept = sess.run(variables)
    for e, g in zip(expected, given, strict=True):
        assert g.dtype == np.float32
        assert np.linalg.norm(g - e) <= TOLERANCE[dtype] * np.linalg.norm(e)
    assert any((e != g).any() for e, g in zip(expected[:1], given[:1], strict=True))
    assert all(value.dtype == np.float32 for value in kept)


def test_products_inside_a_loop_are_rewritten():
    w = tf.Variable(normal(4, 4) * 0.5)
    _, last = tf.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (0, normal(2, 4))
    )
    assert types_of(rewritten([last], raised=True))["MatMul", "16"] == 1
    init = tf.global_variables_initializer()
    results = []
    for dtype in (None, tf.bfloat16):
        tf.get_default_graph().set_mixed_precision(dtype)
        with tf.Session() as sess:
            sess.run(init)
            results.append(sess.run(last))
    np.testing.assert_allclose(results[1], results[0], atol=2e-2)
    assert (results[1] != results[0]).any()


def test_what_loops_take_from_outside_is_cast_once_before_the_outermost():
    w = tf.constant(normal(4, 4) * 0.5)

    def inner(i: Any, h: Any) -> Any:
        _, h = tf.while_loop(
            lambda j, h: j < 2, lambda j, h: (j + 1, tf.tanh(tf.matmul(h, w))), (0, h)
        )
        return i + 1, h

    _, last = tf.while_loop(lambda i, h: i < 3, inner, (0, normal(2, 4)))
    program = rewritten([last], raised=True)
    weights = {n.outputs[0] for n in program.nodes if n.op_def.name == "Const"}
    outer = [n for n in program.nodes if n.op_def.name == "Cast"]
    assert len(outer) == 1
    assert outer[0].inputs[0] in weights
    inside = [n for n in nested_nodes(program.nodes) if n.op_def.name == "Cast" and n not in outer]
    assert [n.attrs["DstT"] for n in inside].count(tf.bfloat16) == 1, "only h"
    with tf.Session() as sess:
        exact = sess.run(last)
    tf.get_default_graph().set_mixed_precision(tf.bfloat16)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            np.testing.assert_allclose(sess.run(last), exact, atol=5e-2)


def test_primitives_are_rewritten_where_they_are():
    """As the event-driven executor has them: casts are in the iteration of what they cast."""
    w = tf.Variable(normal(4, 4) * 0.5, name="w")
    x = tf.constant(normal(2, 4))
    _, last = tf.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (tf.constant(0), x)
    )
    program = mixed_precision(prune([last, tf.matmul(last, w)], [], []), tf.bfloat16)
    assert types_of(program)["MatMul", "16"] == 2
    frames = Frames(program)
    producers = program.producers()
    for node in program.nodes:
        if node.op_def.name == "Cast":
            assert frames.runs_in[node] is frames.leads_to[producers[node.inputs[0]]]
        elif node.op_def.name in ("Merge", "Switch", "Enter", "Exit", "NextIteration"):
            assert node.attrs["T"] is not tf.bfloat16


def test_a_variable_whose_reads_are_not_explicit_is_cast_anew_for_each_use():
    w = tf.Variable(normal(4, 4), name="w")
    x = tf.constant(normal(2, 4))
    first = tf.matmul(x, w)
    with tf.control_dependencies([w.assign(w * 2.0)]):
        second = tf.matmul(x, w)
    program = mixed_precision(prune([first, second], [], []), tf.bfloat16)
    reads = [n for n in program.nodes if n.op.name == "w/read"]
    assert len(reads) == 1
    own = [n for n in program.nodes if n.op_def.name == "Cast" and n.inputs == reads[0].outputs]
    assert [cast.op for cast in own] == [first.op, second.op]
    assert [[c.op.type for c in cast.control] for cast in own] == [[], ["Assign"]]


def config(**options: int) -> tf.ConfigProto:
    result = tf.ConfigProto()
    for name, value in options.items():
        setattr(result.graph_options.rewrite_options, name, value)
    return result


def test_a_session_switches_it_on_or_off():
    x = normal(1, 64)
    product = tf.matmul(tf.constant(x), tf.constant(x.T))
    exact = float((x.astype(np.float64) @ x.T.astype(np.float64))[0, 0])

    def error(options: tf.ConfigProto | None) -> float:
        with tf.Session(config=options) as sess:
            return abs(float(sess.run(product)[0, 0]) - exact) / exact

    assert error(None) < 1e-6
    brain = error(config(auto_mixed_precision_onednn_bfloat16=1))
    half = error(config(auto_mixed_precision=1))
    assert 1e-6 < half < 1e-3 < brain < 1e-2 or (brain > 1e-5 and half > 1e-6)
    tf.get_default_graph().set_mixed_precision(tf.bfloat16)
    assert error(None) == brain
    assert error(config(auto_mixed_precision=2)) < 1e-6


def test_a_plan_is_made_anew_when_the_graph_changes_its_mind():
    x = normal(1, 64)
    product = tf.matmul(tf.constant(x), tf.constant(x.T))
    with tf.Session() as sess:
        before = sess.run(product)
        tf.get_default_graph().set_mixed_precision(tf.bfloat16)
        assert sess.run(product) != before
        tf.get_default_graph().set_mixed_precision(None)
        assert sess.run(product) == before
