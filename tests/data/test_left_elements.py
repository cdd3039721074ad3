"""Elements that take longer than their step may: the next step gets them, and none is lost."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from runnel.graph.errors import DataLossError
from runnel.pipelines.buffering import Prefetch
from runnel.pipelines.iterator_state import IteratorState
from runnel.pipelines.pipeline import END, Pipeline, SameNumber, Stage, Traversal
from runnel.pipelines.sources import Numbers
from runnel.pipelines.state_bytes import decoded, encoded
from runnel.step_time import limited_by

pytestmark = pytest.mark.timeout(180)
Dataset = tf.data.Dataset
experimental = tf.data.experimental
SOON = tf.RunOptions(timeout_in_ms=200)
SECONDS = 60


class Slow:
    """A function of numbers that does not return for one of them until it may."""

    def __init__(self, number=3):
        self.number, self.seen = number, []
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, number):
        if number == self.number:
            self.begun.set()
            assert self.may_end.wait(SECONDS)
        self.seen.append(int(number))
        return number

    def of(self, dataset, calls=None):
        """``dataset`` mapped by this."""

        def called(n):
            made = tf.py_func(self, [n], tf.int64)
            made.set_shape([])
            return made

        return dataset.map(called, num_parallel_calls=calls)

    def generated(self):
        return Dataset.from_generator(lambda: (self(n) for n in range(6)), tf.int64, [])


@pytest.fixture
def slow():
    made = Slow()
    yield made
    made.may_end.set()


def six(slow, calls=None):
    return slow.of(Dataset.range(6), calls)


def twice_three(slow):
    """0 1 2 and 3 4 5, each by a dataset of its own."""
    return lambda n: slow.of(Dataset.range(3 * n, 3 * n + 3))


NUMBERS = [0, 1, 2, 3, 4, 5]
IN_TURN = [0, 3, 1, 4, 2, 5]
PIPELINES = {
    "map": (six, NUMBERS),
    "parallel map": (lambda slow: six(slow, 2), NUMBERS),
    "generator": (Slow.generated, NUMBERS),
    "prefetch": (lambda slow: six(slow).prefetch(1), NUMBERS),
    "prefetched generator": (lambda slow: slow.generated().prefetch(2), NUMBERS),
    "batch": (lambda slow: six(slow).batch(2), [[0, 1], [2, 3], [4, 5]]),
    "batch of a parallel map": (lambda slow: six(slow, 2).batch(2), [[0, 1], [2, 3], [4, 5]]),
    "map of a prefetch": (
        lambda slow: six(slow).prefetch(1).map(lambda n: n * 10),
        [0, 10, 20, 30, 40, 50],
    ),
    "batch of a prefetch": (
        lambda slow: six(slow).prefetch(2).batch(4),
        [[0, 1, 2, 3], [4, 5]],
    ),
    "filter": (lambda slow: six(slow).filter(lambda n: n % 2 > 0), [1, 3, 5]),
    "scan": (
        lambda slow: six(slow).apply(experimental.scan(np.int64(0), lambda s, n: (s + n, s + n))),
        [0, 1, 3, 6, 10, 15],
    ),
    "flat map": (lambda slow: Dataset.range(2).flat_map(twice_three(slow)), NUMBERS),
    "flat map with threads": (
        lambda slow: Dataset.range(2).flat_map(lambda n: twice_three(slow)(n).prefetch(1)),
        NUMBERS,
    ),
    "interleave": (lambda slow: Dataset.range(2).interleave(twice_three(slow), 2), IN_TURN),
    "parallel interleave": (
        lambda slow: Dataset.range(2).interleave(twice_three(slow), 2, num_parallel_calls=2),
        IN_TURN,
    ),
    "zip": (
        lambda slow: Dataset.zip((Dataset.range(6), six(slow))).map(lambda a, b: a + b),
        [0, 2, 4, 6, 8, 10],
    ),
    "cache": (lambda slow: six(slow).cache().repeat(2), NUMBERS + NUMBERS),
    "unbatch": (lambda slow: six(slow).batch(3).apply(experimental.unbatch()), NUMBERS),
    "statistics": (
        lambda slow: six(slow).prefetch(1).apply(experimental.latency_stats("time")),
        NUMBERS,
    ),
}


def until_it_waits(sess, element):
    """The elements of the steps before one that runs out of time."""
    found = []
    while True:
        try:
            found.append(np.asarray(sess.run(element, options=SOON)).tolist())
        except tf.errors.DeadlineExceededError as error:
            assert error.op is not None
            return found


def the_rest(sess, element):
    """The elements that are left; steps that ran out of time are run again."""
    found = []
    while True:
        try:
            found.append(np.asarray(sess.run(element, options=SOON)).tolist())
        except tf.errors.DeadlineExceededError:
            pass  # the machine is busy
        except tf.errors.OutOfRangeError:
            return found


@pytest.mark.parametrize("name", PIPELINES)
def test_the_next_step_gets_the_element_that_a_step_has_not_waited_for(name, slow):
    build, expected = PIPELINES[name]
    element = tf.data.make_one_shot_iterator(build(slow)).get_next()
    with tf.Session() as sess:
        found = until_it_waits(sess, element)
        slow.may_end.set()
        assert found + the_rest(sess, element) == expected
        assert sorted(slow.seen) == NUMBERS  # each once
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(element)


@pytest.mark.parametrize("event_driven", [False, True])
def test_so_does_a_step_without_a_deadline_and_one_that_takes_an_optional(event_driven, slow):
    iterator = tf.data.make_one_shot_iterator(six(slow))
    element = iterator.get_next()
    optional = experimental.get_next_as_optional(iterator)
    value = optional.get_value()
    config = tf.ConfigProto()
    if event_driven:
        config.experimental.executor_type = "DATAFLOW"
    with tf.Session(config=config) as sess:
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
        for fetch in (element, value, element):
            with pytest.raises(tf.errors.DeadlineExceededError) as error:
                sess.run(fetch, options=SOON)
            assert error.value.op.type.startswith("IteratorGetNext")
            assert "test_left_elements.py" in str(error.value)
        slow.may_end.set()
        assert [sess.run(value), sess.run(element), sess.run(value)] == [3, 4, 5]
        assert not sess.run(optional.has_value())


def test_an_error_and_the_end_wait_for_the_next_step_too():
    waiting, may_end = threading.Event(), threading.Event()

    def elements():
        yield 1
        waiting.set()
        assert may_end.wait(SECONDS)
        raise ValueError("bad element")

    element = Dataset.from_generator(elements, tf.int64, []).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 1
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(element, options=SOON)
        assert waiting.is_set()
        may_end.set()
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad element") as error:
            sess.run(element)
        assert error.value.op is element.op
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(element)


def test_beginning_again_drops_the_element_and_ends_its_threads(slow):
    """The conftest looks for threads that are left."""
    iterator = tf.data.make_initializable_iterator(
        Dataset.range(2).interleave(twice_three(slow), 1, num_parallel_calls=1).batch(1)
    )
    element = iterator.get_next()
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert [sess.run(element).tolist() for _ in range(3)] == [[0], [1], [2]]
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(element, options=SOON)
        assert slow.begun.is_set()
        sess.run(iterator.initializer)
        assert [sess.run(element).tolist() for _ in range(3)] == [[0], [1], [2]]
        slow.may_end.set()
        assert [sess.run(element).tolist() for _ in range(3)] == [[3], [4], [5]]


def test_closing_the_session_does_not_wait_for_it(slow):
    element = tf.data.make_one_shot_iterator(slow.generated()).get_next()
    sess = tf.Session()
    assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(element, options=SOON)
    sess.close()
    assert 3 not in slow.seen


# Checkpoints --------------------------------------------------------------------------------------


def described(build):
    iterator = tf.data.make_initializable_iterator(build())
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator, "ignore")])
    return iterator, iterator.get_next(), saver


SAVED = ["map", "parallel map", "prefetch", "batch", "map of a prefetch", "flat map", "interleave"]


@pytest.mark.parametrize("name", SAVED)
def test_an_element_that_is_being_made_is_saved(name, slow, tmp_path):
    build, expected = PIPELINES[name]
    path = str(tmp_path / "at")
    with tf.Graph().as_default():
        iterator, element, saver = described(lambda: build(slow))
        with tf.Session() as sess:
            sess.run(iterator.initializer)
            found = until_it_waits(sess, element)
            saving = threading.Thread(target=saver.save, args=(sess, path))
            saving.start()
            slow.may_end.set()
            saving.join(SECONDS)
            rest = the_rest(sess, element)
    assert found + rest == expected
    with tf.Graph().as_default():
        _, element, saver = described(lambda: build(Slow(None)))
        with tf.Session() as sess:
            saver.restore(sess, path)
            assert the_rest(sess, element) == rest


# Iterators by themselves --------------------------------------------------------------------------


class Stop(Exception):
    """The step has to stop."""


def stop():
    raise Stop


def never():
    """The step goes on."""


class Waiting(SameNumber):
    """The elements of a source, each made when it may be; those of ``errors`` fail."""

    def __init__(self, source, errors=()):
        self.source, self.errors = source, errors
        self.sources = (source,)
        self.may_go_on = threading.Event()
        self.closed = threading.Semaphore(0)

    def iterate(self, run):
        return _Waiting(self.source.iterate(run), self, run)


class _Waiting(Stage):
    def __init__(self, source, how, run):
        super().__init__(source)
        self.how, self.run = how, run

    def next(self):
        assert self.how.may_go_on.wait(SECONDS)
        element = self.source.next()
        if element is not END and element[0] in self.how.errors:
            raise tf.errors.DataLossError(None, None, f"no {element[0]}")
        return element

    def close(self):
        super().close()
        self.how.closed.release()


def numbers(count=3):
    return Numbers(0, count, 1, np.dtype(np.int64))


def begun(pipeline):
    state = IteratorState("it")
    state.start(pipeline, never)
    return state


def stopped(state):
    """A step asks for an element and does not wait for it."""
    with limited_by(stop), pytest.raises(Stop):
        state.next(stop)


def restored(saved, pipeline):
    state = begun(pipeline)
    state.restore(saved, never)
    return state


def test_saving_waits_for_the_element_as_long_as_its_step_may():
    pipeline = Waiting(numbers())
    state = begun(pipeline)
    stopped(state)
    with pytest.raises(Stop):
        state.save(stop, str)
    pipeline.may_go_on.set()
    again = restored(state.save(never, str), pipeline)
    for one in (state, again):
        assert [one.next(never)[0] for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            one.next(never)


def test_the_end_and_an_error_that_nobody_has_seen_are_saved():
    pipeline = Waiting(numbers(1), errors=[0])
    state = begun(pipeline)
    stopped(state)
    pipeline.may_go_on.set()
    again = restored(state.save(never, str), pipeline)
    for one in (state, again):
        with pytest.raises(tf.errors.DataLossError, match="no 0"):
            one.next(never)
    pipeline.may_go_on.clear()
    stopped(state)
    pipeline.may_go_on.set()
    again = restored(state.save(never, str), pipeline)
    for one in (state, again):
        with pytest.raises(tf.errors.OutOfRangeError):
            one.next(never)


def test_an_element_that_was_saved_is_saved_again():
    pipeline = Waiting(Prefetch(numbers(), 1))
    state = begun(pipeline)
    stopped(state)
    pipeline.may_go_on.set()
    again = restored(restored(state.save(never, str), pipeline).save(never, str), pipeline)
    assert [again.next(never)[0] for _ in range(3)] == [0, 1, 2]
    for one in (state, again):
        one.abandon(tf.errors.CancelledError(None, None, "gone"))


@pytest.mark.parametrize("bad", [3, [], [None], [None, None, None], [7, None], [None, "no error"]])
def test_a_damaged_element_is_an_error_and_changes_nothing(bad):
    pipeline = Waiting(numbers())
    state = begun(pipeline)
    pipeline.may_go_on.set()
    good = decoded(state.save(never, str))
    pipeline.may_go_on.clear()
    stopped(state)
    with pytest.raises(DataLossError, match="does not fit"):
        state.restore(encoded([*good, bad]), never)
    pipeline.may_go_on.set()
    assert [state.next(never)[0] for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("how", ["again", "restored", "abandoned"])
def test_what_an_element_begins_after_its_traversal_was_closed_is_closed(how):
    pipeline = Waiting(numbers())
    state = begun(pipeline)
    saved = state.save(never, str)
    stopped(state)
    if how == "again":
        state.start(numbers(), never)
    elif how == "restored":
        state.restore(saved, never)
    else:
        state.abandon(tf.errors.CancelledError(None, None, "gone"))
    assert pipeline.closed.acquire(timeout=SECONDS)
    pipeline.may_go_on.set()
    assert pipeline.closed.acquire(timeout=SECONDS)


def test_an_element_whose_iterator_begins_again_stops_where_it_looks():
    asked, told = threading.Event(), threading.Event()

    class Looking(Traversal):
        def __init__(self, run):
            self.run = run

        def next(self):
            pause = threading.Event()
            asked.set()
            try:
                while not pause.wait(0.01):
                    self.run.check()
            except tf.errors.CancelledError:
                told.set()
                raise

    class Endless(Pipeline):
        def iterate(self, run):
            return Looking(run)

    state = begun(Endless())
    stopped(state)
    assert asked.wait(SECONDS)
    state.start(numbers(), never)
    assert told.wait(SECONDS)
    assert state.next(never)[0] == 0


@pytest.mark.parametrize("is_above", [False, True])
def test_a_step_that_stops_waiting_for_input_takes_none(is_above, slow):
    """As on SIGTERM: it need not have a deadline."""
    dataset = six(slow).prefetch(1)
    element = (dataset if is_above else dataset.batch(1)).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        found, may_interrupt = [], threading.Event()

        def step():
            found.append(threading.get_ident())
            may_interrupt.set()
            try:
                sess.run(element)
            except tf.errors.OpError as error:
                found.append(error)

        assert [int(np.sum(sess.run(element))) for _ in range(3)] == [0, 1, 2]
        thread = threading.Thread(target=step)
        thread.start()
        assert may_interrupt.wait(SECONDS)
        sess._interrupt_steps_of(found[0], "leaving")
        thread.join(SECONDS)
        assert isinstance(found[1], tf.errors.CancelledError) and "leaving" in str(found[1])
        slow.may_end.set()
        assert [int(np.sum(sess.run(element))) for _ in range(3)] == [3, 4, 5]
