"""Queues under load: hand-over between threads, shared training, input, blocking, many waiters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

TRAINERS = 8
BATCH = 100


def in_threads(*functions: Callable[[], Any]) -> None:
    """Run the functions at once, each in a thread of its own; raise the first failure."""
    failures: list[BaseException] = []

    def guarded(function: Callable[[], Any]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def scalar_rate(frontend: str, through: str) -> Workload:
    """A producer puts scalars into a queue of 100, a consumer takes them out."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(100, [tf.float32], shapes=[[]])
        value = tf.placeholder(tf.float32, [])
        put, put_fed, take = queue.enqueue([1.0]), queue.enqueue([value]), queue.dequeue()
        session = tf.Session()
    if through == "session.run":
        actions: tuple[Any, Any] = (lambda: session.run(put), lambda: session.run(take))
    else:
        actions = (session.make_callable(put), session.make_callable(take))

    def repeat(action: Any, times: int) -> Callable[[], None]:
        def loop() -> None:
            for _ in range(times):
                action()

        return loop

    def run(iterations: int) -> None:
        in_threads(*[repeat(action, iterations) for action in actions])

    def facts() -> dict[str, Any]:
        seen = []
        for number in range(200):
            session.run(put_fed, {value: number})
            if number % 2:
                seen += [session.run(take), session.run(take)]
        return {"right": seen == list(range(200))}

    return Workload(run, facts)


