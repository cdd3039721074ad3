"""ConfigProto, RunOptions and RunMetadata: what is asked of a session or a step, and told of it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
FULL = tf.RunOptions.FULL_TRACE


def slow_chain(length: int = 50) -> tuple[tf.Tensor, threading.Event]:
    """Operations that take 50 ms each until the event is set, in segments of their own."""
    hurry = threading.Event()

    def wait(value):
        hurry.wait(0.05)
        return value

    x = tf.constant(1.0)
    for _ in range(length):
        x = tf.py_func(wait, [x], tf.float32) * 1.5
    return x, hurry


@TIERS
def test_the_timeout_of_a_step_names_the_operation_that_came_too_late(level):
    y, hurry = slow_chain()
    with session(level) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError, match="timeout_in_ms") as e:
            sess.run(y, options=tf.RunOptions(timeout_in_ms=20))
        assert e.value.op is not None and repr(e.value.op.name) in e.value.message
        hurry.set()
        assert sess.run(y, options=tf.RunOptions(timeout_in_ms=60_000)) > 1.0
        assert sess.run(y) > 1.0


def test_a_session_may_have_a_timeout_for_every_step():
    y, hurry = slow_chain()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20)) as sess:
        call = sess.make_callable(y)
        for run in (lambda: sess.run(y), call, lambda: sess.run(y, run_metadata=tf.RunMetadata())):
            with pytest.raises(tf.errors.DeadlineExceededError, match="operation_timeout_in_ms"):
                run()
        # A step's own timeout takes its place.
        hurry.set()
        assert sess.run(y, options=tf.RunOptions(timeout_in_ms=60_000)) > 1.0


def test_a_step_that_ran_out_of_time_changes_no_variable_of_the_segment_it_stopped_in():
    v = tf.Variable(0.0)
    hurry = threading.Event()
    wait = tf.py_func(lambda: (hurry.wait(0.05), np.float32(1.0))[1], [], tf.float32)
    step = v.assign_add(wait)
    with session(INTERPRETED) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(step, options=tf.RunOptions(timeout_in_ms=10))
        assert sess.run(v) == 0.0
        hurry.set()
        assert sess.run(step) == 1.0


def test_a_trace_has_a_time_for_each_operation():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.identity(x + 1.0, name="y")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        value = sess.run(y, {x: [1, 2]}, tf.RunOptions(trace_level=FULL), metadata)
    np.testing.assert_array_equal(value, [2, 3])
    (device,) = metadata.step_stats.dev_stats
    assert device.device.endswith("CPU:0")
    by_name = {stats.node_name: stats for stats in device.node_stats}
    assert {"add", "y"} <= by_name.keys()
    stats = by_name["y"]
    assert stats.all_start_micros > 1e15 and stats.all_end_rel_micros >= 1
    assert stats.timeline_label == "y = Identity(add:0)"
    assert [d.size for d in stats.output[0].tensor_description.shape.dim] == [2]
    assert stats.output[0].tensor_description.allocation_description.requested_bytes == 8


def test_a_trace_of_a_compiled_step_has_a_time_for_each_segment():
    v = tf.Variable([1.0, 2.0])
    first = tf.square(v, name="first")
    between = tf.py_func(lambda a: a, [first], tf.float32, name="between")
    last = tf.identity(between * 2.0, name="last")
    metadata = tf.RunMetadata()
    with session(COMPILED) as sess:
        sess.run(v.initializer)
        value = sess.run(last, None, tf.RunOptions(trace_level=FULL), metadata)
    np.testing.assert_array_equal(value, [2, 8])
    names = [stats.node_name for stats in metadata.step_stats.dev_stats[0].node_stats]
    assert names == ["first/compiled", "between", "mul/compiled"]
    labels = [stats.timeline_label for stats in metadata.step_stats.dev_stats[0].node_stats]
    assert "first" in labels[0] and "XlaRun" in labels[0]


def test_nothing_is_traced_unless_asked_for():
    x = tf.constant(1.0)
    with tf.Session() as sess:
        for options in (None, tf.RunOptions(), tf.RunOptions(trace_level=tf.RunOptions.NO_TRACE)):
            metadata = tf.RunMetadata()
            assert sess.run(x, options=options, run_metadata=metadata) == 1.0
            assert metadata == tf.RunMetadata()
        # Without metadata to write to, a trace is not made.
        assert sess.run(x, options=tf.RunOptions(trace_level=FULL)) == 1.0


def test_the_graph_of_a_step_can_be_had_pruned_and_runs_elsewhere():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.multiply(x, 3.0, name="y")
    z = tf.add(y, 1.0, name="z")
    tf.exp(z, name="not_needed")
    with tf.control_dependencies([x, y]):
        w = tf.identity(z, name="w")
    options = tf.RunOptions(output_partition_graphs=True)
    with tf.Session() as sess:
        whole, cut = tf.RunMetadata(), tf.RunMetadata()
        expected = sess.run(w, {x: [1, 2]}, options, whole)
        sess.run(z, {y: [1, 2]}, options, cut)
    (graph_def,) = whole.partition_graphs
    names = {node.name for node in graph_def.node}
    assert names == {"x", "y", "y/y", "z", "z/y", "w"}
    assert {node.name: node.op for node in cut.partition_graphs[0].node} == {
        "y": "Placeholder",
        "z/y": "Const",
        "z": "AddV2",
    }
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session() as sess:
            np.testing.assert_array_equal(sess.run("w:0", {"x:0": [1, 2]}), expected)


def test_steps_can_run_as_they_were_described():
    """opt_level = -1: 1e300 ** 2 overflows, as the program says."""
    x = tf.placeholder(tf.float64, [])
    y = tf.sqrt(tf.square(x))
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Session() as rewritten, tf.Session(config=config) as as_described:
        for _ in range(3):
            assert rewritten.run(y, {x: 1e300}) == 1e300
            assert as_described.run(y, {x: 1e300}) == np.inf


def test_fields_that_decide_nothing_are_accepted():
    config = tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=True,
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
        device_count={"GPU": 0},
    )
    config.gpu_options.allow_growth = True
    options = tf.RunOptions(report_tensor_allocations_upon_oom=True, inter_op_thread_pool=-1)
    with tf.device("/device:GPU:0"):
        x = tf.constant(1.0)
    with tf.Session(config=config) as sess:
        assert sess.run(x, options=options) == 1.0


def test_options_of_the_wrong_type_are_refused():
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match="ConfigProto"):
        tf.Session(config={"allow_soft_placement": True})
    with tf.Session() as sess:
        with pytest.raises(TypeError, match="RunOptions"):
            sess.run(x, options={"timeout_in_ms": 5})
        assert sess.run(x) == 1.0


def test_make_callable_takes_options_when_told_to():
    x = tf.placeholder(tf.float32, [])
    y = tf.placeholder(tf.float32, [])
    with tf.Session() as sess:
        call = sess.make_callable(x - y, [y, x], accept_options=True)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=FULL)
        assert call(1.0, 3.0, options=options, run_metadata=metadata) == 2.0
        assert metadata.step_stats.dev_stats
        with pytest.raises(TypeError):
            sess.make_callable(x - y, [y, x])(1.0, 3.0, options=options)
        with pytest.raises(ValueError, match="twice"):
            sess.make_callable(x, [x, x])
