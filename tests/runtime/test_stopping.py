"""Stopping steps: by a deadline, by closing the session, by Ctrl-C; in every tier, anywhere.

Each step would run for far longer than the test may take. Stopped, it has changed nothing, and the
session runs the next step.
"""

import contextlib
import signal
import threading
import time

import numpy as np
import pytest

import runnel as tf
from runnel.queues.queue import Queue
from runnel.runtime.compile import compiler, pieces, segment_program
from runnel.runtime.state.cell import WriterLocks
from runnel.runtime.state.step_context import StepContext

SECONDS = 0.2
"""After what time a step is stopped."""
AT_MOST = 5.0
"""Seconds after which it must have ended. It takes much less, but the machine may be busy."""
FOREVER = 1 << 30


def session(mode, **options):
    config = tf.ConfigProto(**options)
    level = {"interpreted": -1, "compiled": 1}.get(mode, 0)
    config.graph_options.optimizer_options.global_jit_level = level
    if mode == "event-driven":
        config.experimental.executor_type = "DATAFLOW"
    return tf.Session(config=config)


def by_deadline(sess, fetch, feed):
    with pytest.raises(tf.errors.DeadlineExceededError, match="ran out of time") as error:
        sess.run(fetch, feed, options=tf.RunOptions(timeout_in_ms=int(SECONDS * 1000)))
    assert error.value.op is not None


def by_closing(sess, fetch, feed):
    timer = threading.Timer(SECONDS, sess.close)
    timer.start()
    with pytest.raises(tf.errors.CancelledError, match="closed") as error:
        sess.run(fetch, feed)
    assert error.value.op is not None
    timer.join()


def by_interrupt(sess, fetch, feed):
    ended = threading.Event()
    sent = 0

    def interrupt():
        nonlocal sent
        # Python loses an interrupt that comes in the callback of a weak reference.
        while not ended.wait(SECONDS if sent == 0 else 1.0):
            sent += 1
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def interrupted(*_):
        if not ended.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                sess.run(fetch, feed)
            finally:
                ended.set()
        assert sent < 4
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


STOPS = {"deadline": by_deadline, "close": by_closing, "interrupt": by_interrupt}
MODES_AND_STOPS = pytest.mark.parametrize(
    ("mode", "stop"),
    [
        *(("interpreted", stop) for stop in STOPS),
        *(("compiled", stop) for stop in STOPS),
        *(("event-driven", stop) for stop in STOPS),
        ("default", "deadline"),  # which is one of the others before long
    ],
)


