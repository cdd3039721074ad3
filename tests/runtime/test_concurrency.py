"""Steps from several threads, steps inside steps, interrupted steps: state stays whole."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import bound_executable, compiler
from runnel.runtime.compile.bound_executable import _transferred
from runnel.runtime.state.cell import WriterLocks
from runnel.runtime.state.step_context import StepContext
from tests.both_tiers import COMPILED, INTERPRETED, session

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


def in_threads(*functions: Callable[[], Any]) -> None:
    """Runs the functions at once; the first exception of any of them is raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def guarded(function: Callable[[], Any]) -> None:
        try:
            start.wait(30)
            function()
        except BaseException as error:  # noqa: BLE001 (raised below)
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a step never ended"
    if failures:
        raise failures[0]


def aligned(size: int) -> np.ndarray:
    """An array that begins at a multiple of 64 bytes: one that JAX uses without a copy."""
    raw = np.zeros(size * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * 4].view(np.float32)


def test_a_compiled_step_waits_for_one_that_is_in_the_middle_of_writing() -> None:
    v, other = tf.Variable(1.0), tf.Variable(1.0)
    double, triple = v.assign(v * 2.0).op, other.assign(other * 3.0).op
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        store = sess._task
        locks = WriterLocks([store.cell(v.op)], store.writing)
        release = locks.acquire(StepContext(sess._steps), None)
        waiting = threading.Thread(target=sess.run, args=(double,), daemon=True)
        waiting.start()
        in_threads(lambda: sess.run(triple))  # which nobody else is writing
        waiting.join(0.1)
        assert waiting.is_alive()
        assert sess.run([v, other]) == [1.0, 3.0]
        deque(release, 0)
        waiting.join(30)
        assert sess.run(v) == 2.0
        assert not store.writing


def test_no_update_is_lost_between_the_tiers() -> None:
    v = tf.Variable(tf.zeros([300, 300]))
    image = tf.ones([1, 300, 300, 1])
    one = tf.nn.conv2d(image, tf.ones([1, 1, 1, 1]), 1, "SAME")  # which is compiled at once
    steps = [v.assign_add(tf.ones([300, 300])).op, v.assign_add(tf.reshape(one, [300, 300])).op]
    with tf.Session() as sess:
        sess.run(v.initializer)
        in_threads(*[lambda step=step: [sess.run(step) for _ in range(200)] for step in steps])
        np.testing.assert_array_equal(sess.run(v), np.full([300, 300], 400.0))


def test_a_failed_step_leaves_nothing_for_another_to_build_on() -> None:
    x = tf.placeholder(tf.float32, [300, 300])
    slow = x
    for _ in range(20):
        slow = tf.matmul(slow, x)
    v = tf.Variable(0.0)
    fail = v.assign(tf.check_numerics(tf.reduce_sum(slow), "not a number")).op
    add = v.assign_add(1.0).op
    bad = np.full([300, 300], np.nan, np.float32)
    with session(COMPILED) as sess:
        cell = sess._task.cell(v.op)

        def attempt() -> None:
            sess.run(v.initializer)
            initial, failed = cell.value, threading.Event()

            def failing() -> None:
                try:
                    with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
                        sess.run(fail, {x: bad})
                finally:
                    failed.set()

            def adding() -> None:
                while cell.value is initial:  # the other step is about to store there
                    if failed.is_set():
                        break
                sess.run(add)

            in_threads(failing, adding)
            assert sess.run(v) == 1.0

        for _ in range(5):
            attempt()


def test_a_feed_is_the_callers_again_when_another_device_has_failed() -> None:
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [160_000])
        matrix = tf.reshape(x, [400, 400])
        v = tf.Variable(tf.zeros([400, 400]))
        slow = matrix
        for _ in range(30):
            slow = tf.matmul(slow, matrix)
        update = v.assign(slow).op

    def fails(value: Any) -> Any:
        raise ValueError("on purpose")

    with tf.device("/cpu:1"):
        failing = tf.py_func(fails, [tf.constant(1.0)], tf.float32)
    config = tf.ConfigProto(device_count={"CPU": 2})
    config.graph_options.optimizer_options.global_jit_level = COMPILED
    with tf.Session(config=config) as sess:
        sess.run(v.initializer)
        feed = aligned(160_000)
        for _ in range(3):
            feed[:] = np.eye(400, dtype=np.float32).reshape(-1)
            with pytest.raises(tf.errors.OpError, match="on purpose"):
                sess.run([update, failing], {x: feed})
            feed[:] = 5.0
            assert sess.run(v).max() <= 1.0


