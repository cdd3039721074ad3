"""Sessions with several devices: listing, running, failing, explaining."""

from __future__ import annotations

import logging
from html.parser import HTMLParser

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.devices import devices
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.segment.tiers import SegmentRunner
from tests.both_tiers import COMPILED, INTERPRETED

TASK = "/job:localhost/replica:0/task:0/device"
LEVELS = [INTERPRETED, COMPILED]


def session(level: int = 0, cpus: int = 3, **config) -> tf.Session:
    proto = tf.ConfigProto(device_count={"CPU": cpus}, **config)
    proto.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=proto)


# Devices -----------------------------------------------------------------------------------------


def test_device_count_gives_several_cpu_devices():
    with session(cpus=2) as sess:
        assert [d.name for d in sess.list_devices()] == [f"{TASK}:CPU:0", f"{TASK}:CPU:1"]
        assert all(d.device_type == "CPU" for d in sess.list_devices())
    with tf.Session() as sess:
        assert [d.name for d in sess.list_devices()] == [f"{TASK}:CPU:0"]


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="cannot be negative"):
        session(cpus=-1)


def test_physical_and_logical_devices():
    (device,) = tf.config.experimental.list_physical_devices("CPU")
    assert device == ("/physical_device:CPU:0", "CPU")
    assert tf.config.experimental.list_logical_devices()[0].name == f"{TASK}:CPU:0"
    assert tf.config.experimental.list_physical_devices("TPU") == []
    with pytest.raises(ValueError, match="no memory setting"):
        tf.config.experimental.set_memory_growth(device, True)
    assert tf.test.gpu_device_name() == ""
    assert not tf.test.is_gpu_available()


class TestMemoryOptions:
    """GPUOptions reach XLA through its environment, while that is still read."""

    options = tf.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.25)

    @pytest.fixture(autouse=True)
    def _machine_with_a_gpu(self, monkeypatch):
        for name in ("PREALLOCATE", "MEM_FRACTION"):
            monkeypatch.delenv(f"XLA_PYTHON_CLIENT_{name}", raising=False)
        monkeypatch.setattr(devices, "_accelerator_possible", lambda: True)
        devices._warn_once.cache_clear()

    def test_they_are_applied_before_xla_starts(self, monkeypatch):
        monkeypatch.setattr(devices, "_started", False)
        devices.apply_gpu_options(self.options)
        assert devices.os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        assert devices.os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.25"
        monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE")
        monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION")

    def test_afterwards_a_warning_says_so(self, monkeypatch, caplog):
        monkeypatch.setattr(devices, "_started", True)
        with caplog.at_level(logging.WARNING, "runnel"):
            devices.apply_gpu_options(self.options)
        assert "too late" in caplog.text
        assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in caplog.text
        assert "XLA_PYTHON_CLIENT_PREALLOCATE" not in devices.os.environ

    def test_what_the_environment_says_already_is_no_news(self, monkeypatch, caplog):
        monkeypatch.setattr(devices, "_started", True)
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        with caplog.at_level(logging.WARNING, "runnel"):
            devices.apply_gpu_options(tf.GPUOptions(allow_growth=True))
        assert not caplog.text


# Running -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_two_devices_that_feed_each_other_many_times(level):
    x = tf.placeholder(tf.float64, [])
    y = x
    for number in range(30):
        with tf.device(f"/cpu:{number % 3}"):
            y = y * 1.5 - 0.25
    with session(level) as sess:
        for value in (1.0, 2.0, -3.0):
            expected = value
            for _ in range(30):
                expected = expected * 1.5 - 0.25
            assert sess.run(y, {x: value}) == pytest.approx(expected)


@pytest.mark.parametrize("level", LEVELS)
def test_updates_of_one_variable_from_several_devices_keep_their_order(level):
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0)
    values = []
    for number in range(6):
        with tf.device(f"/cpu:{number % 3}"):
            step = v * 2.0 + float(number)
        with tf.control_dependencies([tf.assign(v, step)]):
            values.append(tf.identity(v))
    expected, state = [], 1.0
    for number in range(6):
        state = state * 2.0 + number
        expected.append(state)
    with session(level) as sess:
        sess.run(v.initializer)
        assert sess.run(values) == expected
        assert sess.run(v) == state


