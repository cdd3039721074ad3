"""``RunMetadata.partition_graphs``: put together again, they are the step.

Each device's graph must be complete in itself: whatever crosses is sent and received once, control
edges and the iterations of loops included. So replacing each ``_Recv`` by what its ``_Send`` takes
gives a graph that computes the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import runnel as tf
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frames
from tests.runtime.test_fuzz import SEEDS, fuzz
from tests.runtime.test_random_placement import random_flow, scatter

SENT = ("tensor_name", "send_device", "recv_device")


def session() -> tf.Session:
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 3}))


def run(sess: tf.Session, fetches: Any, feed_dict: Any = None) -> tuple[Any, list[Any]]:
    """The values, and the graphs of the step."""
    options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
    values = sess.run(fetches, feed_dict, options=options, run_metadata=metadata)
    return values, list(metadata.partition_graphs)


def key(node: Any) -> tuple[bytes, ...]:
    return tuple(node.attr[name].s for name in SENT)


def joined(graphs: list[Any]) -> Any:
    """One graph: each value comes from where it was sent."""
    sends = [node for graph in graphs for node in graph.node if node.op == "_Send"]
    assert max(Counter(map(key, sends)).values(), default=1) == 1, "a value was sent twice"
    source = {key(node): node.input[0] for node in sends}
    whole = type(graphs[0])()
    whole.versions.CopyFrom(graphs[0].versions)
    received = []
    constants: set[str] = set()
    for graph in graphs:
        for node in graph.node:
            if node.op == "_Send" or node.name in constants:
                continue
            if node.op == "Const" and not node.input:  # each device has its own
                constants.add(node.name)
            copy = whole.node.add()
            copy.CopyFrom(node)
            if node.op == "_Recv":
                received.append(key(node))
                copy.op = "Identity"
                copy.ClearField("attr")
                copy.attr["T"].type = node.attr["tensor_type"].type
                del copy.input[:]
                copy.input.extend([source[key(node)], *node.input])
            copy.device = ""
    assert sorted(received) == sorted(source), "what is sent is received, and nothing else"
    return whole


def recomputed(graphs: list[Any], fetches: list[str], feeds: dict[str, Any]) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(joined(graphs), name="")
        return sess.run(fetches, feeds)


def frames_of(graph: Any) -> Frames:
    """The loops of one device's graph; an error if a node is in two."""
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
        return Frames(prune((), imported.get_operations(), ()))


def test_a_loop_over_two_devices():
    x = tf.placeholder(tf.float32, [], name="x")

    def body(i, h):
        with tf.device("/cpu:1"):
            doubled = h * 2.0
            return i + 1, doubled + h

    with tf.device("/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, (tf.constant(0), x), name="loop")[1]
    with session() as sess:
        value, graphs = run(sess, end, {x: 2.0})
    assert value == 2.0 * 3**5
    assert recomputed(graphs, [end.name], {x.name: 2.0}) == [value]
    host, other = graphs
    assert [n.op for n in other.node].count("Merge") == 1, "a loop that keeps time"
    receiving = [node for node in other.node if node.op == "_Recv"]
    (merge,) = [node.name for node in other.node if node.op == "Merge"]
    assert all(list(node.input) == [f"^{merge}"] for node in receiving)
    runs_in = {node.op.name: frame.name for node, frame in frames_of(other).runs_in.items()}
    assert all(runs_in[node.name] == "loop/while_context" for node in receiving)
    assert frames_of(host)


def test_a_loop_in_a_loop_on_another_device():
    def inner(j, y):
        with tf.device("/cpu:2"):
            return j + 1, y + tf.cast(j, tf.float32)

    def outer(i, y):
        with tf.device("/cpu:1"):
            return i + 1, tf.while_loop(lambda j, y: j < i, inner, (tf.constant(0), y))[1] * 2.0

    with tf.device("/cpu:0"):
        end = tf.while_loop(lambda i, y: i < 4, outer, (tf.constant(0), tf.constant(1.0)))[1]
    with session() as sess:
        value, graphs = run(sess, end)
    expected = 1.0
    for i in range(4):
        expected = (expected + sum(range(i))) * 2.0
    assert value == expected
    assert recomputed(graphs, [end.name], {}) == [value]
    for graph in graphs:
        frames_of(graph)


def test_a_branch_on_another_device():
    x = tf.placeholder(tf.float32, [], name="x")

    def when_true():
        with tf.device("/cpu:1"):
            return tf.square(x)

    def when_false():
        with tf.device("/cpu:2"):
            return tf.negative(x)

    with tf.device("/cpu:0"):
        y = tf.cond(x > 0.0, when_true, when_false)
    with session() as sess:
        for fed, expected in ((3.0, 9.0), (-2.0, 2.0)):
            value, graphs = run(sess, y, {x: fed})
            assert value == expected
            assert recomputed(graphs, [y.name], {x.name: fed}) == [value]


def test_a_step_with_a_queue():
    queue = tf.FIFOQueue(2, tf.float32, [[2]])
    with tf.device("/cpu:1"):
        y = tf.square(queue.dequeue())
    with tf.device("/cpu:2"), tf.control_dependencies([y]):
        z = tf.add(y, tf.constant([1.0, 2.0]))
    with session() as sess:
        sess.run(queue.enqueue([[3.0, 4.0]]))
        value, graphs = run(sess, z)
    np.testing.assert_array_equal(value, [10.0, 18.0])
    sends = [node for graph in graphs for node in graph.node if node.op == "_Send"]
    assert len(sends) == 2, "the value, and that it is there"
    assert joined(graphs)


@given(SEEDS)
@fuzz(20)
def test_scattered_loops_and_conditionals(seed: int) -> None:
    fed = np.float64([0.3, -1.2])
    with tf.Graph().as_default():
        with tf.device(scatter(seed)):
            # The order of construction, which decides where edges do not, is no part of the graphs.
            values, x, v = random_flow(seed, updates=False)
            init = tf.global_variables_initializer()
        with session() as sess:
            sess.run(init)
            expected, graphs = run(sess, values, {x: fed})
            for graph in graphs:
                frames_of(graph)
            again = joined(graphs)
            for node in again.node:
                if node.op in ("VariableV2", "VarHandleOp"):
                    node.attr["shared_name"].s = v.op.name.encode()
            tf.import_graph_def(again, name="again")
            found = sess.run([f"again/{value.name}" for value in values], {f"again/{x.name}": fed})
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-9, err_msg=f"seed {seed}")


@pytest.mark.parametrize("fetched", [True, False])
def test_what_is_fed_has_a_placeholder(fetched):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/cpu:1"):
        middle = tf.square(x, name="middle")
        y = tf.negative(middle, name="y")
    with session() as sess:
        fetches = [y, middle] if fetched else [y]
        _, graphs = run(sess, fetches, {middle: 3.0})
    placeholders = [n.name for g in graphs for n in g.node if n.op == "Placeholder"]
    assert placeholders == ["middle"]
