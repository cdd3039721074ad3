"""Partition: one Send and Recv for each value and destination."""

from __future__ import annotations

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device
from runnel.ops.send_recv import rendezvous_key
from runnel.passes.checker import check_program
from runnel.passes.partition import partition
from runnel.passes.placement import place
from runnel.passes.prune import prune
from runnel.passes.variable_reads import explicit_reads

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
