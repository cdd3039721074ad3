"""``session.explain``: the units of a step, their tiers, and why."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, session

X = np.ones((4, 3), np.float32)


def model():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", initializer=np.zeros((3, 2), np.float32))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w, name="product") - 1.0), name="loss")
    return x, tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss


def test_a_step_that_was_not_run_is_not_run():
    x, train, loss = model()
    with tf.Session() as sess:
        found = sess.explain([train, loss], [x])
        [unit] = found
        assert found.runs == 0 and unit.tier == "not run" and not unit.signatures
        assert {"product", "loss"} <= set(unit.operations)
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(loss, {x: X})  # nothing was run for the explanation


@pytest.mark.parametrize(
    "level,tier,why",
    [(COMPILED, "compiled", "compiles whatever"), (INTERPRETED, "interpreted", "compiles nothing")],
)
def test_a_session_that_forces_a_tier_says_so(level, tier, why):
    x, train, _ = model()
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        for rows in (4, 4, 6):
            sess.run(train, {x: np.ones((rows, 3))})
        found = sess.explain(train, {x: X})
        [unit] = found
        assert found.runs == 3 and unit.tier == tier and why in unit.why
        assert unit.state_bytes == 3 * 2 * 4 and unit.device == "CPU:0"
        if level == COMPILED:
            assert [one.shapes for one in unit.signatures] == [((4, 3),), ((6, 3),)]


def test_times_and_costs_decide_otherwise():
    x, train, _ = model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(train, {x: X})
        [unit] = sess.explain(train, [x])
        [one] = unit.signatures
        assert unit.tier == "interpreted" and ("µs" in unit.why or "ms" in unit.why)
        assert 1 <= one.interpreted.runs <= 5 and one.compiled is None
        assert 0 < one.interpreted.fastest <= one.interpreted.seconds


def test_what_only_reads_is_never_compiled():
    v = tf.get_variable("v", initializer=X)
    read = tf.identity(v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        found = [sess.run(read) for _ in range(3)]
        np.testing.assert_array_equal(found, [X] * 3)
        [unit] = sess.explain(read)
        assert unit.tier == "interpreted" and "computes nothing" in unit.why


def test_a_step_that_became_hot_is_compiled_and_timed():
    x = tf.placeholder(tf.float32, [None, 400])
    v = tf.get_variable("v", [400, 400], initializer=tf.zeros_initializer())
    y = x
    for _ in range(4):
        y = tf.tanh(tf.matmul(y, v))
    big = np.ones((400, 400), np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(400):
            sess.run(y, {x: big})
            await_compilations()
            [unit] = sess.explain(y, [x])
            if unit.tier == "compiled" or "slower" in unit.why:
                break
        assert unit.signatures[0].interpreted.runs >= 1
        if unit.tier == "compiled":
            assert "more than compiling" in unit.why and unit.signatures[0].memory > 0


def test_what_runs_on_the_host_cuts_the_step():
    x, _, loss = model()
    doubled = tf.py_func(lambda value: value * 2, [loss], tf.float32, name="python")
    queue = tf.FIFOQueue(3, [tf.float32], [[]], name="queue")
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(queue.enqueue(doubled + 1.0), {x: X})
        found = sess.explain(queue.enqueue(doubled + 1.0, name="put"), [x])
    kinds = [(unit.kind, unit.tier) for unit in found]
    assert ("host segment", "interpreted") in kinds and ("operation", "interpreted") in kinds
    whys = " ".join(unit.why for unit in found)
    assert "'python' (PyFunc) runs on the host" in whys and "may have to wait" in whys


def test_a_region_shows_what_is_compiled_inside():
    queue = tf.FIFOQueue(9, [tf.float32], [[3, 3]])
    put = queue.enqueue(tf.ones([3, 3]))

    def step(i, total):
        return i + 1, tf.tanh(tf.matmul(total, queue.dequeue()) + 1.0)

    _, result = tf.while_loop(lambda i, _: i < 2, step, [0, tf.ones([3, 3])])
    with session(COMPILED) as sess:
        for _ in range(2):
            sess.run(put)
        sess.run(result)
        found = sess.explain(result)
    [region] = [unit for unit in found if unit.kind == "region"]
    assert region.tier == "dynamic" and region.stretches
    assert any(stretch.tier == "compiled" for stretch in region.stretches)


def test_the_program_is_shown_when_it_is_asked_for(tmp_path):
    x, train, _ = model()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: X})
        before = sess.run("w:0")
        assert sess.explain(train, [x]).units[0].signatures[0].hlo is None
        found = sess.explain(train, [x], hlo=True)
        assert "stablehlo.dot_general" in found.units[0].signatures[0].hlo
        assert "stablehlo.dot_general" in str(found)
        found.save(tmp_path / "step.html")
        np.testing.assert_array_equal(sess.run("w:0"), before)
        sess.run(train, {x: X})
    page = (tmp_path / "step.html").read_text()
    assert "stablehlo.dot_general" in page and "product" in page and "<table" in page
    assert found.counts["compiled"] + found.counts.get("loaded", 0) >= 1
    assert found.counts["peak memory"] > 1e6


def test_every_compiled_run_is_counted_and_some_are_timed():
    x, train, loss = model()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        call = sess.make_callable([train, loss], [x])
        for _ in range(100):
            call(X)
        [one] = sess.explain([train, loss], [x]).units[0].signatures
        assert one.compiled.runs == 100 and 0 < one.compiled.timed < 20
        assert 0 < one.compiled.fastest <= one.compiled.seconds
        text = str(sess.explain([train, loss], [x]))
        assert "100 runs of" in text and f"{one.compiled.timed} timed" in text


def test_the_optimized_program_is_what_xla_runs():
    x, train, _ = model()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: X})
        [unit] = sess.explain(train, [x], hlo="optimized")
        program = unit.signatures[0].hlo
        assert program.startswith("HloModule") and "is_scheduled=true" in program
        with pytest.raises(ValueError, match="'optimized'"):
            sess.explain(train, [x], hlo="fast")


class _Told:
    platform, local_hardware_id = "cuda", 1

    def __init__(self, stats):
        self.memory_stats = lambda: stats


def test_devices_that_tell_their_peak_of_memory_are_counted(monkeypatch):
    import jax

    devices = [_Told({"peak_bytes_in_use": 3 << 20}), _Told(None)]
    x, train, _ = model()
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: X})
        monkeypatch.setattr(jax, "local_devices", lambda: devices)
        found = sess.explain(train, [x])
    assert found.counts["peak memory of GPU:1"] == 3 << 20
    assert "peak memory of GPU:1: 3 MiB" in str(found)


def test_a_closed_session_explains_nothing():
    x, train, _ = model()
    sess = tf.Session()
    sess.close()
    with pytest.raises(RuntimeError, match="closed"):
        sess.explain(train, [x])


def test_sparse_tensors_are_named_as_feeds():
    sparse, scale = tf.sparse_placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [])
    total = tf.sparse_reduce_sum(sparse * scale)
    value = tf.SparseTensorValue([[0, 1], [1, 2]], [2.0, 3.0], [2, 3])
    with tf.Session() as sess:
        assert sess.run(total, {sparse: value, scale: 2.0}) == 10.0
        assert sess.explain(total, [sparse, scale]).runs == 1
        assert sess.explain(total, {(sparse, scale): None}).runs == 1
