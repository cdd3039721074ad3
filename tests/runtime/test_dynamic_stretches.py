"""What runs dynamically runs in compiled stretches: loops with Python functions or queues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import compiler
from runnel.runtime.schedule.unit import RegionUnit
from tests.both_tiers import COMPILED, INTERPRETED, await_compilations

W = (np.random.RandomState(0).randn(8, 8) * 0.3).astype(np.float32)
X = np.random.RandomState(1).randn(4, 8).astype(np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        yield


@pytest.fixture(params=["raised", "event-driven"])
def session(request: pytest.FixtureRequest) -> Callable[[int], tf.Session]:
    """Makes a session of a tier, with loops raised or left to the event-driven executor."""

    def make(level: int, cpus: int = 1) -> tf.Session:
        config = tf.ConfigProto(device_count={"CPU": cpus})
        config.graph_options.optimizer_options.global_jit_level = level
        if request.param == "event-driven":
            config.experimental.executor_type = "DATAFLOW"
        return tf.Session(config=config)

    return make


def python(function: Callable[[Any], Any], x: tf.Tensor) -> tf.Tensor:
    result = tf.py_func(function, [x], x.dtype)
    result.set_shape(x.shape)
    return result


def halving_loop(x: tf.Tensor, w: Any, times: int = 5) -> tf.Tensor:
    """Products, a Python function, products, in each iteration."""

    def body(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        h = tf.tanh(tf.matmul(h, w) + 0.1)
        h = python(lambda value: value * np.float32(0.5), h)
        return i + 1, tf.tanh(tf.matmul(h, w) - 0.1)

    return tf.while_loop(lambda i, h: i < times, body, (tf.constant(0), x))[1]


def halved(x: np.ndarray, times: int = 5) -> np.ndarray:
    for _ in range(times):
        x = np.tanh(np.tanh(x @ W + 0.1) * 0.5 @ W - 0.1)
    return x


def both(session: Any, fetches: Any, feed: Any = None, steps: int = 2) -> Any:
    """The values of the last step, after asserting that both tiers agree on all steps."""
    found = []
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            found.append([sess.run(fetches, feed) for _ in range(steps)])
    for one, other in zip(*found, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return found[1][-1]


def test_what_surrounds_a_python_function_in_a_loop_is_compiled(session):
    x = tf.placeholder(tf.float32, [None, 8])
    result = halving_loop(x, tf.constant(W))
    with session(COMPILED) as sess:
        before = compiler.compilations
        np.testing.assert_allclose(sess.run(result, {x: X}), halved(X), rtol=1e-5)
        made = compiler.compilations - before
        assert 2 <= made <= 5
        # Once for each stretch, not for each iteration, and again only for other shapes.
        np.testing.assert_allclose(sess.run(result, {x: X[:2]}), halved(X[:2]), rtol=1e-5)
        assert compiler.compilations - before <= 2 * made
        sess.run(result, {x: X})
        assert compiler.compilations - before <= 2 * made


def test_a_stretch_has_one_entry_in_the_trace(session):
    x = tf.placeholder(tf.float32, [4, 8])
    result = halving_loop(x, tf.constant(W), times=3)
    metadata = tf.RunMetadata()
    with session(COMPILED) as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(result, {x: X}, options=options, run_metadata=metadata)
    entries = metadata.step_stats.dev_stats[0].node_stats
    labels = [e.timeline_label for e in entries if e.node_name.endswith("/compiled")]
    assert sum("while/MatMul" in label for label in labels) == 6
    assert sum(e.node_name == "while/PyFunc" for e in entries) == 3


def test_a_hot_loop_is_compiled_by_itself(session):
    size = 256
    w = tf.constant(np.eye(size, dtype=np.float32))
    x = tf.placeholder(tf.float32, [size, size])

    def body(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        for _ in range(4):
            h = tf.tanh(tf.matmul(h, w))
        return i + 1, python(lambda value: value, h)

    result = tf.while_loop(lambda i, h: i < 100, body, (tf.constant(0), x))[1]
    with session(0) as sess:
        before = compiler.compilations
        sess.run(result, {x: np.ones((size, size), np.float32)})
        await_compilations()
        assert compiler.compilations > before


def test_a_stretch_is_not_compiled_for_the_number_of_an_iteration(session):
    x = tf.constant(np.arange(40, dtype=np.float32).reshape(10, 4))

    def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        row = tf.reshape(tf.slice(x, [i, 0], [1, 4]), [4])
        return i + 1, python(lambda value: value, total + row * 2.0 + 1.0)

    result = tf.while_loop(lambda i, _: i < 10, body, (tf.constant(0), tf.zeros([4])))[1]
    with session(COMPILED) as sess:
        before = compiler.compilations
        np.testing.assert_allclose(sess.run(result), [370, 390, 410, 430])
        assert compiler.compilations - before <= 5


def test_state_is_read_and_written_in_its_order(session):
    v = tf.Variable(np.float32([1.0, 2.0]), use_resource=True)

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        before = python(lambda value: value, v.read_value() * 0.5 + x)
        with tf.control_dependencies([v.assign_add(before)]):
            after = v.read_value() * 3.0 - before
        with tf.control_dependencies([v.assign_sub(after * 0.25)]):
            return i + 1, tf.tanh(after + v.read_value())

    start = tf.constant([0.5, -0.5])
    result = tf.while_loop(lambda i, x: i < 4, body, (tf.constant(0), start))[1]
    with tf.control_dependencies([result]):
        left = v.read_value() * 1.0
    value = np.array([1.0, 2.0])
    for _ in range(2):
        kept = np.array([0.5, -0.5])
        for _ in range(4):
            before = value * 0.5 + kept
            value = value + before
            after = value * 3 - before
            value = value - after * 0.25
            kept = np.tanh(after + value)
    found = both(session, [result, left])
    np.testing.assert_allclose(found[0], kept, rtol=1e-4)
    np.testing.assert_allclose(found[1], value, rtol=1e-4)


def test_random_numbers_are_those_of_the_interpreter(session):
    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        noise = tf.random_normal([4, 8], seed=3) * 0.1 + tf.random_uniform([4, 8], seed=4)
        return i + 1, python(lambda value: value, tf.tanh(x + noise * 2.0))

    result = tf.while_loop(lambda i, x: i < 3, body, (tf.constant(0), tf.constant(X)))[1]
    first = both(session, [result], steps=1)[0]
    second = both(session, [result], steps=2)[0]
    assert np.abs(first - second).max() > 1e-3


def test_gradients_of_a_branch_and_a_loop(session):
    w = tf.Variable(W)
    x = tf.constant(X)

    def body(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        taken = tf.cond(
            tf.reduce_sum(h) > 0.0,
            lambda: tf.tanh(tf.matmul(h, w) * 0.5),
            lambda: tf.sigmoid(tf.matmul(h, w)) - 0.4,
        )
        noted = tf.py_func(lambda value: value, [i], tf.int32)
        with tf.control_dependencies([noted]):
            return i + 1, tf.identity(taken)

    result = tf.while_loop(lambda i, h: i < 4, body, (tf.constant(0), x))[1]
    gradient = tf.gradients(tf.reduce_sum(tf.square(result)), w)[0]
    both(session, [result, gradient])


def test_a_dead_branch_does_not_run(session):
    ran = []

    def note(value: np.ndarray) -> np.ndarray:
        ran.append(float(value[0]))
        return value

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        odd = tf.equal(i % 2, 1)
        return i + 1, tf.cond(
            odd, lambda: python(note, x * 2.0 + 1.0), lambda: tf.sqrt(x * x) + 1.0
        )

    result = tf.while_loop(lambda i, x: i < 4, body, (tf.constant(0), tf.constant([1.0, 2.0])))[1]
    with session(COMPILED) as sess:
        np.testing.assert_allclose(sess.run(result), [13.0, 17.0])
    assert ran == [5.0, 13.0]


def test_a_failed_check_names_the_operation_and_leaves_the_state(session):
    v = tf.Variable(np.float32(0.0))
    limit = tf.placeholder(tf.int32, [])
    table = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x = python(lambda value: value, x)
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            row = tf.gather(table, i, name="chosen")
        return i + 1, tf.tanh(x + row * 2.0)

    result = tf.while_loop(lambda i, x: i < limit, body, (tf.constant(0), tf.zeros([4])))[1]
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(v.initializer)
            sess.run(result, {limit: 3})
            with pytest.raises(tf.errors.InvalidArgumentError, match="chosen"):
                sess.run(result, {limit: 5})
            assert sess.run(v) == 3.0


@pytest.mark.parametrize("level", [INTERPRETED, 0, COMPILED])
def test_an_endless_loop_is_stopped(session, level):
    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 0, tf.tanh(tf.matmul(python(lambda value: value, x), tf.constant(W)) + 0.1)

    result = tf.while_loop(lambda i, x: i < 1, body, (tf.constant(0), tf.constant(X)))[1]
    with session(level) as sess, pytest.raises(tf.errors.DeadlineExceededError, match="time"):
        sess.run(result, options=tf.RunOptions(timeout_in_ms=300))


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_queue_in_a_loop_holds_up_only_what_needs_it(level):
    """Four iterations begin while the first still waits for its element."""
    began = threading.Semaphore(0)
    queue = tf.FIFOQueue(10, [tf.float32], [[8]])
    element = tf.placeholder(tf.float32, [8])
    enqueue = queue.enqueue(element)

    def note(value: np.ndarray) -> np.ndarray:
        began.release()
        return value

    def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        i = python(note, i)
        row = tf.tanh(tf.matmul(queue.dequeue()[tf.newaxis], tf.constant(W)))
        return i + 1, total * 0.5 + row

    loop = tf.while_loop(
        lambda i, _: i < 4, body, (tf.constant(0), tf.zeros([1, 8])), parallel_iterations=4
    )
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    found: list[np.ndarray] = []
    with tf.Session(config=config) as sess:
        units = sess._plan([loop[1]], [], []).schedule.units
        assert any(isinstance(unit, RegionUnit) for unit in units)
        thread = threading.Thread(target=lambda: found.append(sess.run(loop[1])))
        thread.start()
        for _ in range(4):
            assert began.acquire(timeout=60)
        before = compiler.compilations
        for row in X:
            sess.run(enqueue, {element: row})
        thread.join(60)
        assert not thread.is_alive()
        assert level == INTERPRETED or compiler.compilations > before
    total = np.zeros((1, 8))
    for row in X:
        total = total * 0.5 + np.tanh(row[np.newaxis] @ W)
    np.testing.assert_allclose(found[0], total, rtol=1e-5)


def test_a_loop_across_devices_is_compiled_on_each(session):
    w = tf.Variable(W)

    def body(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        for device in ("/cpu:0", "/cpu:1"):
            with tf.device(device):
                h = tf.tanh(tf.matmul(h, w) + 0.1)
        return i + 1, h

    result = tf.while_loop(lambda i, h: i < 3, body, (tf.constant(0), tf.constant(X)))[1]
    gradient = tf.gradients(tf.reduce_sum(result), w)[0]
    expected = X
    for _ in range(6):
        expected = np.tanh(expected @ W + 0.1)
    found = []
    for level in (INTERPRETED, COMPILED):
        with session(level, cpus=2) as sess:
            sess.run(w.initializer)
            before = compiler.compilations
            found.append(sess.run([result, gradient]))
            np.testing.assert_allclose(found[-1][0], expected, rtol=1e-4)
            assert (compiler.compilations - before >= 2) == (level == COMPILED)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-6)


def growing_loop(x: tf.Tensor, times: tf.Tensor) -> tf.Tensor:
    """Adds a row in each iteration: no compiled form, unless there are no iterations."""
    before = tf.tanh(tf.matmul(x, tf.constant(W)), name="before")

    def body(i: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.concat([rows, tf.tanh(rows[-1:] * 2.0 + 0.5)], 0)

    rows = tf.while_loop(
        lambda i, _: i < times,
        body,
        (tf.constant(0), before),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 8])),
    )[1]
    return tf.tanh(tf.matmul(rows, tf.constant(W)), name="after")


def grown(x: np.ndarray, times: int) -> np.ndarray:
    rows = np.tanh(x @ W)
    for _ in range(times):
        rows = np.concatenate([rows, np.tanh(rows[-1:] * 2 + 0.5)])
    return np.tanh(rows @ W)


@pytest.fixture
def compiling() -> tf.ConfigProto:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = COMPILED
    return config


def test_a_segment_is_cut_around_a_loop_without_a_compiled_form(compiling):
    x = tf.placeholder(tf.float32, [4, 8])
    result = growing_loop(x, tf.constant(3))
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(config=compiling) as sess:
        for _ in range(2):
            metadata = tf.RunMetadata()
            found = sess.run(result, {x: X}, options=options, run_metadata=metadata)
            np.testing.assert_allclose(found, grown(X, 3), rtol=1e-5, atol=1e-6)
            entries = metadata.step_stats.dev_stats[0].node_stats
            labels = [e.timeline_label for e in entries if e.node_name.endswith("/compiled")]
            assert [sum(name in label for label in labels) for name in ("before", "after")] == [
                1,
                1,
            ]
            assert not any("before" in label and "after" in label for label in labels)
            assert sum("while/concat" in label for label in labels) == 3
        before = compiler.compilations
        np.testing.assert_allclose(sess.run(result, {x: X}), grown(X, 3), rtol=1e-5, atol=1e-6)
        assert compiler.compilations == before


def test_a_loop_of_many_shapes_is_not_compiled_for_each(compiling):
    x = tf.placeholder(tf.float32, [4, 8])
    times = tf.placeholder(tf.int32, [])
    result = growing_loop(x, times)
    with tf.Session(config=compiling) as sess:
        before = compiler.compilations
        found = sess.run(result, {x: X, times: 60})
        np.testing.assert_allclose(found, grown(X, 60), rtol=1e-4, atol=1e-6)
        assert compiler.compilations - before < 30


def test_the_gradient_of_a_loop_without_a_compiled_form(compiling):
    x = tf.constant(X)
    gradient = tf.gradients(growing_loop(x, tf.constant(3)), x)[0]
    with tf.Session(config=compiling) as sess:
        found = sess.run(gradient)
    for place in ((0, 0), (3, 7)):
        step = np.zeros((4, 8))
        step[place] = 1e-4
        estimate = (grown(X + step, 3).sum() - grown(X - step, 3).sum()) / 2e-4
        assert found[place] == pytest.approx(estimate, rel=1e-2, abs=1e-3)
