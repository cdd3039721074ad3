"""Steps with a deadline end in time also inside a kernel that takes very long."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel import step_time
from runnel.ops.strings.texts import each
from runnel.step_time import LeftBehind, current_look, limited_by

pytestmark = pytest.mark.timeout(120)
SOON = tf.RunOptions(timeout_in_ms=200)
SECONDS = 60


class Slow:
    """A function that returns when it may."""

    def __init__(self):
        self.begun, self.may_end, self.ended = (threading.Event() for _ in range(3))
        self.threads = []

    def __call__(self, value):
        self.threads.append(threading.get_ident())
        self.begun.set()
        assert self.may_end.wait(SECONDS)
        self.ended.set()
        return value

    def again(self):
        for event in (self.begun, self.may_end, self.ended):
            event.clear()


@pytest.fixture
def slow():
    made = Slow()
    yield made
    made.may_end.set()


def with_py_func(function, x):
    return tf.py_func(function, [x], tf.float32, name="slow")


def with_a_pure_py_func(function, x):
    return tf.py_func(function, [x], tf.float32, stateful=False, name="slow")


def with_py_function(function, x):
    return tf.py_function(lambda t: function(t.numpy()), [x], tf.float32, name="slow")


@pytest.mark.parametrize("level", [-1, 0, 1])
@pytest.mark.parametrize("call", [with_py_func, with_a_pure_py_func, with_py_function])
def test_a_python_function_does_not_hold_up_a_step_with_a_deadline(call, level, slow):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    update = v.assign_add(tf.reshape(call(slow, x), [])).op  # the line that the error names
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Session(config=config) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError, match="ran out of time") as error:
            sess.run(update, {x: 5.0}, options=SOON)
        assert slow.begun.is_set() and not slow.ended.is_set()
        assert error.value.op.type == "PyFunc" + ("Stateless" * (call is with_a_pure_py_func))
        assert "test_long_kernels.py" in str(error.value)
        slow.may_end.set()
        assert slow.ended.wait(SECONDS)  # what it does still happens; what it returns is dropped
        assert sess.run(v) == 1.0
        sess.run(update, {x: 3.0}, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
        assert sess.run(v) == 4.0


def test_without_a_deadline_the_thread_of_the_step_calls_functions(slow):
    slow.may_end.set()
    y = with_py_func(slow, tf.constant(2.0))
    with tf.Session() as sess:
        assert sess.run(y) == 2.0
        sess.run(y, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
    own = threading.get_ident()
    assert [thread == own for thread in slow.threads] == [True, False]


def test_an_error_of_a_function_that_another_thread_calls_is_that_of_the_step():
    def bad(value):
        raise TimeoutError("mine")

    y = tf.py_func(bad, [1.0], tf.float32)
    with tf.Session() as sess, pytest.raises(tf.errors.UnknownError, match="mine") as error:
        sess.run(y, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
    assert error.value.op is y.op


def test_closing_a_session_does_not_wait_for_a_function_that_a_step_has_left(slow):
    y = with_py_func(slow, tf.constant(2.0))
    sess = tf.Session()
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(y, options=SOON)
    sess.close()
    assert not slow.ended.is_set()


# Strings ----------------------------------------------------------------------------------------


def one_after_another(look, count):
    """How many of ``count`` strings are gone over before ``look`` raises an error."""
    seen = []
    with limited_by(look), pytest.raises(tf.errors.CancelledError):
        each(seen.append, np.full([count], b"x", object))
    return len(seen)


def test_a_step_is_stopped_between_two_strings():
    looks = iter(range(3))

    def look():
        if next(looks, None) is None:
            raise tf.errors.CancelledError(None, None, "stop")

    assert one_after_another(look, 10) == 3
    assert current_look() is None


TEXT = "ab" * 5000


@pytest.mark.parametrize(
    "function",
    [
        lambda texts: tf.strings.regex_replace(texts, "a(b)", r"\1"),
        lambda texts: tf.strings.regex_full_match(texts, "(a|b|ab)*c"),
        lambda texts: tf.string_split(texts, "b").values,
        lambda texts: tf.strings.unicode_decode(texts, "UTF-8").flat_values,
        lambda texts: tf.strings.upper(texts),
    ],
    ids=["replace", "match", "split", "decode", "upper"],
)
def test_an_operation_on_very_many_strings_is_stopped(function):
    count = tf.placeholder(tf.int32, [])
    result = function(tf.fill([count], TEXT))
    with tf.Session() as sess:
        before = sess.run(result, {count: 2})
        with pytest.raises(tf.errors.DeadlineExceededError) as error:
            sess.run(result, {count: 3_000_000}, options=tf.RunOptions(timeout_in_ms=400))
        assert error.value.op is not None
        after = sess.run(result, {count: 2}, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
        np.testing.assert_array_equal(after, before)


# Kernels ----------------------------------------------------------------------------------------


def until_it_has_to_stop():
    """Returns when the step has to stop, without a word."""
    look = current_look()
    assert look is not None
    pause = threading.Event()
    while True:
        pause.wait(0.01)
        try:
            look()
        except tf.errors.DeadlineExceededError:
            return


def test_a_step_whose_last_operation_took_too_long_has_failed():
    op_def = tf.register_op(
        "EndsTooLate", inputs="x: T", outputs="y: T", attrs="T: {float}", host=True
    )

    @op_def.shape
    def _(x):
        return x.dims

    @op_def.kernel
    def _(xp, x):
        until_it_has_to_stop()
        return x

    v = tf.Variable(1.0)
    late = op_def(tf.constant(2.0))
    update = v.assign(late).op
    with tf.Session() as sess:
        sess.run(v.initializer)
        for fetch in (late, update):
            with pytest.raises(tf.errors.DeadlineExceededError) as error:
                sess.run(fetch, options=SOON)
            assert error.value.op is not None
        assert sess.run(v) == 1.0


def test_a_kernel_that_looks_is_stopped():
    op_def = tf.register_op(
        "LooksItself", inputs="x: T", outputs="y: T", attrs="T: {float}", host=True
    )

    @op_def.shape
    def _(x):
        return x.dims

    @op_def.kernel
    def _(xp, x):
        look = current_look()
        pause = threading.Event()
        while look is not None:
            look()
            pause.wait(0.01)
        return x

    y = op_def(tf.constant(2.0))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError, match="ran out of time") as error:
            sess.run(y, options=SOON)
        assert error.value.op is y.op
        assert sess.run(y) == 2.0  # without a deadline there is nothing to look at


# Calls that are left behind ---------------------------------------------------------------------


class Stop(Exception):
    """The step has to stop."""


def stop():
    raise Stop


def test_a_call_is_left_behind_and_its_result_waits_for_the_next(slow):
    calls = LeftBehind()
    for _ in range(3):
        with pytest.raises(Stop):
            calls.result(slow, 7, look=stop)
    slow.may_end.set()
    assert calls.result(slow, 8, look=lambda: None) == 7
    assert len(slow.threads) == 1 and calls.left is None
    assert calls.result(slow, 9) == 9
    assert slow.threads[1] == threading.get_ident()


def test_so_does_its_error():
    calls = LeftBehind()
    calls.give(None, ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        calls.result(stop)
    calls.give(3)
    assert calls.result(stop) == 3 and calls.left is None


@pytest.mark.parametrize("begins", [False, True])
def test_a_call_is_made_once_though_an_interrupt_comes_while_a_thread_is_found(monkeypatch, begins):
    run, interrupts = step_time._threads.run, [KeyboardInterrupt]

    def interrupted(function):
        if not interrupts or begins:
            run(function)
        if interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(step_time._threads, "run", interrupted)
    made = []
    calls = LeftBehind()
    with pytest.raises(KeyboardInterrupt):
        calls.result(made.append, 1, look=lambda: None)
    calls.result(made.append, 2, look=lambda: None)
    assert made == [1]
