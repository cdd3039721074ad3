"""Partition: one Send and Recv for each value and destination."""

from __future__ import annotations

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device
from runnel.ops.send_recv import rendezvous_key
from runnel.passes.placement.partition import (
    computes_on_several,
    devices_of_nodes,
    partition,
    partition_nodes,
)
from runnel.passes.placement.placement import place
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.passes.program.variable_reads import explicit_reads
from runnel.passes.structure.frames import Frames
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import structure_of

CPUS = DeviceSet([local_device("CPU", i) for i in range(3)])


def parted(fetches, targets=(), feeds=()):
    program = explicit_reads(prune(fetches, targets, feeds))
    found = partition(program, place([node.op for node in program.nodes], CPUS))
    check_program(found.program, "partition")
    return found


def sent(found):
    def end(name):
        return int(name[-1])

    return sorted(
        (
            s.attrs["tensor_name"].split("_", 2)[2],
            end(s.attrs["send_device"]),
            end(s.attrs["recv_device"]),
        )
        for s in found.recv_of
    )


def test_many_consumers_one_transfer_for_each_destination():
    with tf.device("/cpu:0"):
        x = tf.square(tf.constant([1.0]), name="x")
    with tf.device("/cpu:1"):
        a, b, c = x + 1.0, x * 2.0, x - 3.0
    with tf.device("/cpu:2"):
        d = x / 4.0
    assert sent(parted([a, b, c, d])) == [("x", 0, 1), ("x", 0, 2)]


def test_nothing_crosses_on_one_device():
    with tf.device("/cpu:2"):
        y = tf.square(tf.constant([1.0])) + 1.0
    found = parted([y])
    assert not found.recv_of and found.devices == [CPUS[2]]


def test_constants_are_everywhere_and_are_not_sent():
    with tf.device("/cpu:0"):
        c = tf.constant([1.0])
    with tf.device("/cpu:1"):
        y = tf.square(c)
    assert sent(parted([y])) == []


def test_a_fed_value_comes_from_the_host_once():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/cpu:1"):
        y, z = tf.square(x), tf.negative(x)
    with tf.device("/cpu:0"):
        w = tf.square(x)
    assert sent(parted([y, z, w], feeds=[x])) == [("x", 0, 1)]


def test_a_variable_is_read_where_it_is_and_its_value_is_sent():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0], name="v")
    with tf.device("/cpu:1"):
        y, z = v + 1.0, v * 2.0
    found = parted([y, z])
    assert sent(found) == [("v/read", 2, 1)]


def test_send_stands_right_after_the_value_is_made():
    with tf.device("/cpu:0"):
        x = tf.square(tf.constant([1.0]), name="x")
        late = tf.negative(x, name="late")
    with tf.device("/cpu:1"):
        y = x + 1.0
    names = [node.op_def.name for node in parted([y, late]).program.nodes]
    assert names.index("_Send") == names.index("Square") + 1
    assert names.index("_Recv") < names.index("Neg")


def test_the_rendezvous_key_has_tensorflows_form():
    with tf.device("/cpu:0"):
        x = tf.square(tf.constant([1.0]), name="x")
    with tf.device("/cpu:1"):
        y = x + 1.0
    ((send, recv),) = parted([y]).recv_of.items()
    task = "/job:localhost/replica:0/task:0/device:CPU"
    prefix, name, frame = rendezvous_key(send.attrs).rsplit(";", 2)
    assert prefix == f"{task}:0;0000000000000001;{task}:1"
    assert name.startswith("edge_") and name.endswith("_x") and frame == "0:0"
    assert rendezvous_key(recv.attrs) == rendezvous_key(send.attrs)


# Across loops and conditionals ------------------------------------------------------------------


def parted_primitives(fetches, feeds):
    """As the event-driven executor has it: the primitives, each where it was placed."""
    program = prune(fetches, (), feeds)
    found = partition(program, place([node.op for node in program.nodes], CPUS))
    return found, Frames(found.program)


def test_what_a_loop_sends_it_sends_in_each_iteration():
    x = tf.placeholder(tf.float32, [], name="x")

    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, tf.multiply(h, h, name="product")

    with tf.device("/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, (tf.constant(0), x))[1]
    with tf.device("/cpu:2"):
        y = tf.negative(end)
    found, frames = parted_primitives([y], [x])
    # Once a value for each destination, on the way to NextIteration, never after it.
    assert sent(found) == [
        ("while/Exit_1", 0, 2),
        ("while/Identity", 0, 1),
        ("while/Identity_1", 0, 1),
        ("while/add", 1, 0),
        ("while/product", 1, 0),
    ]
    inside = {
        send.attrs["tensor_name"].split("_", 2)[2]: frames.runs_in[send].name
        for send, recv in found.recv_of.items()
        if frames.runs_in[send] is frames.runs_in[recv]
    }
    assert inside == {
        "while/Exit_1": "",
        **dict.fromkeys(
            ("while/Identity", "while/Identity_1", "while/add", "while/product"),
            "while/while_context",
        ),
    }


def test_a_loop_around_several_devices_has_its_back_edges_on_one():
    with tf.device("/cpu:0"):
        start = (tf.constant(0), tf.constant(1.0))

    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, h * 2.0

    with tf.device(lambda op: "/cpu:2" if op.type == "NextIteration" else "/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, start)[1]
    found, _ = parted_primitives([end], [])
    at = {node.op.name: device.index for node, device in found.device_of.items()}
    assert at["while/Merge"] == at["while/NextIteration"] == 0
    placement = tf.explain_placement(
        tf.get_default_graph(), end, config=tf.ConfigProto(device_count={"CPU": 3})
    )
    assert "must be with 'while/Merge'" in placement["while/NextIteration"].reason


def test_the_body_of_a_loop_can_be_partitioned_by_itself():
    """As a loop that is one node has it: a program that is fed its variables."""
    with tf.device("/cpu:2"):
        w = tf.Variable([[0.5]], name="w")

    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, tf.tanh(tf.matmul(h, w, name="product"), name="tanh")

    with tf.device("/cpu:0"):
        start = (tf.constant(0), tf.constant([[1.0]]))
        end = tf.while_loop(lambda i, h: i < 3, body, start)[1]
    program = prune([end], (), ())
    placement = place([node.op for node in program.nodes], CPUS)
    raised = raise_control_flow(program)
    (node,) = [node for node in raised.nodes if structure_of(node) is not None]
    assert computes_on_several([node], placement)
    loop = structure_of(node)
    found = partition_nodes(loop.body, devices_of_nodes(loop.body, placement))
    routes = [
        (int(s.attrs["send_device"][-1]), int(s.attrs["recv_device"][-1])) for s in found.recv_of
    ]
    assert routes == [(0, 1)] * 3  # what it is fed: the counter, the value, the weights
    ran = {node.op_def.name: device.index for node, device in found.device_of.items()}
    assert ran["MatMul"] == ran["Tanh"] == 1


def test_a_branch_receives_where_its_value_is_made():
    x = tf.placeholder(tf.float32, [], name="x")

    def when_true():
        with tf.device("/cpu:1"):
            inner = tf.multiply(x, 2.0, name="inner")
        with tf.device("/cpu:2"):
            return tf.add(inner, inner, name="sum")

    with tf.device("/cpu:0"):
        y = tf.cond(x > 0.0, when_true, lambda: x - 1.0)
    found, _ = parted_primitives([y], [x])
    assert ("cond/inner", 1, 2) in sent(found) and ("cond/sum", 2, 0) in sent(found)
    for send, recv in found.recv_of.items():
        assert recv.control == (send,)  # and so it is dead where its Send is
