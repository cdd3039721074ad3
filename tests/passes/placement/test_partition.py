"""Partition: parts with one Send and Recv for each value and destination."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.graph.device_set import DeviceSet, local_device
from runnel.graph.import_graph_def import import_graph_def
from runnel.ops.send_recv import MAY_BE_DEAD, rendezvous_key
from runnel.passes.placement.node_devices import (
    computes_on_several,
    devices_of_nodes,
    hand_on_where_made,
)
from runnel.passes.placement.part_graph import part_graph
from runnel.passes.placement.partition import partition
from runnel.passes.placement.placement import place
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frames
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import structure_of

CPUS = DeviceSet([local_device("CPU", i) for i in range(3)])


def parted(fetches, targets=(), feeds=(), host=CPUS[0], part_of=None):
    program = prune(fetches, targets, feeds)
    device_of = devices_of_nodes(program, place([node.op for node in program.nodes], CPUS))
    if part_of is not None:
        part_of = {node: part_of(node) for node in program.nodes}
    found = partition(program, device_of, part_of, host)
    for part in found.parts.values():
        check_program(part.program, "partition")
    return found


def ops_in(found, index):
    return [node.op_def.name for node in found.parts[CPUS[index].name].program.nodes]


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
    assert not found.recv_of and list(found.parts) == [CPUS[2].name]


def test_constants_are_everywhere_and_are_not_sent():
    with tf.device("/cpu:0"):
        c = tf.constant([1.0])
    with tf.device("/cpu:1"):
        y = tf.square(c)
    found = parted([y])
    assert sent(found) == [] and list(found.parts) == [CPUS[1].name]


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


def test_a_variable_is_read_once_for_each_version_that_others_see():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0], name="v")
    with tf.device("/cpu:1"):
        before = [tf.negative(v), tf.square(v)]
        with tf.control_dependencies(before), tf.device("/cpu:2"):
            update = v.assign_add([1.0])
        after = tf.exp(v)
    found = parted([*before, update, after])
    kinds = [kind for kind in ops_in(found, 2) if kind in ("Identity", "AssignAdd", "_Send")]
    assert kinds == ["Identity", "_Send", "AssignAdd", "Identity", "_Send"]


def test_send_stands_right_after_the_value_is_made():
    with tf.device("/cpu:0"):
        x = tf.square(tf.constant([1.0]), name="x")
        late = tf.negative(x, name="late")
    with tf.device("/cpu:1"):
        y = x + 1.0
    names = ops_in(parted([y, late]), 0)
    assert names.index("_Send") == names.index("Square") + 1 < names.index("Neg")


def test_a_control_edge_that_crosses_is_a_message_too():
    with tf.device("/cpu:0"):
        first = tf.no_op(name="first")
    with tf.device("/cpu:1"), tf.control_dependencies([first]):
        a, b = tf.no_op(), tf.no_op()
    found = parted([], [a, b])
    assert sent(found) == [("first", 0, 1)]
    assert ops_in(found, 0) == ["NoOp", "Const", "_Send"]
    assert ops_in(found, 1) == ["_Recv", "NoOp", "NoOp"]
    for node in found.parts[CPUS[1].name].program.nodes[1:]:
        assert node.control == tuple(found.recv_of.values())


def test_each_part_of_a_task_is_fed_what_it_takes():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/cpu:0"):
        y = tf.square(x, name="y")
    with tf.device("/cpu:1"):
        z = tf.negative(x, name="z")
    found = parted([y, z], feeds=[x], host=None, part_of=lambda node: node.op.name)
    assert not found.recv_of
    assert {name: list(part.program.feeds) for name, part in found.parts.items()} == {
        "y": [x],
        "z": [x],
    }


def test_a_handle_is_not_sent():
    with tf.device("/cpu:0"):
        queue = tf.FIFOQueue(3, tf.float32, [()], name="queue")
        element = queue.dequeue(name="element")
    with pytest.raises(tf.errors.UnimplementedError, match="takes 'queue' itself") as caught:
        parted([element], host=None, part_of=lambda node: node.op.name)
    assert caught.value.op is element.op


def test_a_loop_whose_variable_is_cut_is_refused_by_name():
    _, end = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * h), (0, 2.0), name="steps")
    apart = {"NextIteration": "there"}
    with pytest.raises(tf.errors.UnimplementedError, match="The loop 'steps/while_context'"):
        parted([end], host=None, part_of=lambda node: apart.get(node.op_def.name, "here"))


def test_what_is_read_back_has_the_users_names_and_lines():
    with tf.device("/cpu:2"):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/cpu:1"):
        y = tf.exp(v, name="y")  # the line
    found = parted([y], host=None)
    for name, part in found.parts.items():
        written = part_graph(part).graph_def.SerializeToString()
        with tf.Graph().as_default() as graph:
            import_graph_def(tf.GraphDef.FromString(written), name="")
        read_back = graph.get_operations()
        assert [op.type for op in read_back] == [n.op_def.name for n in part.program.nodes]
        assert all(op.device == name for op in read_back)
        for op, node in zip(read_back, part.program.nodes, strict=True):
            assert op.origin == node.op.name
            assert op.creation_site() == node.op.creation_site()
            assert [t.dims for t in op.outputs] == [
                part.program.infos[v].dims for v in node.outputs
            ]
    origin = graph.get_operation_by_name("y").creation_site()[-1]
    assert origin.startswith(__file__) and origin.endswith("# the line")
    (recv,) = [op for op in graph.get_operations() if op.type == "_Recv"]
    assert recv.origin == "y" and recv.name != "y"
    error = tf.errors.InternalError(None, recv, "lost")
    assert "Failed operation: 'y' (_Recv)" in str(error) and "# the line" in str(error)
    again = part_graph(found.parts[CPUS[2].name]).graph_def
    assert "_origin" in again.node[0].attr


def test_constants_of_every_type_survive():
    values = [np.float32([1.5]), np.array([b"text"], object), np.array(True), np.int8([[3]])]
    found = parted([tf.identity(tf.constant(value)) for value in values], host=None)
    (part,) = found.parts.values()
    with tf.Graph().as_default() as graph:
        import_graph_def(part_graph(part).graph_def, name="")
    read_back = [op.attrs["value"] for op in graph.get_operations() if op.type == "Const"]
    for one, other in zip(read_back, values, strict=True):
        np.testing.assert_array_equal(one, other)


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


def test_what_a_loop_sends_it_sends_in_each_iteration():
    x = tf.placeholder(tf.float32, [], name="x")

    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, tf.multiply(h, h, name="product")

    with tf.device("/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, (tf.constant(0), x))[1]
    with tf.device("/cpu:2"):
        y = tf.negative(end)
    found = parted([y], feeds=[x])
    # Once a value for each destination, on the way to NextIteration, never after it; and that
    # the iteration has begun, which the constants of the body wait for.
    assert sent(found) == [
        ("while/Exit_1", 0, 2),
        ("while/Identity", 0, 1),
        ("while/Identity", 0, 1),
        ("while/Identity_1", 0, 1),
        ("while/LoopCond", 0, 1),
        ("while/add", 1, 0),
        ("while/product", 1, 0),
    ]
    runs_in = {}
    for part in found.parts.values():
        runs_in.update(Frames(part.program).runs_in)
    for send, recv in found.recv_of.items():
        outside = send.attrs["tensor_name"].endswith("while/Exit_1")
        assert runs_in[send].name == runs_in[recv].name
        assert runs_in[send].name == ("" if outside else "while/while_context")


def test_a_part_without_loop_variables_keeps_time_by_a_loop_of_its_own():
    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, tf.multiply(h, h, name="product")

    with tf.device("/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, (tf.constant(0), tf.constant(2.0)))[1]
    kinds = ops_in(parted([end]), 1)
    assert [kinds.count(k) for k in ("Enter", "Merge", "Switch", "NextIteration", "LoopCond")] == [
        *(1, 1, 1, 1, 1)
    ]
    assert "Exit" not in kinds


def test_a_loop_around_several_devices_has_its_back_edges_on_one():
    with tf.device("/cpu:0"):
        start = (tf.constant(0), tf.constant(1.0))

    def body(i, h):
        with tf.device("/cpu:1"):
            return i + 1, h * 2.0

    with tf.device(lambda op: "/cpu:2" if op.type == "NextIteration" else "/cpu:0"):
        end = tf.while_loop(lambda i, h: i < 5, body, start)[1]
    found = parted([end])
    at = {
        node.op.name: device.index
        for part in found.parts.values()
        for node, device in part.device_of.items()
        if node not in part.name_of
    }
    assert at["while/Merge"] == at["while/NextIteration"] == 0
    placement = tf.explain_placement(
        tf.get_default_graph(), end, config=tf.ConfigProto(device_count={"CPU": 3})
    )
    assert "must be with 'while/Merge'" in placement["while/NextIteration"].reason


def test_a_loop_computes_where_the_operations_in_it_do():
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


def test_a_branch_receives_where_its_value_is_made():
    x = tf.placeholder(tf.float32, [], name="x")

    def when_true():
        with tf.device("/cpu:1"):
            inner = tf.multiply(x, 2.0, name="inner")
        with tf.device("/cpu:2"):
            return tf.add(inner, inner, name="sum")

    with tf.device("/cpu:0"):
        y = tf.cond(x > 0.0, when_true, lambda: x - 1.0)
    found = parted([y], feeds=[x])
    assert ("cond/inner", 1, 2) in sent(found) and ("cond/sum", 2, 0) in sent(found)
    for send, recv in found.recv_of.items():
        name = send.attrs["tensor_name"].split("_", 2)[2]
        assert (MAY_BE_DEAD in recv.attrs) == (name not in ("x", "Greater", "cond/pred_id"))


@pytest.mark.parametrize(
    "use,stays",
    [
        (lambda handed, x: [], False),
        (lambda handed, x: [handed + 1.0], True),  # it is needed there
        (lambda handed, x: [x * 2.0], True),  # the value is sent there anyway
        (lambda handed, x: [tf.group(handed)], True),  # something there waits for it
    ],
)
def test_what_only_hands_a_value_on_to_the_caller_is_where_the_value_is(use, stays):
    with tf.device("/cpu:0"):
        x = tf.square(tf.placeholder(tf.float32), name="x")
    with tf.device("/cpu:1"):
        handed = tf.identity(x)
        others = use(handed, x)
    program = prune(
        [handed, *[o for o in others if isinstance(o, tf.Tensor)]],
        [o for o in others if isinstance(o, tf.Operation)],
        [x.op.inputs[0]],
    )
    device_of = devices_of_nodes(program, place([node.op for node in program.nodes], CPUS))
    part_of = {node: device.name for node, device in device_of.items()}
    hand_on_where_made(program, device_of, part_of)
    found = partition(program, device_of, part_of)
    assert (CPUS[1].name in found.parts) is stays and bool(found.recv_of) is stays
    [node] = [node for node in program.nodes if node.op is handed.op]
    assert device_of[node] == CPUS[int(stays)] and part_of[node] == CPUS[int(stays)].name