def shared_training(frontend: str) -> Workload:
    """Eight threads train on one session from one shuffle queue; every element is counted.

    One unit of work is one element. What an element is used for is a step of linear regression on
    a batch of a hundred.
    """
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        queue = tf.RandomShuffleQueue(5000, 1000, [tf.int64], shapes=[[]], seed=1)
        numbers = tf.placeholder(tf.int64, [None])
        put = queue.enqueue_many([numbers])
        taken = queue.dequeue_many(BATCH)
        left = queue.dequeue_up_to(1_000_000)
        close = queue.close()
        slope = tf.Variable(0.0)
        x = tf.cast(taken % 10, tf.float32) / 10.0
        loss = tf.reduce_mean(tf.square(slope * x - 2.0 * x))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    counts = numpy.zeros(0, numpy.int64)
    put_so_far = 0
    missing = 0
    fill = session.make_callable(put, [numbers])
    step = session.make_callable([taken, train])

    def run(iterations: int) -> None:
        nonlocal counts, put_so_far, missing
        count = max(iterations // BATCH, TRAINERS) * BATCH
        # So many more than are taken stay in the queue as it demands.
        wanted = count + (1000 if put_so_far == 0 else 0)
        first, put_so_far = put_so_far, put_so_far + wanted
        counts = numpy.concatenate([counts, numpy.zeros(wanted, numpy.int64)])
        tickets = iter(range(count // BATCH))
        lock = threading.Lock()

        def produce() -> None:
            for start in range(first, first + wanted, 500):
                fill(numpy.arange(start, min(start + 500, first + wanted)))

        def consume() -> None:
            mine = []
            while True:
                with lock:
                    if next(tickets, None) is None:
                        break
                mine.append(step()[0])
            with lock:
                for batch in mine:
                    counts[batch] += 1

        in_threads(produce, *[consume] * TRAINERS)

    def facts() -> dict[str, Any]:
        session.run(close)
        counts[session.run(left)] += 1
        return {
            "elements": int(put_so_far),
            "lost": int((counts == 0).sum()),
            "repeated": int((counts > 1).sum()),
            "slope": float(session.run(slope)),
            "right": bool((counts == 1).all()) and abs(float(session.run(slope)) - 2) < 1e-2,
        }

    return Workload(run, facts)


def perceptron(tf: Any, images: Any, labels: Any, hidden_units: int) -> tuple[Any, Any]:
    """A network with two hidden layers and its training step."""
    rng = numpy.random.default_rng(0)
    units = hidden_units
    hidden = images
    for rows, columns in ((784, units), (units, units), (units, 10)):
        matrix = rng.normal(size=(rows, columns)) / numpy.sqrt(rows)
        hidden = tf.matmul(tf.nn.relu(hidden), tf.Variable(matrix.astype(numpy.float32)))
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
    )
    return loss, tf.train.GradientDescentOptimizer(0.05).minimize(loss)


def queue_input(frontend: str, source: str, hidden_units: int) -> Workload:
    """A training step on a constant batch, or on batches that a thread feeds into a queue."""
    tf = load_frontend(frontend)
    rng = numpy.random.default_rng(1)
    images = rng.normal(size=(BATCH, 784)).astype(numpy.float32)
    labels = rng.integers(0, 10, BATCH).astype(numpy.int32)
    with tf.Graph().as_default():
        fed = [tf.placeholder(tf.float32, images.shape), tf.placeholder(tf.int32, labels.shape)]
        if source == "queue":
            queue = tf.FIFOQueue(20 * BATCH, [tf.float32, tf.int32], shapes=[images.shape[1:], []])
            put = queue.enqueue_many(fed)
            batch = queue.dequeue_many(BATCH)
        else:
            batch = [tf.constant(images), tf.constant(labels)]
        loss, train = perceptron(tf, *batch, hidden_units)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    step = session.make_callable([loss, train])
    if source == "queue":
        fill = session.make_callable(put, fed)

        def feed() -> None:
            while True:
                fill(images, labels)

        threading.Thread(target=feed, daemon=True).start()
    losses = [float(step()[0]) for _ in range(5)]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step()

    return Workload(run, facts=lambda: {"losses": losses})


def blocked_step(frontend: str) -> Workload:
    """A step with one dequeue that blocks and a hundred operations that do not need it.

    One unit of work is the whole: start the step in a thread, see that the hundred have run, close
    the session, wait for the thread.
    """
    tf = load_frontend(frontend)
    with tf.Graph().as_default() as graph:
        take = tf.FIFOQueue(1, [tf.float32], shapes=[[]]).dequeue()
        counters = [tf.Variable(0.0) for _ in range(100)]
        bumps = [tf.assign_add(counter, 1.0).op for counter in counters]
        initialize, total = tf.global_variables_initializer(), tf.add_n(counters)
    ran: list[float] = []
    ended: list[float] = []
    errors: set[str] = set()

    def once() -> None:
        session = tf.Session(graph=graph)
        session.run(initialize)
        session.run(total)

        def block() -> None:
            try:
                session.run([take, *bumps])
                errors.add("none")
            except Exception as error:  # noqa: BLE001 - its name is compared
                errors.add(type(error).__name__)

        thread = threading.Thread(target=block, daemon=True)
        started = time.perf_counter()
        thread.start()
        while session.run(total) < 100:
            if time.perf_counter() - started > 10:
                break
        ran.append(time.perf_counter() - started)
        closing = time.perf_counter()
        session.close()
        thread.join(10)
        ended.append(time.perf_counter() - closing)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            once()

    def facts() -> dict[str, Any]:
        return {
            "ran_seconds": sorted(ran)[len(ran) // 2],
            "ended_seconds": max(ended),
            "error": ", ".join(sorted(errors)),
            "right": errors == {"CancelledError"} and max(ran) < 10,
        }

    return Workload(run, facts)


def waiters(frontend: str, count: int) -> Workload:
    """One step in which ``count`` dequeues wait for one queue, until they are served at once."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(count, [tf.int32], shapes=[[]])
        takes = [queue.dequeue() for _ in range(count)]
        together = tf.add_n(takes)
        numbers = tf.placeholder(tf.int32, [None])
        put = queue.enqueue_many([numbers])
        session = tf.Session()
    values = numpy.ones(count, numpy.int32)
    found: dict[str, list[float]] = {"wake": [], "bytes": [], "threads": []}
    totals: list[int] = []

    def once() -> None:
        before, threads = _resident_bytes(), _threads()
        thread = threading.Thread(
            target=lambda: totals.append(int(session.run(together))), daemon=True
        )
        thread.start()
        _until_idle()
        found["bytes"].append(_resident_bytes() - before)
        found["threads"].append(_threads() - threads)
        started = time.perf_counter()
        session.run(put, {numbers: values})
        thread.join()
        found["wake"].append(time.perf_counter() - started)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            once()

    def facts() -> dict[str, Any]:
        # The first time a plan is prepared; what waiting itself takes shows afterwards.
        return {
            "wake_seconds": min(found["wake"][1:]),
            "first_bytes": found["bytes"][0],
            "bytes": max(found["bytes"][1:]),
            "threads": max(found["threads"]),
            "right": set(totals) == {count},
        }

    return Workload(run, facts)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def _threads() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Threads:"))


def _until_idle() -> None:
    """Wait until this process has used no CPU time for a while: everything waits."""
    quiet = 0
    while quiet < 5:
        before = time.process_time()
        time.sleep(0.05)
        quiet = quiet + 1 if time.process_time() - before < 0.002 else 0
