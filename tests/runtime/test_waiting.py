"""Steps that wait: what they keep back, what wakes them, what ends them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.sleepers import await_sleepers

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


class Running:
    """A function in a thread of its own; ``result()`` waits for it and raises what it raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self._outcome = function()
        except BaseException as error:  # noqa: BLE001 (raised by result)
            self._error = error

    def result(self) -> Any:
        self._thread.join(30)
        assert not self._thread.is_alive(), "it never ended"
        if self._error is not None:
            raise self._error
        return self._outcome


def asleep(sess: Any, count: int = 1) -> None:
    """Waits until ``count`` steps of ``sess`` sleep."""
    assert await_sleepers(sess._steps, count, 30), f"fewer than {count} steps sleep"


def error_of(running: Running) -> Exception:
    with pytest.raises(tf.errors.OpError) as caught:
        running.result()
    return caught.value


# What a blocked operation keeps back ----------------------------------------------------------


@TIERS
def test_the_rest_of_a_step_runs_while_one_operation_waits(level):
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    variables = [tf.Variable(float(i)) for i in range(100)]
    bumps = [tf.assign_add(v, 1.0) for v in variables]
    waits = queue.dequeue()
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        running = Running(lambda: sess.run([waits, *bumps]))
        asleep(sess)
        assert sess.run(variables) == [i + 1 for i in range(100)]
        sess.run(queue.enqueue(5.0))
        assert running.result()[0] == 5.0


@TIERS
def test_what_follows_a_blocked_operation_sees_the_state_of_its_time(level):
    """A training step that waits for its batch starts from what others have left meanwhile."""
    queue = tf.FIFOQueue(10, tf.float32, [[]])
    w = tf.Variable(1.0)
    train = tf.assign_sub(w, 0.5 * (w - queue.dequeue()))
    with session(level) as sess:
        sess.run(w.initializer)
        running = Running(lambda: sess.run(train))
        asleep(sess)
        sess.run(w.assign(9.0))
        sess.run(queue.enqueue(1.0))
        assert running.result() == 5.0


def test_an_update_does_not_wait_for_a_read_that_came_before_it():
    queue = tf.FIFOQueue(10, tf.float32, [[]])
    w = tf.Variable(1.0)
    before = w + queue.dequeue()
    update = w.assign(7.0)
    with tf.Session() as sess:
        sess.run(w.initializer)
        running = Running(lambda: sess.run([before, update.op]))
        asleep(sess)
        assert sess.run(w) == 7.0
        sess.run(queue.enqueue(10.0))
        assert running.result()[0] == 11.0


def test_operations_on_a_queue_begin_in_the_order_of_construction():
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    put = queue.enqueue(tf.constant(3) * 2)
    size = queue.size()
    taken = [queue.dequeue() for _ in range(3)]
    puts = [queue.enqueue(i) for i in range(2)]
    with tf.Session() as sess:
        assert sess.run([size, put, *taken, *puts])[:1] == [1]
        assert sess.run([*puts, *taken[:2]])[2:] == [0, 1]


@TIERS
def test_values_from_several_queues_meet(level):
    a, b = (tf.FIFOQueue(10, tf.float32, [[2]]) for _ in range(2))
    x, y = a.dequeue(), b.dequeue()
    fetches = [tf.reduce_sum(tf.exp(x) + tf.log(y)), tf.square(x)]
    with session(level) as sess:
        running = Running(lambda: sess.run(fetches))
        asleep(sess)
        sess.run(b.enqueue([[1.0, 2.0]]))
        sess.run(a.enqueue([[0.0, 1.0]]))
        value, squares = running.result()
        np.testing.assert_allclose(value, 1 + np.e + np.log(2), rtol=1e-6)
        np.testing.assert_array_equal(squares, [0, 1])


def test_control_edges_to_and_from_what_waits():
    first, second = (tf.FIFOQueue(10, tf.int32, [[]]) for _ in range(2))
    v = tf.Variable(0)
    taken = first.dequeue()
    with tf.control_dependencies([taken]):
        bump = v.assign_add(1)
    with tf.control_dependencies([bump]):
        put = second.enqueue(taken)
    with tf.control_dependencies([put]):
        last = tf.identity(v) * 10
    with tf.Session() as sess:
        sess.run(v.initializer)
        running = Running(lambda: sess.run(last))
        asleep(sess)
        assert sess.run([v, second.size()]) == [0, 0]
        sess.run(first.enqueue(4))
        assert running.result() == 10
        assert sess.run(second.dequeue()) == 4


def test_a_step_may_wait_for_itself():
    """A queue of capacity 1, filled and drained by one step."""
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    puts = [queue.enqueue(i) for i in range(50)]
    takes = [queue.dequeue() for _ in range(50)]
    with tf.Session() as sess:
        assert sess.run([takes, puts])[0] == list(range(50))


