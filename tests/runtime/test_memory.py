"""Memory: steps leave nothing behind, caches are bounded, what is dropped is freed."""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.segment import variants
from runnel.runtime.session import session as session_module
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations, session

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


def grown(steps: int, step: Any) -> int:
    """Bytes that Python holds after ``steps`` calls more than before, in the best of four rounds.

    What is made once (by a compilation that begins in a round, by a cache) is in one of them; what
    every step leaves behind is in all.
    """
    for _ in range(300):
        step()
    growth = []
    tracemalloc.start()
    try:
        for _ in range(50):
            step()
        for _ in range(4):
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(steps):
                step()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
            growth.append(after - before)
            if growth[-1] < 10 * steps:  # no object takes so little
                break
    finally:
        tracemalloc.stop()
    return min(growth)


def resident() -> int:
    """Bytes of this process in memory, what XLA has allocated included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def small_step(level: int) -> Any:
    """A step with state, a feed, a check and random numbers."""
    v = tf.Variable(tf.zeros([8]))
    x = tf.placeholder(tf.float32, [8])
    checked = tf.check_numerics(x + tf.random_uniform([8]), "x")
    fetches = [v.assign_add(checked), tf.reduce_sum(v)]
    fed = np.ones(8, np.float32)
    sess = session(level)
    sess.run(v.initializer)
    return lambda: sess.run(fetches, {x: fed})


@pytest.mark.parametrize("level", [0, INTERPRETED, COMPILED])
def test_a_step_leaves_no_object_behind(level):
    """One forgotten object for each step would be more than 100,000 bytes."""
    step = small_step(level)
    for _ in range(3):
        for _ in range(2000):
            step()
        await_compilations()
    assert grown(2000, step) < 50_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_memory_is_flat_however_many_steps_run(level):
    """100 forgotten bytes for each step would be a million in each round of 10,000.

    The allocator takes and returns pages for reasons of its own, so one round proves nothing; a
    leak grows in every one of them.
    """
    step = small_step(level)
    for _ in range(2000):
        step()
    growth = []
    for _ in range(4):
        gc.collect()
        before = resident()
        for _ in range(10_000):
            step()
        gc.collect()
        growth.append(resident() - before)
        if growth[-1] < 1_000_000:
            return
    raise AssertionError(f"every 10,000 steps take memory: {growth}")


@TIERS
def test_failed_steps_leave_nothing_behind(level):
    x = tf.placeholder(tf.float32, None)
    y = tf.check_numerics(x, "x")
    with session(level) as sess:

        def fail():
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(y, {x: np.nan})

        assert grown(300, fail) < 30_000


def test_the_plans_of_a_session_are_bounded(monkeypatch):
    monkeypatch.setattr(session_module, "_MAX_PREPARED", 10)
    x = tf.constant(1.0)
    fetches = [x + float(i) for i in range(30)]
    with tf.Session() as sess:
        for _ in range(2):
            for i, fetch in enumerate(fetches):
                assert sess.run(fetch) == 1.0 + i
                assert sess.run([fetch, x]) == [1.0 + i, 1.0]
        assert len(sess._prepared) <= 10


def test_the_executables_of_a_step_are_bounded(monkeypatch):
    monkeypatch.setattr(variants, "_MAX_EXECUTABLES", 3)
    monkeypatch.setattr(variants, "_MAX_SIGNATURES", 5)
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(x)
    with session(COMPILED) as sess:
        for _ in range(2):
            for size in range(1, 9):
                assert sess.run(y, {x: np.ones(size)}) == size
        (runner,) = next(iter(sess._prepared.values())).plan.schedule.runners
        known = runner._variants._known.values()
        assert len(known) <= 5
        assert sum(variant.executable is not None for variant in known) <= 3


def build_everything() -> tuple[Any, Any, Any]:
    """A model with each of the things that hold on to Python functions or tensors."""
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.get_variable("w", [4, 4])
    r = tf.get_variable("r", [4], use_resource=True)

    @tf.custom_gradient
    def half(t):
        return t * 0.5, lambda dy: dy * 0.5

    y = half(tf.matmul(x, w) + r)
    y += tf.py_func(lambda v: v, [tf.stop_gradient(y)], tf.float32)
    loss = tf.reduce_sum(tf.square(tf.nn.dropout(y, keep_prob=0.5)))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    return x, loss, step


@TIERS
def test_graphs_sessions_and_feeds_are_freed_when_dropped(level):
    """Without Session.close: nothing in the library holds on to them."""
    graph = tf.Graph()
    with graph.as_default():
        x, loss, step = build_everything()
        init = tf.global_variables_initializer()
    sess = session(level, graph)
    sess.run(init)
    batch = np.ones((3, 4), np.float32)
    for _ in range(3):
        sess.run([step, loss], {x: batch})
    call = sess.make_callable(loss, [x])
    call(batch)
    handle = sess.partial_run_setup([loss], [x])
    sess.partial_run(handle, loss, {x: batch.copy()})
    with pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(loss)
    fetched = sess.run(loss, {x: batch})
    assert np.isfinite(fetched)
    freed = {
        "graph": weakref.ref(graph),
        "session": weakref.ref(sess),
        "operation": weakref.ref(loss.op),
        "store": weakref.ref(sess._task.lock),
        "feed": weakref.ref(batch),
    }
    del batch
    gc.collect()
    assert freed.pop("feed")() is None
    del graph, sess, x, loss, step, init, call, handle
    gc.collect()
    alive = [name for name, reference in freed.items() if reference() is not None]
    assert not alive


@TIERS
def test_a_session_frees_its_variables_when_closed(level):
    import jax

    v = tf.Variable(tf.zeros([1 << 16]))
    bump = v.assign_add(tf.ones([1 << 16])).op
    sess = session(level)
    sess.run(v.initializer)
    sess.run(bump)
    del bump
    (cell,) = [c for c in sess._task._containers[""].values() if c.value is not None]
    held = weakref.ref(cell.value)
    sess.close()
    gc.collect()
    assert held() is None
    assert not [a for a in jax.live_arrays() if a.shape == (1 << 16,)]


def test_a_fetched_slice_does_not_keep_the_whole_alive():
    x = tf.placeholder(tf.float32, [1 << 16])
    y = (x * 2.0)[:1]
    with session(INTERPRETED) as sess:
        value = sess.run(y, {x: np.ones(1 << 16)})
    assert value.base is None
