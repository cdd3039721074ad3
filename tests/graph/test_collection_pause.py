"""The cyclic collector waits in some blocks, and is as it was behind them."""

import gc
import os
import sys
import threading

import numpy as np
import pytest

import runnel as tf
from runnel.autodiff.gradients import gradients
from runnel.graph.collection_pause import collection_paused
from runnel.graph.registry import get_op_def
from runnel.passes.program.prune import prune
from runnel.runtime.session.session import BaseSession


@pytest.fixture(autouse=True)
def _collector():
    assert gc.isenabled()
    yield
    gc.enable()


def test_the_collector_is_off_in_the_block_and_on_behind_it():
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_block_that_fails_leaves_it_on():
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off():
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_it_is_off_until_the_last_of_several_threads_is_done():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with collection_paused():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with collection_paused():
        thread.start()
        assert entered.wait(60)
    assert not gc.isenabled()
    leave.set()
    thread.join(60)
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_child_process_collects_whatever_its_parent_did():
    with collection_paused():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_collection_runs_while_gradients_are_made_and_a_step_is_prepared():
    running = set()

    def note(phase, info):
        frame = sys._getframe(1)
        while frame is not None:
            running.add(frame.f_code)
            frame = frame.f_back

    value = x = tf.placeholder(tf.float32, [4])
    for _ in range(20):
        value = tf.tanh(value) * 1.5
    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)  # every object starts a collection
    try:
        (gradient,) = tf.gradients(value, x)
        with tf.Session() as session:
            session.run(gradient, {x: np.ones(4)})
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert BaseSession.run.__code__ in running
    assert gradients.__code__ in running
    assert prune.__code__ not in running
    assert get_op_def("Tanh").gradient_function.__code__ not in running
