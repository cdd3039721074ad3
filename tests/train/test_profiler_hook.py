"""Traces of steps as files for Chrome's tracing."""

from __future__ import annotations

import json

import runnel as tf


def trace_of(fetch, **options):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(fetch, options=traced, run_metadata=metadata)
    made = tf.timeline.Timeline(metadata.step_stats)
    return metadata, json.loads(made.generate_chrome_trace_format(**options))["traceEvents"]


def test_each_operation_is_an_event_with_arrows_to_its_users():
    v = tf.Variable([[1.0, 2.0]], name="v")
    y = tf.matmul(v, v, transpose_b=True, name="product")
    metadata, events = trace_of(tf.tanh(y, name="result"))
    ran = {event["args"]["name"]: event for event in events if event["ph"] == "X"}
    stats = {s.node_name: s for d in metadata.step_stats.dev_stats for s in d.node_stats}
    assert ran.keys() == stats.keys() and {"product", "result"} <= ran.keys()
    for name, event in ran.items():
        assert event["ts"] == stats[name].all_start_micros
        assert event["dur"] == stats[name].all_end_rel_micros
    assert ran["product"]["name"] == "MatMul" and ran["result"]["args"]["input0"] == "product:0"
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "t"}
    assert starts.keys() == ends.keys()
    arrows = {(starts[i]["ts"], ends[i]["ts"]) for i in starts}
    product = ran["product"]
    assert (product["ts"] + product["dur"], ran["result"]["ts"]) in arrows
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert names and all("CPU:0" in name for name in names)


def test_events_of_one_lane_do_not_overlap_and_memory_returns_to_nothing():
    a = tf.random_normal([100, 100])
    _, events = trace_of(sum(tf.matmul(a, a + float(i)) for i in range(5)), show_memory=True)
    lanes = {}
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        key = event["pid"], event["tid"]
        assert lanes.get(key, 0) <= event["ts"]
        lanes[key] = event["ts"] + event["dur"]
    counts = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert counts and counts[-1] == 0 and max(counts) >= 40_000 and min(counts) >= 0


def test_arrows_can_be_left_out():
    _, events = trace_of(tf.Variable(1.0) * 2.0, show_dataflow=False)
    assert {event["ph"] for event in events} == {"X", "M"}


def test_the_hook_traces_some_steps(tmp_path):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    hooks = [
        tf.train.ProfilerHook(save_steps=3, output_dir=tmp_path),
        tf.train.StopAtStepHook(last_step=10),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)
    tf.summary.FileWriterCache.clear()
    files = sorted(path.name for path in tmp_path.glob("timeline-*.json"))
    assert files == ["timeline-10.json", "timeline-4.json", "timeline-7.json"]
    for name in files:
        assert json.loads((tmp_path / name).read_text())["traceEvents"]
    [events] = tmp_path.glob("events.*")
    tags = [e.tagged_run_metadata.tag for e in tf.train.summary_iterator(str(events))]
    written = {f"step_{name.removesuffix('.json').removeprefix('timeline-')}" for name in files}
    assert written == {tag for tag in tags if tag}
