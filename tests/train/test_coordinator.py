"""Threads that stop together."""

from __future__ import annotations

import threading

import pytest

import runnel as tf


def started(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def test_threads_stop_when_one_asks():
    coord = tf.train.Coordinator()
    threads = [started(coord.wait_for_stop) for _ in range(3)]
    assert not coord.should_stop() and not coord.joined
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop() and coord.joined


def test_join_returns_when_the_threads_have_ended_by_themselves():
    coord = tf.train.Coordinator()
    coord.join([started(lambda: None)])
    assert not coord.should_stop()


def test_the_first_exception_is_raised_by_join():
    coord = tf.train.Coordinator()
    first_is_in = threading.Event()

    def fail(error, after):
        with coord.stop_on_exception():
            if after is not None:
                after.wait(30)
            raise error

    one = started(fail, ValueError("first"), None)
    one.join()
    first_is_in.set()
    coord.register_thread(started(fail, KeyError("second"), first_is_in))
    with pytest.raises(ValueError, match="first"):
        coord.join([one])
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()


def test_a_clean_stop_raises_nothing():
    coord = tf.train.Coordinator()
    with coord.stop_on_exception():
        raise tf.errors.OutOfRangeError(None, None, "the end")
    assert coord.should_stop()
    coord.join()
    own = tf.train.Coordinator(clean_stop_exception_types=(KeyError,))
    own.request_stop(KeyError("fine"))
    own.join()


def test_after_join_an_exception_goes_to_its_thread():
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined


def test_a_thread_that_does_not_stop_in_time():
    coord = tf.train.Coordinator()
    release = threading.Event()
    thread = started(release.wait)
    try:
        coord.request_stop()
        with pytest.raises(RuntimeError, match="threads still running: .*closed"):
            coord.join([thread], stop_grace_period_secs=0.02)
        coord.clear_stop()
        coord.request_stop()
        coord.join([thread], stop_grace_period_secs=0.02, ignore_live_threads=True)
    finally:
        release.set()


def test_a_looper_calls_until_it_is_stopped():
    coord = tf.train.Coordinator()
    calls = []

    def call(value, *, last):
        calls.append(value)
        if len(calls) == last:
            coord.request_stop()

    for interval in (None, 0.0):
        calls.clear()
        coord.clear_stop()
        looper = tf.train.LooperThread.loop(coord, interval, call, args=(7,), kwargs={"last": 4})
        coord.join()
        assert calls == [7] * 4 and not looper.is_alive()


def test_a_loopers_exception_reaches_join():
    coord = tf.train.Coordinator()

    class Failing(tf.train.LooperThread):
        def run_loop(self):
            raise ValueError("in the loop")

    Failing(coord, None).start()
    with pytest.raises(ValueError, match="in the loop"):
        coord.join()
    with pytest.raises(ValueError, match="must be a Coordinator"):
        tf.train.LooperThread(None, None)