@pytest.mark.parametrize("level", LEVELS)
def test_a_failed_check_on_one_device_leaves_the_variables_of_another(level):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        checked = tf.check_numerics(x, "what was fed")
    with tf.device("/cpu:2"):
        v = tf.Variable(1.0)
        update = v.assign_add(checked)
    with session(level) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="what was fed") as raised:
            sess.run(update, {x: np.inf})
        assert raised.value.op is checked.op
        assert sess.run(v) == 1.0
        assert sess.run(update, {x: 2.0}) == 3.0


@pytest.mark.parametrize("level", LEVELS)
def test_a_failed_check_takes_back_a_first_assignment_and_random_numbers(level):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        noise = tf.random_uniform([], seed=1)
        v = tf.Variable(0.0)
        checked = tf.check_numerics(x, "fed")
        assign = tf.assign(v, checked + noise)
    with tf.device("/cpu:2"):
        total = assign * 1.0
    with session(level) as sess, session(level) as other:
        other.run(v.initializer)
        expected = other.run(total, {x: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(total, {x: np.nan})
        assert not sess.run(tf.is_variable_initialized(v))
        assert sess.run(total, {x: 1.0}) == expected


@pytest.mark.parametrize("level", LEVELS)
def test_fed_arrays_belong_to_the_caller_again(level):
    x = tf.placeholder(tf.float32, [256, 256])
    with tf.device("/cpu:1"):
        v = tf.Variable(tf.zeros([256, 256]))
        update = v.assign_add(tf.matmul(x, x))
    array = np.eye(256, dtype=np.float32)
    with session(level) as sess:
        sess.run(v.initializer)
        sess.run(update.op, {x: array})
        array[:] = 5.0
        np.testing.assert_array_equal(sess.run(v), np.eye(256))


def test_a_transfer_starts_before_the_next_segment_does(monkeypatch):
    """The order of events: a value is on its way before anything else is started."""
    events = []
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:0"):
        first = tf.square(x, name="first")
    with tf.device("/cpu:1"):
        second = tf.add(first, 1.0, name="second")
    with tf.device("/cpu:2"):
        third = tf.add(first, 2.0, name="third")
    send, run = Transfer.start, SegmentRunner.run

    def noted_send(self, *args):
        events.append(f"send to {self.device.short_name}")
        return send(self, *args)

    def noted_run(self, *args):
        events.append(f"start on {self.segment.device.short_name}")
        return run(self, *args)

    monkeypatch.setattr(Transfer, "start", noted_send)
    monkeypatch.setattr(SegmentRunner, "run", noted_run)
    metadata = tf.RunMetadata()
    with session() as sess:
        assert sess.run([second, third], {x: 2.0}) == [5.0, 6.0]
        assert events == [
            *("start on CPU:0", "send to CPU:1", "send to CPU:2"),
            *("start on CPU:1", "start on CPU:2"),
        ]
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run([second, third], {x: 2.0}, options=full, run_metadata=metadata)
    traced = {s.device.rpartition("device:")[2] for s in metadata.step_stats.dev_stats}
    assert traced == {"CPU:0", "CPU:1/memcpy", "CPU:1", "CPU:2/memcpy", "CPU:2"}


def test_the_same_computation_asked_for_on_two_devices_is_made_on_both():
    x = tf.placeholder(tf.float32, [2])
    for number in (1, 2):
        with tf.device(f"/cpu:{number}"):
            tf.square(x, name=f"square{number}")
    names = ["square1:0", "square2:0"]
    with session(COMPILED) as sess:
        sess.run(names, {x: [1.0, 2.0]})
        (prepared, *_) = sess._prepared.values()
        used = [r.segment.device.short_name for r in prepared.plan.schedule.runners]
    assert used == ["CPU:1", "CPU:2"]


# Failing -----------------------------------------------------------------------------------------


def test_a_session_is_usable_after_a_device_that_does_not_exist():
    with tf.device("/gpu:0"):
        x = tf.square(3.0, name="x")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="allow_soft_placement"):
            sess.run(x)
        assert sess.run(tf.constant(2.0)) == 2.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        assert sess.run(x) == 9.0


# Explaining --------------------------------------------------------------------------------------


def test_placement_is_logged_once_when_asked_for(capfd):
    with tf.device("/cpu:1"):
        x = tf.square(3.0, name="x")
    with session(log_device_placement=True) as sess:
        sess.run(x)
        sess.run(x + 1.0)
    assert capfd.readouterr().err.count(f"x: (Square): {TASK}:CPU:1\n") == 1


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.cells, self.outside = [], []

    def handle_data(self, data):
        self.cells.append(data)

    def handle_starttag(self, tag, attrs):
        self.outside += [value for name, value in attrs if name in ("src", "href")]


def test_explain_placement(tmp_path):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/cpu:1"):
        y = tf.square(x, name="<y>".strip("<>"))
    z = tf.add(y, 1.0, name="z")
    config = tf.ConfigProto(device_count={"CPU": 2})
    explanation = tf.explain_placement(tf.get_default_graph(), z, {x: 1.0}, config)
    assert explanation["y"].device == f"{TASK}:CPU:1"
    assert "asked for /device:CPU:1" in explanation["y"].reason
    text = str(explanation)
    assert "no wish" in text and "y  CPU:1 -> CPU:0  (1 consumers)" in text
    explanation.save(tmp_path / "placement.html")
    reader = _Reader()
    reader.feed((tmp_path / "placement.html").read_text())
    assert {"y", "Square", "CPU:1", "asked for /device:CPU:1"} <= set(reader.cells)
    assert not reader.outside  # the page needs nothing else


def test_explain_placement_of_a_session_and_of_everything():
    with tf.device("/cpu:2"):
        tf.square(3.0, name="x")
    with session() as sess:
        assert tf.explain_placement(sess)["x"].device == f"{TASK}:CPU:2"
        with pytest.raises(ValueError, match="configuration of its own"):
            tf.explain_placement(sess, config=tf.ConfigProto())
    with pytest.raises(TypeError, match="takes a tf.Graph or a session"):
        tf.explain_placement(3)


def test_partition_graphs_have_one_pair_for_each_value_and_destination():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/cpu:1"):
        y = tf.square(x, name="y")
    with tf.device("/cpu:2"):
        a, b = tf.add(y, 1.0, name="a"), tf.multiply(y, y, name="b")
        with tf.control_dependencies([y]):
            done = tf.no_op(name="done")
    metadata = tf.RunMetadata()
    with session() as sess:
        options = tf.RunOptions(output_partition_graphs=True)
        sess.run([a, b, done], {x: [1.0, 2.0]}, options=options, run_metadata=metadata)
    nodes = {node.name: node for graph in metadata.partition_graphs for node in graph.node}
    sends = [node for node in nodes.values() if node.op == "_Send"]
    assert [s.input[0] for s in sends if s.input[0] in ("x", "y")] == ["x", "y"]
    recv = next(n for n in nodes.values() if n.op == "_Recv" and n.name == nodes["a"].input[0])
    assert list(nodes["b"].input) == [recv.name, recv.name]
    awaited = nodes[nodes["done"].input[0].lstrip("^")]
    assert awaited.op == "_Recv"  # a control edge is a message too
    assert len(metadata.partition_graphs) == 3


# Memory ------------------------------------------------------------------------------------------


def too_large(x: tf.Tensor) -> tf.Tensor:
    return tf.fill([1 << 21, 1 << 21], x) * 2.0  # 16 TiB


@pytest.mark.parametrize("cpus", [1, 3])
def test_a_step_that_cannot_fit_is_refused_before_it_changes_anything(cpus):
    x = tf.placeholder(tf.float32, [])
    with tf.device(f"/cpu:{cpus - 1}"):
        v = tf.Variable(tf.zeros([2]))
        large = too_large(x)
        update = v.assign_add(large[0, :2])
    with session(COMPILED, cpus) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
            sess.run([large, update], {x: 1.0})
        for part in ("operations (", "CPU", "16 TiB", "smaller batch", "It has changed nothing"):
            assert part in raised.value.message
        assert sess.run(v).tolist() == [0.0, 0.0]
        assert sess.run(v.assign_add([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_a_device_that_runs_out_of_memory_says_what_is_lost(monkeypatch):
    """As if XLA had not known beforehand: the variable was being updated in place."""
    monkeypatch.setattr(
        "runnel.runtime.segment.segment_compiler.require_memory", lambda *args: None
    )
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        v = tf.Variable(tf.zeros([2]), name="v")
        large = too_large(x)
        update = v.assign_add(large[0, :2])
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        sess.run(v.assign_add([1.0, 1.0]))
        with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
            sess.run([large, update], {x: 1.0})
        for part in ("ran out of memory", f"{TASK}:CPU:1", "can be used further", "'v'"):
            assert part in raised.value.message
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            sess.run(v)
        sess.run(v.initializer)
        assert sess.run(v).tolist() == [0.0, 0.0]
