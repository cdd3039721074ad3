"""Producers, batches and readers through queues: the values, summaries and names of TensorFlow."""

from __future__ import annotations

import contextlib

import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()


def fetched(tf, build, most=100):
    """What steps give until the input ends."""
    found = []
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(7)
        fetches = build(tf)
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            with contextlib.suppress(tf.errors.OutOfRangeError):
                while len(found) < most:
                    found.append(sess.run(fetches))
        finally:
            coordinator.request_stop()
            coordinator.join(threads)
    return found


def assert_same_input(build):
    ours, theirs = (fetched(tf, build) for tf in (runnel, reference))
    assert len(ours) == len(theirs)
    assert_same_values(ours, theirs)


def numbers(tf, count, epochs=1):
    return tf.train.range_input_producer(count, epochs, shuffle=False).dequeue()


INPUTS = {
    "a range in order": lambda tf: numbers(tf, 5, 2),
    "a range shuffled": lambda tf: tf.train.range_input_producer(7, 3, seed=11).dequeue(),
    "strings": lambda tf: tf.train.string_input_producer(["a", "b"], 2, shuffle=False).dequeue(),
    "strings shuffled": lambda tf: tf.train.string_input_producer(
        ["a", "b", "c"], 3, seed=5
    ).dequeue(),
    "rows": lambda tf: tf.train.input_producer(
        [[1.0, 2.0], [3.0, 4.0]], num_epochs=2, shuffle=False
    ).dequeue(),
    "slices": lambda tf: tf.train.slice_input_producer(
        [tf.constant([[1], [2], [3]]), tf.constant([b"x", b"y", b"z"])], 2, seed=3
    ),
    "epochs": lambda tf: tf.train.limit_epochs(tf.constant([4, 5]), 3),
    "batch of some": lambda tf: tf.train.maybe_batch(
        [(n := numbers(tf, 9)), n * 2], tf.equal(n % 2, 0), 2
    ),
    "batch of some rows": lambda tf: tf.train.maybe_batch(
        [numbers(tf, 4) + tf.constant([0, 10, 20])],
        tf.constant([True, False, True]),
        2,
        enqueue_many=True,
    ),
    "joined batch of some": lambda tf: tf.train.maybe_batch_join(
        [[(n := numbers(tf, 9))]], n > 2, 3, allow_smaller_final_batch=True
    ),
    "padded": lambda tf: tf.train.batch([tf.fill([(n := numbers(tf, 6))], n)], 3, dynamic_pad=True),
}


@pytest.mark.parametrize("name", INPUTS)
def test_steps_give_the_same(name):
    assert_same_input(INPUTS[name])