def test_ten_thousand_operations_wait_in_one_step():
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    takes = [queue.dequeue() for _ in range(10_000)]
    with tf.Session() as sess:
        threads = threading.active_count()
        running = Running(lambda: sess.run(takes))
        asleep(sess)
        assert threading.active_count() == threads + 1
        sess.run(queue.enqueue_many([np.arange(10_000, dtype=np.int32)]))
        assert running.result() == list(range(10_000))


def test_a_loop_and_a_branch_wait():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    v = tf.Variable(0)

    def body(i, total):
        taken = tf.cond(i < 3, queue.dequeue, lambda: tf.constant(100))
        with tf.control_dependencies([v.assign_add(1)]):
            return i + 1, total + taken

    loop = tf.while_loop(lambda i, total: i < 5, body, [0, 0])
    other = v.assign_add(1000)
    with tf.Session() as sess:
        sess.run(v.initializer)
        running = Running(lambda: sess.run(loop))
        for i in range(3):
            asleep(sess)
            sess.run(other)  # the variable is free while the loop waits
            sess.run(queue.enqueue(i))
        assert running.result() == (5, 203)
        assert sess.run(v) == 3005


def test_iterations_that_do_not_need_each_other_wait_together():
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    loop = tf.while_loop(
        lambda i, a: i < 4,
        lambda i, a: (i + 1, a.write(i, queue.dequeue())),
        [0, tf.TensorArray(tf.int32, 4, element_shape=[])],
    )
    values = loop[1].stack()
    with tf.Session() as sess:
        running = Running(lambda: sess.run(values))
        sess.run(queue.enqueue_many([[5, 6, 7, 8]]))
        assert sorted(running.result()) == [5, 6, 7, 8]


@pytest.mark.parametrize("limit", [1, 3])
def test_as_many_iterations_as_the_loop_allows_are_under_way(limit):
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    begun = tf.Variable(0)

    def body(i, a):
        with tf.control_dependencies([begun.assign_add(1)]):
            return i + 1, a.write(i, queue.dequeue())

    array = tf.TensorArray(tf.int32, 6, element_shape=[])
    loop = tf.while_loop(lambda i, a: i < 6, body, [0, array], parallel_iterations=limit)
    values = loop[1].stack()
    with tf.Session() as sess:
        sess.run(begun.initializer)
        running = Running(lambda: sess.run(values))
        asleep(sess)
        assert sess.run(begun) == limit
        sess.run(queue.enqueue_many([range(6)]))
        assert list(running.result()) == list(range(6))
        assert sess.run(begun) == 6


# What ends a step that waits ------------------------------------------------------------------


def blocked(sess: Any, count: int = 1) -> tuple[Any, list[Running]]:
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    take = queue.dequeue()
    running = [Running(lambda: sess.run(take)) for _ in range(count)]
    asleep(sess, count)
    return queue, running


def test_closing_the_session_ends_every_step_that_waits():
    sess = tf.Session()
    _, running = blocked(sess, 20)
    sess.close()
    errors = [error_of(r) for r in running]
    assert {type(e) for e in errors} == {tf.errors.CancelledError}
    assert "test_waiting.py" in str(errors[0]) and "fifo_queue_Dequeue" in str(errors[0])


def test_a_deadline_ends_a_step_and_takes_nothing():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    take = queue.dequeue_many(2)
    with tf.Session() as sess:
        sess.run(queue.enqueue(1))
        with pytest.raises(tf.errors.DeadlineExceededError, match="ran out of time while"):
            sess.run(take, options=tf.RunOptions(timeout_in_ms=20))
        assert sess.run(queue.size()) == 1
        assert sess._steps.running() == []


def test_a_timeout_for_every_step_of_the_session():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20)) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(queue.dequeue())
        sess.run(queue.enqueue(1))
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(queue.enqueue(1))


def test_a_deadline_in_a_loop_that_waits():
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    loop = tf.while_loop(lambda i: i < 2, lambda i: i + queue.dequeue(), [0])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(loop, options=tf.RunOptions(timeout_in_ms=20))
        assert queue_of(sess).waiting == (0, 0)


def queue_of(sess: Any) -> Any:
    (queue,) = sess._task.resources._containers[""].values()
    return queue


def test_an_error_elsewhere_in_the_step_withdraws_what_waits():
    queue, other = (tf.FIFOQueue(10, tf.int32, [[]], shared_name=n) for n in "ab")
    take = queue.dequeue()
    fails = tf.Assert(other.dequeue() > 0, ["not positive"])
    with tf.Session() as sess:
        running = Running(lambda: sess.run([take, fails]))
        asleep(sess)
        sess.run(other.enqueue(-1))
        assert isinstance(error_of(running), tf.errors.InvalidArgumentError)
        sess.run(queue.enqueue(3))
        assert sess.run(queue.size()) == 1


