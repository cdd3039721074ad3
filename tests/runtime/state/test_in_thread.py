"""Calls by threads of their own: made once, whatever interrupts the main thread."""

from __future__ import annotations

import contextlib
import signal
import threading

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import buffers
from runnel.runtime.state import flat_pack
from runnel.runtime.state.in_thread import ThreadCall, in_thread, uninterrupted

pytestmark = pytest.mark.timeout(120)
SECONDS = 60


def interrupt_the_main_thread():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Interrupting:
    """A call of ``function`` in the middle of which Ctrl-C comes, the first time."""

    def __init__(self, function):
        self.function, self.calls, self.threads = function, 0, []

    def __call__(self, *arguments):
        self.calls += 1
        self.threads.append(threading.current_thread())
        if self.calls == 1:
            interrupt_the_main_thread()
        return self.function(*arguments)


def test_a_call_gives_what_its_function_returns_or_raises():
    assert in_thread(lambda: 3).result(SECONDS) == 3
    assert isinstance(in_thread(lambda: 1 // 0).exception(SECONDS), ZeroDivisionError)


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_call_is_made_once_though_its_thread_is_interrupted_as_it_starts(
    monkeypatch, begins, breaks
):
    start, interrupts = threading.Thread.start, [KeyboardInterrupt()]

    def interrupted(self):
        if not interrupts or begins:
            start(self)
        if not interrupts:
            return
        if not breaks:
            raise interrupts.pop()
        try:
            raise interrupts.pop()
        finally:  # as a lock does which the thread had to wait for
            raise RuntimeError("cannot release un-acquired lock")

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    made, told = [], []
    call = ThreadCall(lambda: made.append(1))
    call.result(told.append)
    assert made == [1] and [type(one) for one in told] == [KeyboardInterrupt]


def test_a_call_is_made_by_its_maker_where_no_thread_can_start(monkeypatch):
    def refused(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert in_thread(threading.get_ident).result(0) == threading.get_ident()


def test_an_interrupt_while_jax_traces_is_raised_when_it_has_traced():
    import jax

    traced = Interrupting(lambda x: x * 2)
    jitted = jax.jit(traced)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(jitted, np.float64(1.5))
    assert traced.threads[0] is not threading.main_thread()
    again = uninterrupted(jitted, np.float64(2.5))
    assert again.dtype == np.float64 and np.asarray(again) == 5.0 and traced.calls == 1


def test_a_second_interrupt_is_raised_at_once():
    may_end = threading.Event()

    def stuck():
        interrupt_the_main_thread()
        told.wait(SECONDS)
        interrupt_the_main_thread()
        may_end.wait(SECONDS)

    told = threading.Event()
    call_result = ThreadCall.result
    calls = []

    def result(self, interrupted):
        def telling(interrupt):
            told.set()
            interrupted(interrupt)

        calls.append(self)
        return call_result(self, telling)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ThreadCall, "result", result)
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(stuck)
    assert not calls[0].future.done()
    may_end.set()
    assert calls[0].future.result(SECONDS) is None


def test_another_thread_calls_itself():
    found = in_thread(lambda: uninterrupted(threading.current_thread)).result(SECONDS)
    assert found is not threading.main_thread()


def test_an_interrupt_while_a_pack_is_taken_apart_leaves_it_whole(monkeypatch):
    import jax.numpy as jnp

    parts_of = Interrupting(flat_pack.parts_of)
    monkeypatch.setattr(flat_pack, "parts_of", parts_of)
    pack = flat_pack.FlatPack([], ((2,), ()))
    pack.array = jnp.arange(3.0)
    with pytest.raises(KeyboardInterrupt):
        pack.part(0)
    assert [pack.part(0).tolist(), pack.part(1).tolist()] == [[0.0, 1.0], 2.0]
    pack.array = jnp.arange(3.0) + 1
    assert pack.part(1) == 3.0
    assert all(thread is not threading.main_thread() for thread in parts_of.threads)


def test_an_interrupt_while_buffers_are_compiled_leaves_jax_usable(monkeypatch):
    import jax

    from runnel.runtime.compile import executable_cache

    compiled = Interrupting(executable_cache.compiled)
    monkeypatch.setattr(executable_cache, "compiled", compiled)
    shape = jax.ShapeDtypeStruct((3, 41), np.float32)  # which nothing else asks for
    with pytest.raises(KeyboardInterrupt):
        buffers.new_buffers([shape], None)
    assert compiled.threads[0] is not threading.main_thread()
    (buffer,) = buffers.new_buffers([shape], None)
    assert buffer.shape == (3, 41)


def test_an_interrupt_while_the_first_step_is_compiled_leaves_the_session_usable(monkeypatch):
    """The step fails with it; what is compiled serves the next one."""
    from runnel.runtime.compile import compiler

    compile_segment = Interrupting(compiler.compile_segment)
    monkeypatch.setattr(compiler, "compile_segment", compile_segment)
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(tf.zeros([3]))
    update = v.assign_add(tf.sin(x)).op
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = 1
    ones = np.ones(3, np.float32)
    with tf.Session(config=config) as sess:
        with contextlib.suppress(KeyboardInterrupt):
            sess.run(v.initializer)
        sess.run(v.initializer)
        compile_segment.calls = 0
        with pytest.raises(KeyboardInterrupt):
            sess.run(update, {x: ones})
        sess.run(update, {x: ones})
        np.testing.assert_allclose(sess.run(v), np.sin(ones), rtol=1e-6)