SHUFFLED = {
    "batch": lambda tf: tf.train.shuffle_batch([numbers(tf, 21)], 3, 10, 4, seed=2),
    "join": lambda tf: tf.train.shuffle_batch_join([[numbers(tf, 21)]], 3, 10, 4, seed=2),
    "some": lambda tf: tf.train.maybe_shuffle_batch(
        [(n := numbers(tf, 30))], 3, 10, 4, tf.equal(n % 3, 0), allow_smaller_final_batch=True
    ),
    "some joined": lambda tf: tf.train.maybe_shuffle_batch_join(
        [[(n := numbers(tf, 30))]], 3, 10, 4, tf.equal(n % 3, 0), allow_smaller_final_batch=True
    ),
    "two sources": lambda tf: tf.train.shuffle_batch_join(
        [[numbers(tf, 10)], [numbers(tf, 10) + 50]], 2, 10, 4
    ),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled_batches_have_the_same_examples(name):
    """In which order depends on how fast the queue was filled."""
    ours, theirs = (fetched(tf, SHUFFLED[name]) for tf in (runnel, reference))
    assert [batch.shape for batch in ours] == [batch.shape for batch in theirs]
    assert sorted(n for batch in ours for n in batch) == sorted(n for b in theirs for n in b)


SUMMARIZED = {
    "strings": lambda tf: tf.train.string_input_producer(["a", "b"], capacity=9),
    "named strings": lambda tf: tf.train.string_input_producer(["a", "b"], name="files"),
    "range": lambda tf: tf.train.range_input_producer(5, capacity=7),
    "slices": lambda tf: tf.train.slice_input_producer([tf.constant([1, 2])]),
    "rows": lambda tf: tf.train.input_producer([1, 2]),
    "named rows": lambda tf: tf.train.input_producer([1, 2], summary_name="full", name="rows"),
    "batch": lambda tf: tf.train.batch([tf.constant(1)], 2, capacity=8),
    "batch_join": lambda tf: tf.train.batch_join([[tf.constant(1)]], 2, name="joined"),
    "shuffle_batch": lambda tf: tf.train.shuffle_batch([tf.constant(1)], 2, 10, 4),
    "shuffle_batch_join": lambda tf: tf.train.shuffle_batch_join([[tf.constant(1)]], 2, 9, 4),
    "twice": lambda tf: [tf.train.batch([tf.constant(1)], 2) for _ in range(2)],
}


def summaries(tf, build):
    """Tags and values of all summaries, and how the queues are called."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        build(tf)
        queues = [op.name for op in graph.get_operations() if "Queue" in op.type]
        merged = tf.summary.merge_all()
        if merged is None:
            return queues, []
        summary = tf.Summary.FromString(sess.run(merged))
        return queues, [(value.tag, value.simple_value) for value in summary.value]


@pytest.mark.parametrize("name", SUMMARIZED)
def test_queues_have_the_same_summaries(name):
    build = SUMMARIZED[name]
    assert summaries(runnel, build) == summaries(reference, build)


def filled(tf):
    """How full a queue is that holds three of its five elements, one of which must stay."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.train.shuffle_batch([tf.constant([1, 2, 3])], 1, 5, 1, enqueue_many=True)
        (runner,) = graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        sess.run(runner.enqueue_ops[0])
        return tf.Summary.FromString(sess.run(tf.summary.merge_all())).value[0].simple_value


def test_a_summary_says_how_full_a_queue_is():
    assert filled(runnel) == filled(reference) == 0.5


def sparse_batch(tf, enqueue_many):
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    return tf.train.batch([sparse, tf.constant([1, 2])], 2, enqueue_many=enqueue_many)[0]


@pytest.mark.parametrize("enqueue_many", [False, True])
def test_a_sparse_batch_has_a_known_rank(enqueue_many):
    shapes = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            batch = sparse_batch(tf, enqueue_many)
            shapes.append((batch.indices.shape.as_list(), batch.dense_shape.shape.as_list()))
    assert shapes[0] == shapes[1]


def lines(tf, path):
    names = tf.train.string_input_producer([str(path)], 2, shuffle=False)
    key, value = tf.TextLineReader(skip_header_lines=1).read(names)
    return tf.train.batch([key, value], 2)


def pieces(tf, path):
    names = tf.train.string_input_producer([str(path)], 1)
    return tf.FixedLengthRecordReader(4, 2, 3, 2).read(names)


def whole(tf, path):
    return tf.WholeFileReader().read(tf.train.string_input_producer([str(path)], 2))


def some_lines(tf, path):
    names = tf.train.string_input_producer([str(path)], 1)
    return tf.TextLineReader().read_up_to(names, 3)


def identities(tf, path):
    return tf.IdentityReader().read(tf.train.string_input_producer(["x", "y"], 2, shuffle=False))


@pytest.mark.parametrize("build", [lines, pieces, whole, some_lines, identities])
def test_readers_behind_queues_give_the_same(build, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"head\none\ntwo\nthree\nfour five\n")
    assert_same_input(lambda tf: build(tf, path))


@pytest.mark.parametrize("hop", [0, 2, 3, 4, 7])
def test_pieces_of_a_file_may_overlap_or_leave_gaps(hop, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(41)))

    def build(tf):
        names = tf.train.string_input_producer([str(path)], 1)
        return tf.FixedLengthRecordReader(4, 1, 2, hop).read(names)

    assert_same_input(build)