def test_an_interrupt_in_the_first_call_of_an_executable(monkeypatch) -> None:
    """JAX prepares that call in Python code, in which an interrupt may come at any moment."""
    compile_segment = compiler.compile_segment

    def interrupted(*arguments: Any) -> Any:
        executable = compile_segment(*arguments)
        jitted = executable.call

        def call(*operands: Any) -> Any:
            results = jitted(*operands)
            _thread.interrupt_main()  # the old value is gone, the new one not stored yet
            return results

        executable.call = call
        return executable

    # A process that a shell started in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    v = tf.Variable(1.0)
    add = v.assign_add(1.0).op
    try:
        with session(COMPILED) as sess:
            sess.run(v.initializer)
            with monkeypatch.context() as patch:
                patch.setattr(compiler, "compile_segment", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    sess.run(add)
            assert sess.run(v) == 2.0
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_feed_of_64_bits_keeps_them_on_its_way_to_an_accelerator() -> None:
    arrays = _transferred([np.zeros(3), np.array([2**40])], None)
    assert [array.dtype for array in arrays] == [np.float64, np.int64]
    assert int(arrays[1][0]) == 2**40


@TIERS
def test_readers_and_writers_of_the_same_variables(level):
    """Buffers that are updated in place are taken from nobody who still needs them."""
    v = tf.Variable(tf.zeros([1 << 12]))
    x = tf.placeholder(tf.float32, [])
    bump = v.assign_add(tf.fill([1 << 12], x)).op
    total = tf.reduce_sum(v)
    with session(level) as sess:
        sess.run(v.initializer)

        def write():
            for _ in range(60):
                sess.run(bump, {x: 1.0})

        def read():
            for _ in range(60):
                value = sess.run(v)
                assert (value == value[0]).all()

        def compute():
            for _ in range(60):
                assert sess.run(total) % (1 << 12) == 0

        in_threads(write, write, read, compute)
        assert (sess.run(v) == 120).all()


def test_a_plan_is_prepared_once_however_many_threads_ask(monkeypatch):
    from runnel.runtime.session import backend

    made = []

    class Counted(backend.StepPlan):
        def __init__(self, *args):
            made.append(args[0])
            super().__init__(*args)

    monkeypatch.setattr(backend, "StepPlan", Counted)
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    x, y = a + b, a - b
    with tf.Session() as sess:

        def work():
            for _ in range(20):
                assert sess.run([x, y], {a: 3.0, b: 1.0}) == [4.0, 2.0]
                # The order of fetches and feeds makes no difference.
                assert sess.run((y, x), {b: 1.0, a: 3.0}) == (2.0, 4.0)

        in_threads(*[work] * 8)
    assert len(made) == 1


@TIERS
def test_many_shapes_at_once(level):
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(x * 2.0)
    with session(level) as sess:

        def work(first):
            for size in range(first, first + 12):
                assert sess.run(y, {x: np.ones(size)}) == 2 * size

        in_threads(*[lambda first=first: work(first) for first in (1, 5, 9)])


@TIERS
def test_a_variable_that_changes_its_shape_under_its_readers(level):
    v = tf.Variable(tf.zeros([1]), validate_shape=False)
    x = tf.placeholder(tf.float32, [None])
    resize = tf.assign(v, x, validate_shape=False).op
    size = tf.reduce_sum(tf.exp(v))
    with session(level) as sess:
        sess.run(v.initializer)

        def write():
            for i in range(60):
                sess.run(resize, {x: np.zeros(1 + i % 3)})

        def read():
            for _ in range(60):
                assert sess.run(size) in (1.0, 2.0, 3.0)

        in_threads(write, read, read)


@TIERS
def test_closing_a_session_while_steps_run(level):
    v = tf.Variable(tf.zeros([10]))
    x = tf.placeholder(tf.float32, [])
    # Two segments: the second finds that the variable is gone.
    step = v.assign_add(tf.fill([10], tf.py_func(lambda a: a, [tf.reduce_sum(v) * x], tf.float32)))
    sess = session(level)
    sess.run(v.initializer)
    sess.run(step, {x: 0.0})
    started = threading.Barrier(4)

    def work():
        started.wait(30)
        with pytest.raises((RuntimeError, tf.errors.CancelledError), match="closed"):
            while True:
                sess.run(step, {x: 0.0})

    def close():
        started.wait(30)
        sess.close()

    in_threads(work, work, work, close)


@TIERS
def test_an_array_may_be_reused_as_soon_as_run_returns(level):
    """Also when nothing is fetched, so that nothing else waits for the step to end."""
    size = 1 << 20
    v = tf.Variable(tf.zeros([size]))
    x = tf.placeholder(tf.float32, [size])
    y = x
    for _ in range(6):
        y = tf.sin(y) + x
    step = v.assign_add(y).op
    put = v.assign(x).op
    with session(level) as sess:
        for batch in (aligned(size), np.zeros(size + 3, np.float32)[3:]):
            sess.run(v.initializer)
            for _ in range(3):
                batch[:] = 1.0
                sess.run(step, {x: batch})
                batch[:] = 1000.0
            value = 1.0
            for _ in range(6):
                value = np.sin(value) + 1.0
            np.testing.assert_allclose(sess.run(v), 3 * value, rtol=1e-5)
            batch[:] = 7.0
            sess.run(put, {x: batch})
            batch[:] = 8.0
            assert (sess.run(v) == 7.0).all()


@TIERS
def test_what_is_fetched_is_the_callers_own(level):
    """Views, identities and updates of the same memory come back as separate arrays."""
    v = tf.Variable(tf.zeros([4]))
    x = tf.placeholder(tf.float32, [4])
    doubled = x * 2.0
    put = v.assign(doubled)
    fetches = [doubled, tf.reshape(doubled, [2, 2]), tf.identity(doubled), put, doubled[1:], v]
    with session(level) as sess:
        sess.run(v.initializer)
        for _ in range(3):
            fed = np.ones(4, np.float32)
            values = sess.run([*fetches, x], {x: fed})
            for value in values:
                assert (value == value.flat[0]).all(), "another array's change shows here"
                value[...] = 99.0
            np.testing.assert_array_equal(sess.run(v), [2.0] * 4)
            np.testing.assert_array_equal(fed, [1.0] * 4)


@TIERS
def test_a_part_of_a_partial_run_does_not_share_what_it_returned(level):
    a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    y = a * 2.0
    z = y * b
    with session(level) as sess:
        handle = sess.partial_run_setup([y, z], [a, b])
        sess.partial_run(handle, y, {a: [1.0, 1.0]})[:] = 99.0
        np.testing.assert_array_equal(sess.partial_run(handle, z, {b: 1.0}), [2.0, 2.0])


@TIERS
def test_a_step_inside_a_step(level):
    v = tf.Variable(1.0)
    bump = v.assign_add(1.0)
    with session(level) as sess:

        def inner(value):
            return np.float32(value + sess.run(bump))

        before = v * 10.0
        nested = tf.py_func(inner, [before], tf.float32)
        with tf.control_dependencies([nested]):
            after = v.assign_add(100.0)
        sess.run(v.initializer)
        assert sess.run([before, nested, after]) == [10.0, 12.0, 102.0]
        assert sess.run(v) == 102.0


@TIERS
@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_a_python_function_releases_the_locks(level, raised):
    v = tf.Variable(0.0)
    x = tf.placeholder(tf.float32, [])

    def fails(value):
        if value < 0:
            raise raised("the function failed")
        return value

    # A string variable is updated in the segment in which the function runs.
    text = tf.Variable("before")
    step = tf.group(
        v.assign_add(tf.py_func(fails, [x], tf.float32)),
        text.assign(tf.py_func(lambda a: b"after", [x], tf.string)),
    )
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        expected = tf.errors.OpError if raised is ValueError else raised
        with pytest.raises(expected, match="the function failed"):
            sess.run(step, {x: -1.0})
        assert sess.run([v, text]) == [0.0, b"before"]
        in_threads(*[lambda: sess.run(step, {x: 1.0})] * 2)
        assert sess.run([v, text]) == [2.0, b"after"]


_INTERRUPTED = """
import random, signal, sys, threading, time
import jax
import numpy as np
import runnel as tf

level, checked = int(sys.argv[1]), sys.argv[2] == "checked"
config = tf.ConfigProto()
config.graph_options.optimizer_options.global_jit_level = level
a = tf.Variable(tf.zeros([300]))
b = tf.Variable(tf.zeros([300]))
x = tf.placeholder(tf.float32, [300])
one = tf.check_numerics(x, "x") if checked else x
step = tf.group(a.assign_add(one), b.assign(a - 0.0), b.assign_add(-2.0 * one))
sess = tf.Session(config=config)
sess.run(tf.global_variables_initializer())
fed = np.ones(300, np.float32)
sess.run(step, {x: fed})

armed = False
rng = random.Random(5)
def interrupt(*_):
    global armed
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0002, 0.002))
    if armed:
        armed = False  # one at a time, and only inside the try below
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
interrupt()

completed, interrupted = 1, 0
end = time.monotonic() + 1.0
while time.monotonic() < end:
    try:
        while True:
            armed = True  # again: some are lost in callbacks that ignore exceptions
            sess.run(step, {x: fed})
            completed += 1
            if completed % 50 == 0:
                sess.run(a)
    except KeyboardInterrupt:
        interrupted += 1
armed = False
signal.setitimer(signal.ITIMER_REAL, 0)

found = []
other = threading.Thread(target=lambda: found.extend(sess.run([a, b])), daemon=True)
other.start()
other.join(20)
assert not other.is_alive(), "a lock is still held"
a_value, b_value = found
assert interrupted > 20, interrupted
assert (a_value == a_value[0]).all() and (b_value == a_value - 2.0).all(), (a_value[0], b_value[0])
assert completed <= a_value[0] <= completed + interrupted, (completed, a_value[0], interrupted)
sess.run(step, {x: fed})
print("whole")
"""


def test_an_interrupt_that_jax_tells_of_by_an_error_of_its_own_is_one():
    """A signal that comes while JAX compares the keys of a cache."""

    class Key:
        def __eq__(self, other):
            raise KeyboardInterrupt

        __hash__ = object.__hash__

    def call(operand):
        try:
            return operand == 1
        except KeyboardInterrupt:
            raise ValueError(f"Cache keys should be comparable: {traceback.format_exc()}") from None

    with pytest.raises(KeyboardInterrupt):
        bound_executable._call_and_store(None, call, [], [], (Key(),))
    with pytest.raises(ValueError, match="of another kind"):
        bound_executable._call_and_store(None, _refuse, [], [], (1,))


def _refuse(operand):
    raise ValueError("of another kind")


@pytest.mark.parametrize("checked", ["checked", "unchecked", "sent ahead"])
@TIERS
def test_an_interrupt_at_any_moment_leaves_whole_state_and_no_lock(level, checked):
    """Ctrl-C in a training loop, hundreds of times: each step has happened or it has not."""
    if checked == "sent ahead" and level != COMPILED:
        pytest.skip("what is interpreted is not sent")
    ahead = {"RUNNEL_STEPS_AHEAD": "4"} if checked == "sent ahead" else {}
    checked = "unchecked" if checked == "unchecked" else "checked"
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_INTERRUPTED), str(level), checked],
        env={**os.environ, **ahead},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.stdout.strip() == "whole", result.stderr[-2000:]


