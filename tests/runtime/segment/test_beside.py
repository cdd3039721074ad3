"""Compiling beside steps: they go on interpreted, and the compiled form takes over when ready.

A test holds compilations back by an event, so nothing here depends on how long anything takes.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from concurrent.futures import Future

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import bound_executable, compiler
from runnel.runtime.segment import beside, compile_cost, tier_choice, tier_trial, tiers, variants
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, await_compilations, session

SECONDS = 60


class Held:
    """Compilations that begin when a test lets them."""

    def __init__(self, monkeypatch):
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.calls = 0
        compile_segment = compiler.compile_segment

        def held(*arguments):
            self.begun.release()
            assert self.may_end.wait(SECONDS)
            return compile_segment(*arguments)

        monkeypatch.setattr(compiler, "compile_segment", held)
        call = bound_executable.BoundExecutable.start

        def counted(*arguments):
            self.calls += 1
            return call(*arguments)

        monkeypatch.setattr(bound_executable.BoundExecutable, "start", counted)


@pytest.fixture
def held(monkeypatch):
    held = Held(monkeypatch)
    yield held
    held.may_end.set()


@pytest.fixture(autouse=True)
def everything_is_hot(monkeypatch):
    """A segment is compiled from its second run on."""
    monkeypatch.setattr(tier_choice, "_SHARE", 0.0)
    monkeypatch.setattr(compile_cost, "_IMPORT_SECONDS", 0.0)
    monkeypatch.setattr(tier_choice, "_STALL_SECONDS", 0.0)
    monkeypatch.setattr(tier_choice, "_DISPATCH_SECONDS", 0.0)
    monkeypatch.setattr(tier_choice, "_DISPATCH_SECONDS_PER_ARRAY", 0.0)
    # And stays compiled: which tier is faster for such small steps is another matter.
    monkeypatch.setattr(tier_trial, "SLOWER", float("inf"))


def training():
    """A step that reads, draws, checks and updates."""
    x = tf.placeholder(tf.float32, [4, 3])
    rows = tf.placeholder(tf.int32, [2])
    w = tf.Variable(tf.ones([3, 3]))
    noise = tf.random_normal([4, 3], seed=7)
    y = tf.tanh(tf.matmul(x + 0.1 * noise, w))
    loss = tf.reduce_sum(tf.gather(y, rows))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    return x, rows, w, [train, loss, noise]


def feeds(x, rows, number=0):
    generator = np.random.default_rng(number)
    return {x: generator.random((4, 3), np.float32), rows: generator.integers(0, 4, 2)}


def test_steps_go_on_interpreted_until_the_compiled_form_takes_over(held):
    x, rows, w, fetches = training()

    def run(sess, steps, then=lambda number: None):
        sess.run(tf.global_variables_initializer())
        found = []
        for number in range(steps):
            found.append(sess.run(fetches, feeds(x, rows, number)))
            then(number)
        return found, sess.run(w)

    def after(number):
        if number == 9:
            assert held.begun.acquire(timeout=SECONDS)
            assert held.calls == 0
            held.may_end.set()
            await_compilations()

    with tf.Session() as sess:
        mixed = run(sess, 20, after)
        assert held.calls == 10
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            assert_same(mixed, run(sess, 20), 1e-4, 1e-5)


def test_a_check_that_fails_changes_nothing_before_or_after_the_takeover(held):
    x, rows, w, fetches = training()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            for number in range(3):
                sess.run(fetches, feeds(x, rows, number))
            before = sess.run(w)
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                sess.run(fetches, {**feeds(x, rows), rows: [0, 4]})
            assert caught.value.op.type == "GatherV2"
            np.testing.assert_array_equal(sess.run(w), before)
            held.may_end.set()
            await_compilations()
        assert held.calls


def test_several_threads_update_a_variable_while_it_is_compiled_and_nothing_is_lost(held):
    v = tf.Variable(tf.zeros([8]))
    update = v.assign_add(tf.ones([8])).op
    with tf.Session() as sess:
        sess.run(v.initializer)

        def work():
            for _ in range(200):
                sess.run(update)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert held.begun.acquire(timeout=SECONDS)
        held.may_end.set()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(sess.run(v), np.full(8, 800.0))


def test_one_run_that_was_held_up_makes_no_segment_hot(monkeypatch):
    monkeypatch.undo()
    variant = variants.Variant((), ())
    x = tf.placeholder(tf.float32, [3])
    y = tf.sin(x)
    with tf.Session() as sess:
        sess.run(y, {x: np.zeros(3)})
        (runner,) = next(iter(sess._prepared.values())).plan.schedule.runners
        for _ in range(10):
            variant.interpreted.note(1e-5)
        variant.interpreted.note(tier_choice._STALL_SECONDS)
        assert not runner.choice.pays(variant)
        for _ in range(10):
            variant.interpreted.note(tier_choice._STALL_SECONDS)
        assert runner.choice.pays(variant)


def test_two_segments_are_compiled_at_the_same_time(held):
    steps = []
    for size in (3, 4, 5):
        x = tf.placeholder(tf.float32, [size])
        steps.append((tf.sin(x) * 2.0, {x: np.ones(size, np.float32)}))
    with tf.Session() as sess:
        for _ in range(4):
            for y, fed in steps:
                sess.run(y, fed)
        # Both have begun, and neither can end; a third has to wait for its turn.
        assert held.begun.acquire(timeout=SECONDS) and held.begun.acquire(timeout=SECONDS)
        assert not held.begun.acquire(blocking=False)
        held.may_end.set()
        await_compilations()
        sess.run(*steps[2])
        assert held.begun.acquire(timeout=SECONDS)
        await_compilations()
        for y, fed in steps:
            np.testing.assert_allclose(sess.run(y, fed), 2 * np.sin(next(iter(fed.values()))))
        assert held.calls == 3


def test_a_session_is_closed_while_its_step_is_compiled(held):
    x, rows, _, fetches = training()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for number in range(3):
            sess.run(fetches, feeds(x, rows, number))
        assert held.begun.acquire(timeout=SECONDS)
    with pytest.raises(RuntimeError):
        sess.run(fetches, feeds(x, rows))
    held.may_end.set()
    await_compilations()


def test_a_compilation_that_fails_leaves_the_step_interpreted_and_is_mentioned(monkeypatch, caplog):
    def fail(*_):
        raise ValueError("no such instruction")

    monkeypatch.setattr(compiler, "compile_segment", fail)
    x = tf.placeholder(tf.float32, [3])
    y = tf.sin(x) + 1.0
    with tf.Session() as sess, caplog.at_level(logging.WARNING, logger="runnel"):
        for _ in range(5):
            found = sess.run(y, {x: np.zeros(3, np.float32)})
            await_compilations()
            np.testing.assert_array_equal(found, np.ones(3))
    (record,) = caplog.records
    assert "stays interpreted" in record.getMessage()
    assert "no such instruction" in record.getMessage()


def test_a_compiled_form_that_is_slower_is_dropped_and_tried_again_much_later(
    monkeypatch, caplog, held
):
    monkeypatch.setattr(tier_trial, "SLOWER", 0.0)
    monkeypatch.setattr(tier_choice, "_SHARE", 1e-9)
    monkeypatch.setattr(tier_choice, "_PATIENCE", 1e12)  # so a second time would come after minutes
    held.may_end.set()
    x, rows, w, fetches = training()
    with tf.Session() as sess, caplog.at_level(logging.INFO, logger="runnel"):
        sess.run(tf.global_variables_initializer())
        for number in range(60):
            sess.run(fetches, feeds(x, rows, number))
            await_compilations()
        found = sess.run(w)
        assert held.calls == tier_trial.RUNS + 1
        assert len([r for r in caplog.records if "slower" in r.getMessage()]) == 1
        [unit] = sess.explain(fetches, feeds(x, rows))
        assert unit.tier == "interpreted" and "compiled it was slower" in unit.why
        monkeypatch.setattr(compile_cost.CompileCost, "seconds", lambda self, nodes: 1e-12)
        for number in range(60):
            sess.run(fetches, feeds(x, rows, number))
            await_compilations()
        assert held.calls == 2 * (tier_trial.RUNS + 1)
    with session(INTERPRETED) as sess:
        sess.run(tf.global_variables_initializer())
        for number in range(60):
            sess.run(fetches, feeds(x, rows, number))
        np.testing.assert_allclose(sess.run(w), found, rtol=1e-4)


def test_a_step_that_must_be_compiled_says_that_it_waits(monkeypatch, caplog):
    monkeypatch.setattr(tiers, "_NOTICE_SECONDS", 0.0)
    noticed = threading.Event()
    compile_segment = compiler.compile_segment

    def late(*arguments):
        assert noticed.wait(SECONDS)
        return compile_segment(*arguments)

    class Notice(logging.Handler):
        def emit(self, record):
            if "waits until" in record.getMessage():
                noticed.set()

    monkeypatch.setattr(compiler, "compile_segment", late)
    logger, notice = logging.getLogger("runnel"), Notice()
    logger.addHandler(notice)
    x = tf.placeholder(tf.float32, [3])
    try:
        with session(COMPILED) as sess, caplog.at_level(logging.INFO, logger="runnel"):
            sess.run(tf.sin(x, name="wave") + 1.0, {x: np.zeros(3)})
    finally:
        logger.removeHandler(notice)
    waits, waited = [r.getMessage() for r in caplog.records if r.name == "runnel"]
    assert "'wave'" in waits and "'wave'" in waited and " s" in waited


def test_threads_take_short_turns_only_while_something_is_compiled():
    usual = sys.getswitchinterval()
    ends: list[threading.Event] = [threading.Event(), threading.Event()]
    begun: list[Future[None] | None] = [
        beside.begin_beside(lambda end=end: end.wait(SECONDS)) for end in ends
    ]
    try:
        assert sys.getswitchinterval() < usual
        assert beside.begin_beside(lambda: None) is None
    finally:
        for end, future in zip(ends, begun, strict=True):
            assert future is not None
            end.set()
            future.result(SECONDS)
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("times", [0.1, 10.0])
def test_the_expected_cost_approaches_what_compilations_have_taken(times):
    cost = compile_cost.CompileCost()
    per_node = times * cost.seconds(1000) / 1000
    for _ in range(100):
        cost.learn(1000, 1000 * per_node)
    assert cost.seconds(1000) == pytest.approx(1000 * per_node, rel=0.1)


def test_what_comes_before_the_first_compilation_costs_something(monkeypatch):
    cost = compile_cost.CompileCost()
    monkeypatch.setattr(compile_cost, "_IMPORT_SECONDS", 1.0)
    monkeypatch.delitem(sys.modules, "jax")
    usual = cost.seconds_to_begin()
    cost.guess(1000, 1e-3)
    assert 0 < cost.seconds_to_begin() < usual
    monkeypatch.undo()
    assert cost.seconds_to_begin() == 0


def test_a_machine_that_lowers_fast_is_expected_to_compile_fast_until_it_has():
    usual, fast, slow = (compile_cost.CompileCost() for _ in range(3))
    fast.guess(1000, 1e-3)
    slow.guess(1000, 1e-1)
    assert fast.seconds(100) < usual.seconds(100) < slow.seconds(100)
    fast.guess(3, 1.0)  # too few to tell anything
    assert fast.seconds(100) < usual.seconds(100)
    fast.learn(1000, 100.0)
    expected = fast.seconds(100)
    fast.guess(1000, 1e-3)
    assert fast.seconds(100) == expected > usual.seconds(100)


@pytest.mark.parametrize("type_, at_once", [(tf.float32, False), (tf.bfloat16, True)])
def test_a_convolution_is_compiled_at_once_only_where_numpy_is_slow(held, type_, at_once):
    x = tf.placeholder(tf.float32, [1, 5, 5, 2])
    y = tf.nn.conv2d(tf.cast(x, type_), tf.ones([3, 3, 2, 4], type_), 1, "VALID")
    y = tf.cast(y, tf.float32)
    if at_once:
        held.may_end.set()
    with tf.Session() as sess:
        found = sess.run(y, {x: np.ones([1, 5, 5, 2])})
        assert held.calls == at_once
    np.testing.assert_array_equal(found, np.full([1, 3, 3, 4], 18.0))


def test_a_process_ends_with_its_status_while_a_step_is_compiled_beside_it():
    script = """
import sys, threading
import numpy as np
import runnel as tf
from runnel.runtime.segment import tier_choice
tier_choice._SHARE = tier_choice._STALL_SECONDS = 0.0
from runnel.runtime.compile import compiler
begun = threading.Event()
compile_segment = compiler.compile_segment
def told(*arguments):
    begun.set()
    return compile_segment(*arguments)
compiler.compile_segment = told
x = tf.placeholder(tf.float32, [64, 64])
y = x
for i in range(100):
    y = tf.sin(tf.matmul(y, x) + i)
sess = tf.Session()
for _ in range(3):
    sess.run(y, {x: np.ones([64, 64])})
assert begun.wait(60)
sys.exit(3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert not ended.stderr.strip(), ended.stderr