@contextlib.contextmanager
def soon():
    """The block ends long before the step in it would have."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < SECONDS + AT_MOST


def await_compilers(sess):
    """Waits for what goes on to be compiled although its step was stopped."""
    for prepared in list(sess._prepared.values()):
        for runner in prepared.plan.schedule.runners:
            for compiling in list(runner.compilations.running.values()):
                compiling.result(100)


# Loops ------------------------------------------------------------------------------------------


def trivial(i, a):
    return a * 0.5


def heavy(i, a):
    return tf.tanh(tf.matmul(a, a)) * 0.5


def nested(i, a):
    start = tf.to_float(i) * 0.0
    inner = tf.while_loop(lambda j, t: j < 200_000, lambda j, t: (j + 1, t + 0.0), [0, start])
    return a * 0.5 + inner[1]


def in_python(i, a):
    halved = tf.py_func(lambda array: array * np.float32(0.5), [a], tf.float32)
    halved.set_shape(a.shape)
    return halved


def sometimes_heavy(i, a):
    return tf.cond(i < 2, lambda: a * 0.5, lambda: heavy(i, a))


BODIES = {
    "trivial": (trivial, 3),
    "heavy": (heavy, 300),
    "nested": (nested, 3),
    "py_func": (in_python, 3),
    "sometimes heavy": (sometimes_heavy, 300),
}


@MODES_AND_STOPS
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_is_stopped(mode, body, stop):
    function, size = BODIES[body]
    limit = tf.placeholder(tf.int32, [])
    matrix = np.full([size, size], 1 / size, np.float32)
    v = tf.Variable(tf.zeros([size, size]))
    _, result = tf.while_loop(
        lambda i, a: i < limit,
        lambda i, a: (i + 1, function(i, a)),
        [tf.constant(0), tf.constant(matrix)],
    )
    update = v.assign_add(result).op
    with session(mode) as sess:
        sess.run(v.initializer)
        sess.run(update, {limit: 0})
        with soon():
            STOPS[stop](sess, update, {limit: FOREVER})
        if stop != "close":
            np.testing.assert_array_equal(sess.run(v), matrix)
            if body != "nested":
                sess.run(update, {limit: 1})
                expected = np.tanh(matrix @ matrix) * 0.5 if body == "heavy" else matrix * 0.5
                np.testing.assert_allclose(sess.run(v), matrix + expected, rtol=1e-4)


@pytest.mark.parametrize("stop", STOPS)
def test_a_compiled_loop_of_known_length_without_state_is_stopped(stop):
    x = tf.placeholder(tf.float32, [300, 300])
    loop = tf.while_loop(lambda i, a: i < 300_000, lambda i, a: (i + 1, heavy(i, a)), [0, x])
    feed = {x: np.eye(300, dtype=np.float32)}
    with session("compiled") as sess:
        by_deadline(sess, loop[1], feed)  # while it is being compiled
        await_compilers(sess)
        with soon():
            STOPS[stop](sess, loop[1], feed)


# Long steps without loops -----------------------------------------------------------------------


def products(x, count, devices=("/cpu:0",)):
    y = x
    for i in range(count):
        with tf.device(devices[i % len(devices)]):
            y = tf.tanh(tf.matmul(y, x))
    return y


@MODES_AND_STOPS
@pytest.mark.parametrize("devices", [("/cpu:0",), ("/cpu:0", "/cpu:1")], ids=["one", "two"])
def test_a_long_row_of_operations_is_stopped(mode, devices, stop):
    size = 1_200
    x = tf.placeholder(tf.float32, [size, size])
    v = tf.Variable(tf.ones([size, size]))
    update = v.assign_add(products(x, 160, devices)).op
    double = tf.assign(v, v * 2.0).op
    feed = {x: np.eye(size, dtype=np.float32)}
    with session(mode, device_count={"CPU": len(devices)}) as sess:
        sess.run(v.initializer)
        with soon():
            by_deadline(sess, update, feed)
        await_compilers(sess)
        with soon():
            STOPS[stop](sess, update, feed)
        feed[x][:] = 7.0  # which nothing uses any more
        if stop != "close":
            sess.run(double)
            np.testing.assert_array_equal(sess.run(v), np.full([size, size], 2.0))


def test_a_long_compiled_step_that_is_not_stopped_gives_what_its_pieces_make(monkeypatch):
    for name in ("LONG_SECONDS", "SHARED_SECONDS"):
        monkeypatch.setattr(segment_program, name, 0.0)
    monkeypatch.setattr(pieces, "_PIECE_SECONDS", 0.0)
    x = tf.placeholder(tf.float32, [20, 20])
    v = tf.Variable(tf.ones([20, 20]))
    w = tf.Variable(tf.ones([20]))
    y = products(x, 6)
    with tf.control_dependencies([tf.assert_less(tf.reduce_max(x), 5.0)]):
        step = tf.group(v.assign_add(y), w.assign(tf.reduce_sum(y, 0)))
    value = np.random.RandomState(0).rand(20, 20).astype("f")
    expected = value
    for _ in range(6):
        expected = np.tanh(expected @ value)
    with session("compiled") as sess:
        sess.run(tf.global_variables_initializer())
        for run in (1, 2):
            sess.run(step, {x: value})
            np.testing.assert_allclose(sess.run(v), 1 + run * expected, rtol=1e-4)
            np.testing.assert_allclose(sess.run(w), expected.sum(0), rtol=1e-4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="x < y"):
            sess.run(step, {x: value + 5})
        np.testing.assert_allclose(sess.run(w), expected.sum(0), rtol=1e-4)


@pytest.fixture
def compiled(monkeypatch):
    """The executables that a test compiles."""
    made = []
    compile_segment = compiler.compile_segment

    def noted(*arguments):
        made.append(compile_segment(*arguments))
        return made[-1]

    monkeypatch.setattr(compiler, "compile_segment", noted)
    return made


@pytest.mark.parametrize("seconds", [0.001, 0.03, 0.2])
def test_a_training_step_behind_an_iterator_asks_nobody(monkeypatch, compiled, seconds):
    monkeypatch.setattr(segment_program, "seconds_of", lambda jaxpr, platform: seconds)
    rows = tf.data.Dataset.from_tensors(np.ones([4, 8], np.float32)).repeat()
    w = tf.Variable(tf.ones([8, 8]))
    loss = tf.reduce_sum(tf.tanh(rows.make_one_shot_iterator().get_next() @ w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with session("compiled") as sess:
        sess.run(w.initializer)
        sess.run(train)
    assert compiled and not any(executable.asks for executable in compiled)


@pytest.mark.parametrize("piece, asks", [(1.0, False), (0.0, True)])
def test_a_segment_beside_others_asks_if_that_spares_a_piece(monkeypatch, compiled, piece, asks):
    monkeypatch.setattr(segment_program, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(pieces, "_PIECE_SECONDS", piece)
    queue = tf.FIFOQueue(2, tf.float32, [[8, 8]])
    x = tf.placeholder(tf.float32, [8, 8])
    put = queue.enqueue(products(x, 3))
    with tf.control_dependencies([put]):
        taken = products(queue.dequeue(), 3)
    with session("compiled") as sess:
        sess.run(taken, {x: np.ones([8, 8], np.float32)})
    assert len(compiled) == 2
    assert [executable.asks for executable in compiled] == [asks, asks]


def test_a_short_loop_of_known_length_asks_nobody(compiled):
    x = tf.placeholder(tf.float32, [4, 8])
    w = tf.Variable(tf.ones([8, 8]))
    loop = tf.while_loop(lambda i, a: i < 20, lambda i, a: (i + 1, tf.tanh(a @ w)), [0, x])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(loop[1]))
    with session("compiled") as sess:
        sess.run(w.initializer)
        sess.run(train, {x: np.ones([4, 8], np.float32)})
    assert compiled and not any(executable.asks for executable in compiled)


# Steps that wait --------------------------------------------------------------------------------


def in_front(queue, p):
    return queue.dequeue()


def in_a_branch(queue, p):
    return tf.cond(p, queue.dequeue, lambda: tf.constant(1.0))


def in_a_loop(queue, p):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + queue.dequeue()), [0, 0.0])[1]


@MODES_AND_STOPS
@pytest.mark.parametrize("where", [in_front, in_a_branch, in_a_loop])
def test_a_step_that_waits_for_a_queue_is_stopped(mode, where, stop):
    queue = tf.FIFOQueue(9, tf.float32, [[]])
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(0.0)
    update = v.assign_add(where(queue, p)).op
    fill = queue.enqueue_many([[2.0, 2.0, 2.0]])
    with session(mode) as sess:
        sess.run(v.initializer)
        with soon():
            STOPS[stop](sess, update, {p: True})
        if stop != "close":
            assert sess.run(v) == 0.0
            sess.run(fill)
            sess.run(update, {p: True})
            assert sess.run(v) == (6.0 if where is in_a_loop else 2.0)


@pytest.mark.parametrize("where", [in_front, in_a_branch, in_a_loop])
def test_a_step_that_comes_to_a_queue_as_its_session_is_closed_is_cancelled(where, monkeypatch):
    """It has found the queue, which is then gone: the elements have not come to an end."""
    queue = tf.FIFOQueue(9, tf.float32, [[]])
    p = tf.placeholder(tf.bool, [])
    taken = where(queue, p)
    dequeue = Queue.dequeue
    with session("interpreted") as sess:

        def late(self, waiter):
            sess.close()
            return dequeue(self, waiter)

        monkeypatch.setattr(Queue, "dequeue", late)
        with pytest.raises(tf.errors.CancelledError, match="closed") as error:
            sess.run(taken, {p: True})
        assert error.value.op.type == "QueueDequeueV2"


@MODES_AND_STOPS
def test_a_step_that_waits_for_a_variable_is_stopped(mode, stop):
    v = tf.Variable(tf.ones([100]))
    update = v.assign_add(tf.ones([100])).op
    loop = tf.while_loop(lambda i: i < 2, lambda i: i + 1, [0])
    with tf.control_dependencies([loop]):
        in_turn = v.assign_add(tf.ones([100])).op
    with session(mode) as sess:
        sess.run(v.initializer)
        sess.run(update)
        sess.run(in_turn)
        held, release = threading.Event(), threading.Event()

        def hold():
            """Holds the variable as a step does that will replace it."""
            locks = WriterLocks([sess._task.cell(v.op)], sess._task.writing)
            releasing = locks.acquire(StepContext(sess._steps), None)
            held.set()
            release.wait(60)
            list(releasing)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(60)
        try:
            with soon():
                by_deadline(sess, in_turn, {})
            with soon():
                STOPS[stop](sess, update, {})
        finally:
            release.set()
            holder.join()
        if stop != "close":
            sess.run(update)
            np.testing.assert_array_equal(sess.run(v), np.full([100], 4.0))


@pytest.mark.parametrize("stop", STOPS)
def test_a_step_that_waits_for_a_compilation_is_stopped_and_the_next_uses_it(stop, monkeypatch):
    compile_segment = compiler.compile_segment
    begun, finish = threading.Event(), threading.Event()

    def late(*arguments):
        begun.set()
        finish.wait(60)
        return compile_segment(*arguments)

    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(tf.zeros([3]))
    update = v.assign_add(tf.sin(x)).op
    ones = np.ones(3, np.float32)
    with session("compiled") as sess:
        sess.run(v.initializer)
        monkeypatch.setattr(compiler, "compile_segment", late)
        failures = []

        def first():
            """The step for which it is compiled."""
            try:
                sess.run(update, {x: ones}, options=tf.RunOptions(timeout_in_ms=300))
            except tf.errors.OpError as error:
                failures.append(type(error))

        thread = threading.Thread(target=first)
        thread.start()
        try:
            assert begun.wait(60)
            with soon():
                STOPS[stop](sess, update, {x: ones})
            thread.join(AT_MOST)
            assert len(failures) == 1
        finally:
            finish.set()
        monkeypatch.setattr(compiler, "compile_segment", compile_segment)
        if stop != "close":
            await_compilers(sess)
            before = compiler.compilations
            sess.run(update, {x: ones})
            assert compiler.compilations == before
            np.testing.assert_allclose(sess.run(v), np.sin(ones), rtol=1e-6)


# Other calls ------------------------------------------------------------------------------------


def endless():
    start = tf.placeholder_with_default(0.0, [])
    return start, tf.while_loop(lambda a: a < 1.0, lambda a: a * 0.5, [start])


@MODES_AND_STOPS
@pytest.mark.parametrize("parallel", [None, 2], ids=["on its thread", "on others"])
def test_a_function_of_a_dataset_that_does_not_end_is_stopped(mode, stop, parallel):
    def endless(i):
        return tf.while_loop(lambda k: k < limit, lambda k: k + 1, [i])

    limit = tf.Variable(0, dtype=tf.int64)
    dataset = tf.data.Dataset.range(3).map(endless, num_parallel_calls=parallel)
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    with session(mode) as sess:
        sess.run(limit.initializer)
        sess.run(iterator.initializer)
        assert sess.run(element) == 0
        sess.run(limit.assign(1 << 60))
        sess.run(iterator.initializer)
        with soon():
            STOPS[stop](sess, element, {})
        if stop != "close":
            sess.run(limit.assign(7))


def test_a_callable_takes_a_deadline():
    start, loop = endless()
    with session("compiled") as sess:
        function = sess.make_callable(loop, [start], accept_options=True)
        with soon(), pytest.raises(tf.errors.DeadlineExceededError):
            function(0.0, options=tf.RunOptions(timeout_in_ms=200))
        assert function(2.0) == 2.0


def test_a_part_of_a_partial_run_that_waits_for_another_is_stopped():
    begun, finish = threading.Event(), threading.Event()
    late = tf.register_op("CannotBeStopped", inputs="x: float", outputs="y: float", host=True)

    @late.shape
    def _(x):
        return x.dims

    @late.kernel
    def _(xp, x):
        begun.set()
        finish.wait(60)
        return x

    x = tf.placeholder(tf.float32, [])
    y, z = late(x), x * 2.0
    with session("interpreted", operation_timeout_in_ms=300) as sess:
        handle = sess.partial_run_setup([y, z], [x])
        found = []

        def run_late():
            with pytest.raises(tf.errors.DeadlineExceededError, match="'CannotBeStopped'") as error:
                sess.partial_run(handle, y, {x: 3.0})
            found.append(error)

        thread = threading.Thread(target=run_late)
        thread.start()
        assert begun.wait(60)
        with soon(), pytest.raises(tf.errors.DeadlineExceededError, match="another part"):
            sess.partial_run(handle, z)
        finish.set()
        thread.join()
        assert found
        assert sess.partial_run(handle, z) == 6.0


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_a_long_step_keeps_no_other_step_waiting(mode):
    """Not even one that reads the variable which it is going to update."""
    limit = tf.placeholder(tf.int32, [])
    v = tf.Variable(1.0)
    w = tf.Variable(tf.ones([4]))
    loop = tf.while_loop(lambda i, a: i < limit, lambda i, a: (i + 1, a * 0.5), [0, v.read_value()])
    update = w.assign_add(tf.fill([4], loop[1])).op
    other = tf.reduce_sum(tf.fill([3], 2.0))
    with session(mode) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([update, other], {limit: 0})
        thread = threading.Thread(
            target=by_deadline_of(10 * AT_MOST), args=(sess, update, {limit: FOREVER})
        )
        thread.start()
        with soon():
            while not sess._steps.running():
                thread.join(0.001)
            assert sess.run(other) == 6.0
            sess.close()
            thread.join(AT_MOST)
        assert not thread.is_alive()


def by_deadline_of(seconds):
    def run(sess, fetch, feed):
        with contextlib.suppress(tf.errors.OpError):
            sess.run(fetch, feed, options=tf.RunOptions(timeout_in_ms=int(seconds * 1000)))

    return run