@pytest.mark.parametrize("moment", ["on", "off"])
@pytest.mark.parametrize("level", [COMPILED])
def test_an_interrupt_while_jax_switches_its_types_leaves_them_as_they_were(
    level, moment, monkeypatch
):
    """JAX does that in Python code, where an interrupt may come before or after it has."""
    real = jax.enable_x64
    v = tf.Variable(1.0)
    add = v.assign_add(1.0).op

    class Interrupted:
        def __init__(self, value):
            self._inner = real(value)
            self._value = value

        def __enter__(self):
            self._inner.__enter__()
            if self._value and moment == "on":
                raise KeyboardInterrupt

        def __exit__(self, *error):
            if moment == "off":
                raise KeyboardInterrupt  # before it is switched off
            self._inner.__exit__(*error)

    def run() -> None:
        with session(level) as sess:
            sess.run(v.initializer)
            sess.run(add)
            with monkeypatch.context() as patch:
                patch.setattr(jax, "enable_x64", Interrupted)
                with pytest.raises(KeyboardInterrupt):
                    sess.run(add)
            found.append((jax.config.jax_enable_x64, float(sess.run(v))))

    found: list[Any] = []
    graph = tf.get_default_graph()
    thread = threading.Thread(target=lambda: graph_run(graph, run))
    thread.start()
    thread.join()
    assert found == [(False, 2.0 if moment == "on" else 3.0)]


def graph_run(graph: tf.Graph, function: Any) -> None:
    with graph.as_default():
        function()
