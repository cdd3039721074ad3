"""Device names, scopes, placement and partition as in TensorFlow."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

NAMES = """/job:ps/gpu:1 /cpu:0 /CPU:0 /device:cpu:* /gpu:* /tpu:1 gpu:0 /job:localhost / // /job:*
/job:a/replica:1/task:2/device:XLA_GPU:3 /job:w/job:v /device:foo:0 /gpu /cpu /job:a-b /job:1a
device:GPU:0 /gpu:0/ /job:a//task:1 /replica:* /task:* /device:CPU:0/cpu:1 /task:x /foo:1
/device:GPU:x /device:GPU:0:1 /Job:a /DEVICE:gpu:0 /device:gpu /physical_device:CPU:0""".split()  # noqa: SIM905 (as names are written)


def outcome(call):
    try:
        return call()
    except ValueError:
        return ValueError


@pytest.mark.parametrize("name", NAMES)
def test_parsing(name):
    def parsed(tf):
        spec = tf.DeviceSpec.from_string(name)
        return (
            *(spec.to_string(), spec.job, spec.replica, spec.task),
            *(spec.device_type, spec.device_index),
        )

    assert outcome(lambda: parsed(runnel)) == outcome(lambda: parsed(reference))


@pytest.mark.parametrize("outer", ["", "/gpu:1", "/job:a/task:1", "/job:a/cpu:0"])
@pytest.mark.parametrize("inner", ["", "/cpu:*", "/job:b", "/gpu:2", "/task:3/device:GPU:*"])
def test_merging(outer, inner):
    def merged(tf):
        one, other = tf.DeviceSpec.from_string(outer), tf.DeviceSpec.from_string(inner)
        new = one.make_merged_spec(other).to_string()
        one.merge_from(other)
        return new, one.to_string(), other.replace(job="x", device_index=None).to_string()

    assert merged(runnel) == merged(reference)


DEVICES = ["/job:ps/task:0", "/job:ps/task:1", ""]


@pytest.mark.parametrize("places", [[0, 0], [0, 1], [2, 0, 1], [2], [], [0, 1, 0, 1]])
def test_a_group_has_an_operation_on_each_device_of_what_it_waits_for(places):
    def grouped(tf):
        with tf.Graph().as_default() as graph:
            waits = []
            for place in places:
                with tf.device(DEVICES[place]):
                    waits.append(tf.constant(1.0))
            with tf.device("/job:worker/task:3/cpu:0"), tf.name_scope("s"):
                tf.group(*waits)
                tf.group(waits, name="named")
            nodes = graph.as_graph_def().node
            return [(n.name, n.device, sorted(n.input)) for n in nodes if n.op == "NoOp"]

    assert grouped(runnel) == grouped(reference)


SCOPES = ["/gpu:0", "/job:ps", "/job:w/task:1", "/cpu:*", "/task:2/cpu:1", None, ""]
FUNCTIONS = ["/gpu:3", "/job:f/device:CPU:0", ""]


@pytest.mark.parametrize("seed", range(40))
def test_nested_scopes(seed):
    rng = random.Random(seed)
    scopes = [
        ("function", rng.choice(FUNCTIONS)) if rng.random() < 0.3 else ("name", rng.choice(SCOPES))
        for _ in range(rng.randint(1, 4))
    ]
    colocate = rng.random() < 0.3

    def device(tf):
        seen = []

        def enter(kind, name):
            if kind == "name":
                return tf.device(name)

            def choose(op):
                if op.type == "Const":
                    seen.append(tf.DeviceSpec.from_string(op.device).to_string())
                return name

            return tf.device(choose)

        with tf.Graph().as_default(), ExitStack() as stack:
            with tf.device("/job:anchor/cpu:7" if seed % 2 else None):
                anchor = tf.no_op()
            for number, scope in enumerate(scopes):
                if colocate and number == 1:
                    stack.enter_context(tf.colocate_with(anchor))
                stack.enter_context(enter(*scope))
            op = tf.constant(1.0).op
            return tf.DeviceSpec.from_string(op.device).to_string(), op.colocation_groups(), seen

    assert device(runnel) == device(reference)


def build(tf, seed):
    """A graph of sums with random wishes, colocation and variables; returns what to fetch."""
    rng = random.Random(seed)

    def scope():
        return tf.device(rng.choice(["/cpu:0", "/cpu:1", "/cpu:2", None, "/device:CPU:*"]))

    values, updates = [], []
    for number in range(3):
        with scope():
            v = tf.get_variable(
                f"v{number}", [2], initializer=tf.zeros_initializer(), use_resource=number == 1
            )
        with scope():
            values.append(tf.identity(v, name=f"read{number}"))
        with scope():
            updates.append(tf.assign_add(v, tf.ones([2]), name=f"update{number}"))
    for number in range(15):
        a, b = rng.choice(values), rng.choice(values)
        awaited = [rng.choice(values)] if rng.random() < 0.2 else []
        with scope(), tf.control_dependencies(awaited):
            if rng.random() < 0.2:
                with tf.colocate_with(rng.choice(values)):
                    values.append(tf.subtract(a, b, name=f"n{number}"))
            else:
                values.append(tf.add(a, b, name=f"n{number}"))
    return values[3:], updates


def config(tf):
    made = tf.ConfigProto(device_count={"CPU": 3})
    made.graph_options.rewrite_options.disable_meta_optimizer = True
    made.graph_options.optimizer_options.opt_level = -1
    return made


def partitions(tf, seed):
    """The device of each operation, and (value, source, destination) of each transfer."""
    with tf.Graph().as_default(), tf.Session(config=config(tf)) as sess:
        fetches = build(tf, seed)
        sess.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        options = tf.RunOptions(output_partition_graphs=True)
        sess.run(fetches, options=options, run_metadata=metadata)
    devices, transfers = {}, []
    for graph in metadata.partition_graphs:
        for node in graph.node:
            if node.op == "_Send":
                ends = [node.attr[k].s.decode() for k in ("send_device", "recv_device")]
                name = node.attr["tensor_name"].s.decode().split("_", 2)[2]
                transfers.append((name, *ends))
            elif node.op in ("AddV2", "Add", "Sub", "VariableV2", "VarHandleOp", "AssignAdd"):
                devices[node.name] = node.device
    return devices, transfers


@pytest.mark.parametrize("seed", range(8))
def test_placement_and_partition(seed):
    ours, our_transfers = partitions(runnel, seed)
    theirs, their_transfers = partitions(reference, seed)
    assert ours == theirs
    # TensorFlow also sends what is fetched to the client's device; runnel hands it over directly.
    named = {name for name in ours if name.startswith("n")}
    client = "/job:localhost/replica:0/task:0/device:CPU:0"

    def between(transfers):
        return sorted(t for t in transfers if t[0] in named and t[2] != client)

    assert between(our_transfers) == between(their_transfers)


@pytest.mark.parametrize("device", ["/gpu:0", "/cpu:9", "/job:worker/cpu:0"])
@pytest.mark.parametrize("soft", [False, True])
def test_devices_that_do_not_exist(device, soft):
    def result(tf):
        made = config(tf)
        made.allow_soft_placement = soft
        with tf.Graph().as_default(), tf.Session(config=made) as sess:
            with tf.device(device):
                x = tf.add(1.0, 2.0)
            try:
                return sess.run(x)
            except tf.errors.InvalidArgumentError:
                return "refused"

    assert result(runnel) == result(reference)