def test_closing_the_queue_ends_those_who_wait_for_elements():
    with tf.Session() as sess:
        queue, running = blocked(sess, 3)
        sess.run(queue.close())
        for r in running:
            assert isinstance(error_of(r), tf.errors.OutOfRangeError)


def test_a_reset_ends_those_who_wait():
    with tf.Session() as sess:
        queue, (running,) = blocked(sess)
        tf.Session.reset("")
        assert isinstance(error_of(running), tf.errors.CancelledError)
        sess.run(queue.enqueue(1))  # a new queue
        assert sess.run(queue.size()) == 1


def test_a_step_that_will_wait_says_at_once_that_a_variable_has_no_value():
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    w = tf.Variable(1.0)
    train = w.assign_sub(queue.dequeue() * w)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value Variable"):
            sess.run(train)
        sess.run(queue.enqueue(1.0))
        assert sess.run(queue.size()) == 1


def test_a_step_that_initialises_what_it_then_uses_waits():
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    w = tf.Variable(1.0)
    with tf.control_dependencies([w.initializer]):
        taken = queue.dequeue()
    value = tf.identity(w) + taken
    with tf.Session() as sess:
        running = Running(lambda: sess.run(value))
        asleep(sess)
        sess.run(queue.enqueue(1.0))
        assert running.result() == 2.0


def test_a_session_that_is_gone_takes_its_queues_with_it():
    import weakref

    queue = tf.FIFOQueue(1, tf.int32, [[]])
    sess = tf.Session()
    sess.run(queue.enqueue(1))
    held = weakref.ref(queue_of(sess))
    sess.close()
    del sess
    gc.collect()
    assert held() is None


# The edges of run -----------------------------------------------------------------------------


def test_callables_and_partial_runs_and_metadata():
    queue = tf.FIFOQueue(10, tf.float32, [[]])
    x = tf.placeholder(tf.float32, [])
    put, take = queue.enqueue(x), queue.dequeue() * 2
    with tf.Session() as sess:
        sess.make_callable(put, [x])(4.0)
        assert sess.make_callable(take)() == 8.0
        handle = sess.partial_run_setup([put, take], [x])
        sess.partial_run(handle, put, {x: 3.0})
        assert sess.partial_run(handle, take) == 6.0
        sess.run(put, {x: 1.0})
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert sess.run(take, options=options, run_metadata=metadata) == 2.0
        names = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
        assert {"fifo_queue_Dequeue", "mul"} <= names


def test_what_a_caller_gets_and_gives_is_the_callers_own():
    queue = tf.FIFOQueue(10, tf.float32, [[3]])
    x = tf.placeholder(tf.float32, [3])
    doubled = x * 2
    put_fed, put_computed, take = queue.enqueue(x), queue.enqueue(doubled), queue.dequeue()
    with tf.Session() as sess:
        mine = np.ones(3, np.float32)
        sess.run(put_fed, {x: mine})
        mine[:] = 9
        first = sess.run(take)
        first += 1
        np.testing.assert_array_equal(first, [2, 2, 2])
        _, computed = sess.run([put_computed, doubled], {x: mine})
        computed[:] = 0
        np.testing.assert_array_equal(sess.run(take), [18, 18, 18])


def test_eight_threads_train_from_one_shuffle_queue():
    """Every element is used once, by one of the threads."""
    count, batch, threads = 4000, 10, 8
    queue = tf.RandomShuffleQueue(200, 50, tf.int64, [[]], seed=1)
    x = tf.placeholder(tf.int64, [None])
    put = queue.enqueue_many([x])
    total = tf.Variable(0, dtype=tf.int64)
    steps = tf.Variable(0)
    taken = queue.dequeue_many(batch)
    with tf.control_dependencies([taken]):  # else it would count steps that find no batch
        train = tf.group(total.assign_add(tf.reduce_sum(taken)), steps.assign_add(1))
    seen: list[Any] = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())

        def work():
            step = sess.make_callable([taken, train])
            try:
                while True:
                    seen.append(step()[0])
            except tf.errors.OutOfRangeError:
                pass

        workers = [Running(work) for _ in range(threads)]
        for i in range(0, count, 100):
            sess.run(put, {x: np.arange(i, i + 100)})
        sess.run(queue.close())
        for worker in workers:
            worker.result()
        assert sorted(np.concatenate(seen).tolist()) == list(range(count))
        assert sess.run([total, steps]) == [count * (count - 1) // 2, count // batch]


def test_an_interrupt_while_a_step_waits_leaves_the_queue_whole():
    import subprocess
    import sys
    import textwrap

    program = textwrap.dedent(
        """
        import signal
        import runnel as tf
        queue = tf.FIFOQueue(5, tf.int32, [[]])
        take = queue.dequeue_many(2)
        with tf.Session() as sess:
            sess.run(queue.enqueue(1))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                sess.run(take)
            except KeyboardInterrupt:
                print("interrupted", sess.run(queue.size()))
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert done.stdout.split() == [b"interrupted", b"1"], done.stderr
