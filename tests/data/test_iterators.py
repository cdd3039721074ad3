"""Iterators within sessions: threads that end, steps that stop, elements that are the caller's."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest

import runnel as tf
from runnel.pipelines.buffering import Prefetch
from runnel.pipelines.iterator_state import IteratorState
from runnel.pipelines.pipeline import Pipeline, PipelineRun, Traversal
from runnel.pipelines.sources import Numbers

Dataset = tf.data.Dataset


def threads_of_data():
    return [t for t in threading.enumerate() if t.name.startswith("runnel-data")]


def await_no_threads(seconds=10):
    for thread in threads_of_data():
        thread.join(seconds)
    assert threads_of_data() == []


def test_threads_end_with_the_session():
    dataset = Dataset.range(10**9).map(lambda n: n + 1, num_parallel_calls=2).prefetch(3)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 1
        assert threads_of_data()
    await_no_threads()


class AbandonedMeanwhile(PipelineRun):
    """Has an iterator be abandoned in the middle of its next step."""

    def __init__(self, state: IteratorState) -> None:
        object.__setattr__(self, "state", state)
        super().__init__()

    def __setattr__(self, name, value):
        if name == "check" and self.state.is_started:
            self.state.abandon(tf.errors.CancelledError(None, None, "gone"))
        super().__setattr__(name, value)


@pytest.mark.parametrize("is_prefetched", [False, True])
def test_a_step_whose_iterator_is_abandoned_meanwhile_is_told_so(is_prefetched):
    """Neither that the elements have ended nor that nobody has begun with them."""
    source = Numbers(0, 3, 1, np.dtype(np.int64))
    state = IteratorState("it")
    state.start(Prefetch(source, 1) if is_prefetched else source, lambda: None)
    assert state.next(lambda: None)[0] == 0
    state._run = AbandonedMeanwhile(state)
    with pytest.raises(tf.errors.CancelledError, match="gone"):
        for _ in range(3):
            state.next(lambda: None)
    await_no_threads()


@pytest.mark.parametrize("error", [RuntimeError, CancelledError])
def test_whatever_fails_because_its_iterator_is_abandoned_is_told_so(error):
    """Threads take no more work, and what they had to do is dropped."""
    state = IteratorState("it")

    class Ending(Traversal):
        def next(self):
            state.abandon(tf.errors.CancelledError(None, None, "gone"))
            raise error

    class EndingPipeline(Pipeline):
        def iterate(self, run):
            return Ending()

    state.start(EndingPipeline(), lambda: None)
    with pytest.raises(tf.errors.CancelledError, match="gone"):
        state.next(lambda: None)


def test_what_begins_while_its_iterator_is_abandoned_is_closed():
    state = IteratorState("it")
    closed = []

    class Abandoning(Pipeline):
        def iterate(self, run):
            state.abandon(tf.errors.CancelledError(None, None, "gone"))
            traversal = Traversal()
            traversal.close = lambda: closed.append(True)
            return traversal

    with pytest.raises(tf.errors.CancelledError, match="gone"):
        state.start(Abandoning(), lambda: None)
    assert closed


def test_threads_end_with_the_elements():
    element = Dataset.range(3).prefetch(1).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            sess.run(element)
        await_no_threads()
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(element)


def test_beginning_again_ends_the_threads_of_before():
    iterator = Dataset.range(10**6).prefetch(2).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as sess:
        for _ in range(5):
            sess.run(iterator.initializer)
            assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
        assert len(threads_of_data()) <= 2
    await_no_threads()


def test_a_step_that_finds_no_element_stops_in_time():
    """A filter that lets nothing pass would look for ever."""
    element = Dataset.range(10**15).filter(lambda n: n < 0).make_one_shot_iterator().get_next()
    with tf.Session() as sess, pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(element, options=tf.RunOptions(timeout_in_ms=200))


def test_a_step_that_waits_for_a_thread_stops_in_time():
    release = threading.Event()

    def stuck():
        yield 1
        release.wait(30)

    element = (
        Dataset.from_generator(stuck, tf.int64, []).prefetch(1).make_one_shot_iterator().get_next()
    )
    with tf.Session() as sess:
        assert sess.run(element) == 1
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(element, options=tf.RunOptions(timeout_in_ms=200))
        release.set()
    await_no_threads()


def test_closing_a_session_ends_a_step_that_waits():
    begun, release, found = threading.Event(), threading.Event(), []

    def stuck():
        begun.set()
        release.wait(30)
        yield 1

    element = (
        Dataset.from_generator(stuck, tf.int64, []).prefetch(1).make_one_shot_iterator().get_next()
    )
    sess = tf.Session()

    def step():
        try:
            sess.run(element)
        except tf.errors.OpError as error:
            found.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    assert begun.wait(30)
    sess.close()
    thread.join(30)
    release.set()
    assert isinstance(found[0], tf.errors.CancelledError)
    await_no_threads()


def test_steps_of_several_threads_share_the_elements():
    element = Dataset.range(400).map(lambda n: n * 2).make_one_shot_iterator().get_next()
    found = [[] for _ in range(4)]
    with tf.Session() as sess:

        def steps(mine):
            try:
                while True:
                    mine.append(int(sess.run(element)))
            except tf.errors.OutOfRangeError:
                pass

        threads = [threading.Thread(target=steps, args=(mine,)) for mine in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(n for mine in found for n in mine) == list(range(0, 800, 2))
    assert all(mine == sorted(mine) for mine in found)


@pytest.mark.parametrize(
    "how", [lambda d: d, lambda d: d.cache(), lambda d: d.map(lambda x: x).cache()]
)
def test_an_element_belongs_to_who_fetches_it(how):
    rows = np.ones((2, 3), np.float32)
    dataset = how(Dataset.from_tensor_slices(rows)).repeat(2)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        for _ in range(4):
            got = sess.run(element)
            np.testing.assert_array_equal(got, np.ones(3))
            got[:] = 7
    np.testing.assert_array_equal(rows, 1)


def test_two_sessions_iterate_on_their_own():
    element = Dataset.range(5).make_one_shot_iterator().get_next()
    with tf.Session() as first, tf.Session() as second:
        assert [first.run(element), first.run(element), second.run(element)] == [0, 1, 0]


def test_an_iterator_that_was_not_begun_says_so():
    iterator = Dataset.range(5).make_initializable_iterator()
    element = iterator.get_next()
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.FailedPreconditionError, match="initializer"),
    ):
        sess.run(element)


def test_several_get_next_in_a_step_take_an_element_each():
    iterator = Dataset.range(10).make_one_shot_iterator()
    pair = [iterator.get_next(), iterator.get_next()]
    with tf.Session() as sess:
        assert sorted(sess.run(pair)) == [0, 1]
        assert sorted(sess.run(pair)) == [2, 3]


def test_a_model_is_trained_by_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    dataset = Dataset.from_tensor_slices((x, y)).shuffle(200, seed=1).repeat().batch(20).prefetch(2)
    features, labels = dataset.make_one_shot_iterator().get_next()
    weights = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - labels))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(100):
            sess.run(train)
        np.testing.assert_allclose(sess.run(weights).ravel(), [1, -2, 0.5], atol=1e-2)


def test_memory_of_a_shuffle_is_that_of_its_buffer():
    import tracemalloc

    element = (
        Dataset.range(10**9).shuffle(100, seed=1).batch(50).make_one_shot_iterator().get_next()
    )
    with tf.Session() as sess:
        for _ in range(20):
            sess.run(element)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            sess.run(element)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 200_000


@pytest.mark.parametrize("scope", ["", "imported"])
def test_a_graph_with_a_dataset_is_written_and_read(scope):
    with tf.Graph().as_default() as graph:
        factor = tf.constant(3, tf.int64) * 2
        dataset = (
            Dataset.range(10)
            .map(lambda n: n * factor)
            .filter(lambda n: tf.equal(n % 4, 0))
            .flat_map(lambda n: Dataset.range(n, n + 2))
            .batch(3)
        )
        dataset.make_one_shot_iterator().get_next(name="element")
        text = graph.as_graph_def().SerializeToString()
    (element,) = tf.import_graph_def(
        tf.GraphDef.FromString(text), return_elements=["element:0"], name=scope
    )
    with tf.Session() as sess:
        assert sess.run(element).tolist() == [0, 1, 12]
        assert sess.run(element).tolist() == [13, 24, 25]


def test_elements_are_sampled_by_weight():
    datasets = [Dataset.from_tensors(i).repeat() for i in range(3)]
    sampled = tf.data.experimental.sample_from_datasets(datasets, [0.5, 0.0, 0.5], seed=4)
    element = sampled.batch(400).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        counts = np.bincount(sess.run(element), minlength=3)
    assert counts[1] == 0 and 120 < counts[0] < 280


def test_options_are_taken_and_kept():
    options = tf.data.Options()
    options.experimental_deterministic = False
    more = tf.data.Options()
    more.experimental_slack = True
    dataset = Dataset.range(3).with_options(options).with_options(more)
    assert dataset.options().experimental_deterministic is False
    assert dataset.options().experimental_slack is True
    assert dataset.options() != options and Dataset.range(3).options() == tf.data.Options()
    with pytest.raises(AttributeError):
        options.experimental_speed = 9
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]


def test_the_handle_of_an_iterator_is_one_string_also_of_a_finalized_graph():
    rows = tf.data.Dataset.range(3)
    iterators = [rows.make_one_shot_iterator(), rows.make_initializable_iterator()]
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    tf.get_default_graph().finalize()
    with tf.Session() as sess:
        sess.run(iterators[1].initializer)
        for iterator in iterators:
            assert iterator.string_handle() is iterator.string_handle()
            assert sess.run(fed, {handle: sess.run(iterator.string_handle())}) == 0


def test_a_handle_of_another_process_stands_for_no_iterator_of_this_one():
    iterator = Dataset.range(3).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        ours = sess.run(iterator.string_handle())
        sign, process, rest = ours.split(b":", 2)
        assert sess.run(element, {handle: ours}) == 0
        theirs = b":".join([sign, b"1.0123456789abcdef", rest])
        with pytest.raises(tf.errors.InvalidArgumentError, match="another process .*tf.device"):
            sess.run(element, {handle: theirs})
        gone = b":".join([sign, process, b"999999:gone"])
        with pytest.raises(tf.errors.InvalidArgumentError, match="no iterator of this process"):
            sess.run(element, {handle: gone})


@pytest.mark.parametrize(
    ("types", "shapes", "words"),
    [
        (tf.float32, [], "Data type of component 0 .*expected float32 but got int64"),
        (tf.string, [], "Data type of component 0 .*expected string but got int64"),
        ((tf.int64, tf.int64), ([], []), "Number of components .*expected 2 but got 1"),
        (tf.int64, [2], r"Shape of component 0 .*expected \(2,\) but got \(\)"),
        (tf.int64, None, None),
    ],
)
def test_a_handle_of_other_elements_is_refused(types, shapes, words):
    iterator = Dataset.range(3).make_one_shot_iterator()
    handle = tf.placeholder(tf.string, [])
    shapes = tf.nest.map_structure(tf.TensorShape, shapes) if isinstance(shapes, tuple) else shapes
    element = tf.data.Iterator.from_string_handle(handle, types, shapes).get_next()
    with tf.Session() as sess:
        fed = {handle: sess.run(iterator.string_handle())}
        if words is None:
            assert sess.run(element, fed) == 0
            return
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            sess.run(element, fed)


def _with_other_types(graph, kind):
    """The ``GraphDef`` of a graph, where operations of ``kind`` say other types of the elements."""
    given = graph.as_graph_def()
    for node in given.node:
        if node.op == kind:
            types = node.attr["output_types"].list.type
            shapes = node.attr["output_shapes"].list.shape
            types.append(types[0])
            shapes.add().CopyFrom(shapes[0])
    return given


@pytest.mark.parametrize(
    "kind", ["IteratorGetNext", "OptionalGetValue", "DatasetToSingleElement", "ReduceDataset"]
)
def test_elements_that_are_not_of_the_types_that_a_graph_says_are_refused(kind):
    with tf.Graph().as_default() as graph:
        numbers = Dataset.range(5).take(1)
        iterator = numbers.make_one_shot_iterator()
        if kind == "OptionalGetValue":
            tf.data.experimental.get_next_as_optional(iterator).get_value()
        elif kind == "DatasetToSingleElement":
            tf.data.experimental.get_single_element(numbers)
        elif kind == "ReduceDataset":
            numbers.reduce(np.int64(0), lambda a, b: a + b)
        else:
            iterator.get_next()
        given = _with_other_types(graph, kind)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(given, name="")
        op = next(op for op in graph.get_operations() if op.type == kind)
        with (
            tf.Session() as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="expected 2"),
        ):
            sess.run(op.outputs)
