"""What a traced step tells: the tiers it really ran in, their memory, what crossed devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.graph.device_set import local_device
from runnel.runtime.devices.transfer import fetched_observed, sent_observed
from runnel.runtime.segment import compile_cost, tier_choice, tier_trial
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, session

SOFTWARE, FULL = tf.RunOptions.SOFTWARE_TRACE, tf.RunOptions.FULL_TRACE
BIG = np.ones((300, 300), np.float32)


def traced(sess: Any, fetches: Any, feed_dict: Any = None, level: int = FULL) -> Any:
    metadata = tf.RunMetadata()
    sess.run(fetches, feed_dict, tf.RunOptions(trace_level=level), metadata)
    return metadata


def entries(metadata: Any) -> dict[str, list[Any]]:
    """What ran, by the short name of its device."""
    return {
        device.device.rpartition("device:")[2]: list(device.node_stats)
        for device in metadata.step_stats.dev_stats
    }


def training() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [300, 300], name="x")
    w = tf.get_variable("w", [300, 300], initializer=tf.zeros_initializer())
    y = x
    for number in range(4):
        y = tf.tanh(tf.matmul(y, w, name=f"product{number}"))
    return x, tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y, name="loss"))


def test_a_step_that_became_hot_is_traced_as_it_runs(monkeypatch):
    monkeypatch.setattr(tier_choice, "_SHARE", 0.0)
    monkeypatch.setattr(tier_choice, "_STALL_SECONDS", 0.0)
    monkeypatch.setattr(compile_cost, "_IMPORT_SECONDS", 0.0)
    # It stays compiled: which tier is faster on this machine is another matter.
    monkeypatch.setattr(tier_trial, "SLOWER", float("inf"))
    x, train = training()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = entries(traced(sess, train, {x: BIG}))["CPU:0"]
        assert {"product0", "product3"} <= {entry.node_name for entry in first}
        # Until the trial of its compiled form, in which both tiers run, is over.
        for _ in range(tier_trial.RUNS + 3):
            sess.run(train, {x: BIG})
            await_compilations()
        [unit] = sess.explain(train, [x])
        assert unit.tier == "compiled"
        counted = unit.signatures[0].interpreted.runs
        [entry] = entries(traced(sess, train, {x: BIG}))["CPU:0"]
        assert entry.timeline_label.startswith(f"{entry.node_name} = XlaRun(")
        assert "product0" in entry.timeline_label and "loss" in entry.timeline_label
        # Asked for, each operation is still to be had; neither counts for what is compiled.
        each = entries(traced(sess, train, {x: BIG}, SOFTWARE))["CPU:0"]
        assert {"product0", "product3"} <= {entry.node_name for entry in each}
        [unit] = sess.explain(train, [x])
        assert unit.tier == "compiled" and unit.signatures[0].interpreted.runs == counted


def test_a_compiled_segment_tells_its_memory():
    x, train = training()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        [entry] = entries(traced(sess, train, {x: BIG}))["CPU:0"]
    size = BIG.nbytes
    assert [taken.requested_bytes for taken in entry.referenced_tensor] == [2 * size]
    assert entry.memory_stats.persistent_memory_size == size and not entry.output
    [memory] = entry.memory
    assert memory.peak_bytes == memory.total_bytes >= size  # at least one product is kept
    assert entry.memory_stats.temp_memory_size == memory.peak_bytes
    assert entry.all_end_rel_micros > 1


@pytest.mark.parametrize("level", [SOFTWARE, FULL])
def test_a_trace_changes_no_result(level):
    x, train = training()
    values = []
    for trace in (False, True):
        with session(COMPILED) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                traced(sess, train, {x: BIG}, level) if trace else sess.run(train, {x: BIG})
            values.append(sess.run("w:0"))
    np.testing.assert_array_equal(*values)


def over_two_devices() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [300, 300], name="x")
    with tf.device("/cpu:0"):
        made = tf.tanh(tf.matmul(x, x), name="made")
    with tf.device("/cpu:1"):
        return x, tf.reduce_sum(tf.matmul(made, made, name="square"), name="total")


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_what_crosses_between_devices_is_traced(level):
    x, total = over_two_devices()
    config = tf.ConfigProto(device_count={"CPU": 2})
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Session(config=config) as sess:
        metadata = traced(sess, total, {x: BIG})
    found = entries(metadata)
    assert found.keys() == {"CPU:0", "CPU:1", "CPU:1/memcpy"}
    [crossing] = found["CPU:1/memcpy"]
    assert crossing.timeline_label.startswith("made:MEMCPYHtoH = MEMCPYHtoH(made) from /job:")
    [output] = crossing.output
    assert output.tensor_description.allocation_description.requested_bytes == BIG.nbytes
    assert [dim.size for dim in output.tensor_description.shape.dim] == [300, 300]
    made, used = found["CPU:0"][-1], found["CPU:1"][0]
    end = made.all_start_micros + made.all_end_rel_micros
    # In whole microseconds, of which the shortest event takes one.
    assert end - 1 <= crossing.all_start_micros <= used.all_start_micros


def test_the_file_for_chrome_has_compiled_segments_and_transfers():
    x, total = over_two_devices()
    config = tf.ConfigProto(device_count={"CPU": 2})
    config.graph_options.optimizer_options.global_jit_level = COMPILED
    with tf.Session(config=config) as sess:
        metadata = traced(sess, total, {x: BIG})
    made = tf.timeline.Timeline(metadata.step_stats)
    events = json.loads(made.generate_chrome_trace_format(show_memory=True))["traceEvents"]
    rows = {e["pid"]: e["args"]["name"].rpartition(":C")[2] for e in events if e["ph"] == "M"}
    assert sorted(rows.values()) == ["PU:0 Compute", "PU:1 Compute", "PU:1 Transfers"]
    ran = {(rows[e["pid"]], e["name"]): e for e in events if e["ph"] == "X"}
    assert ran.keys() == {
        ("PU:0 Compute", "XlaRun"),
        ("PU:1 Transfers", "MEMCPYHtoH"),
        ("PU:1 Compute", "XlaRun"),
    }
    for event in ran.values():
        assert event["dur"] > 0 and event["ts"] > 1e15
        assert {"pid", "tid", "cat", "args"} <= event.keys()
    segment = ran["PU:1 Compute", "XlaRun"]["args"]
    assert segment["operations"] == "square, total" and segment["bytes taken"] == BIG.nbytes
    crossing = ran["PU:1 Transfers", "MEMCPYHtoH"]
    assert crossing["cat"] == "Transfer" and crossing["args"]["bytes"] == BIG.nbytes
    assert crossing["args"]["from"].endswith("CPU:0") and crossing["args"]["to"].endswith("CPU:1")
    # An arrow leads from the segment that made it to the transfer.
    sent = ran["PU:0 Compute", "XlaRun"]
    starts = [(e["pid"], e["ts"]) for e in events if e["ph"] == "s"]
    assert starts == [(sent["pid"], sent["ts"] + sent["dur"])]
    assert [e["pid"] for e in events if e["ph"] == "t"] == [crossing["pid"]]


def check_dynamic_loop() -> None:
    """Runs in a process of its own, in which XLA has two devices."""
    queue = tf.FIFOQueue(9, [tf.float32], [[300, 300]])
    with tf.device("/cpu:0"):
        start = tf.tanh(tf.matmul(tf.ones([300, 300]), tf.ones([300, 300])), name="begin")

    def step(i: Any, rows: Any) -> Any:
        with tf.device("/cpu:0"):
            taken = tf.matmul(queue.dequeue(), rows)
        with tf.device("/cpu:1"):
            return i + 1, tf.tanh(tf.matmul(taken, taken) + 1.0)

    _, result = tf.while_loop(lambda i, _: i < 2, step, [0, start])
    config = tf.ConfigProto(device_count={"CPU": 2})
    config.graph_options.optimizer_options.global_jit_level = COMPILED
    with tf.Session(config=config) as sess:
        for _ in range(2):
            sess.run(queue.enqueue(BIG))
        found = entries(traced(sess, result))
    crossing = [entry for entry in found.get("CPU:1/memcpy", ()) if "MatMul" in entry.node_name]
    assert len(crossing) == 2
    for entry in crossing:
        [output] = entry.output
        assert output.tensor_description.allocation_description.requested_bytes == BIG.nbytes


def test_a_value_that_a_dynamic_loop_brings_to_its_device_is_traced():
    code = f"from {__name__} import check_dynamic_loop; check_dynamic_loop()"
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]


class _Seen:
    by_operation = False

    def __init__(self) -> None:
        self.transfers: list[Any] = []

    def transfer(self, run: Any) -> None:
        self.transfers.append(run)


def test_what_an_accelerator_is_fed_and_fetched_from_is_told():
    """There is none here: another CPU device of JAX takes its place."""
    seen = _Seen()
    device = local_device("CPU", 0)
    sent = sent_observed([BIG, 3], {0: "x:0"}, device, seen)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.asarray(sent[0]), BIG)
    assert sent[1] == 3
    fetched_observed(sent[0], "x:0", local_device("GPU", 0), seen)  # type: ignore[arg-type]
    fetched_observed(sent[0], "x:0", device, seen)  # type: ignore[arg-type]
    assert [(run.source[-5:], run.destination[-5:]) for run in seen.transfers] == [
        ("CPU:0", "CPU:0"),
        ("GPU:0", "CPU:0"),
    ]
    assert all(run.end >= run.start and run.value.nbytes == BIG.nbytes for run in seen.transfers)
