"""Datasets on a task of a cluster, with their functions, used by steps of another."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import cluster_of, process, servers

pytestmark = pytest.mark.timeout(120)
Dataset = tf.data.Dataset
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=1) as found:
        yield found


def numbers():
    """A dataset with functions in functions, that captures a tensor."""
    offset = tf.constant(100, tf.int64) * 10
    inner = lambda n: Dataset.range(n).map(lambda k: k + offset)  # noqa: E731
    return Dataset.range(4).interleave(inner, 2).filter(lambda n: n >= 0).batch(2)


def session(server):
    """Of which no other session sees the iterators."""
    return tf.Session(server.target, config=tf.ConfigProto(isolate_session_state=True))


EXPECTED = [[1000, 1000], [1001, 1000], [1001, 1002]]


@pytest.mark.parametrize("one_shot", [True, False])
@pytest.mark.parametrize("master", ["worker0", "ps0"])
def test_a_dataset_of_one_task_feeds_steps_of_another(cluster, one_shot, master):
    with tf.Graph().as_default():
        with tf.device(PS):
            if one_shot:
                iterator = numbers().make_one_shot_iterator()
            else:
                iterator = numbers().make_initializable_iterator()
            element = iterator.get_next()
        with tf.device(WORKER):
            doubled = element * 2
        with session(cluster[master]) as sess:
            if not one_shot:
                sess.run(iterator.initializer)
            found = [sess.run(doubled).tolist() for _ in range(3)]
            assert found == (2 * np.array(EXPECTED)).tolist()
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(doubled)


def test_a_fed_handle_points_to_an_iterator_on_another_task(cluster):
    with tf.Graph().as_default():
        handle = tf.placeholder(tf.string, [])
        with tf.device(PS):
            train = numbers().make_initializable_iterator()
            test = Dataset.range(10, 14).batch(2).make_initializable_iterator()
            handles = [train.string_handle(), test.string_handle()]
            either = tf.data.Iterator.from_string_handle(handle, tf.int64, [None])
            element = either.get_next()
        with tf.device(WORKER):
            total = tf.reduce_sum(element)
        with session(cluster["worker0"]) as sess:
            sess.run([train.initializer, test.initializer])
            first, second = sess.run(handles)
            given = [sess.run(total, {handle: h}) for h in (first, second, second, first)]
            assert given == [2000, 21, 25, 2001]


@pytest.mark.parametrize("device", ["/cpu:0", f"{PS}/cpu:0"])
def test_elements_are_sent_to_a_device_of_the_task_that_makes_them(cluster, device):
    with tf.Graph().as_default():
        with tf.device(PS):
            there = numbers().apply(tf.data.experimental.prefetch_to_device(device))
            iterator = there.make_initializable_iterator()
            element = iterator.get_next()
        with session(cluster["worker0"]) as sess:
            sess.run(iterator.initializer)
            assert [sess.run(element).tolist() for _ in range(3)] == EXPECTED


def test_a_python_generator_of_another_process_is_refused_with_words(cluster):
    with tf.Graph().as_default():
        with tf.device(PS):
            dataset = Dataset.from_generator(lambda: iter([1]), tf.int64, [])
            element = dataset.make_one_shot_iterator().get_next()
        with (
            session(cluster["worker0"]) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="process that made it"),
        ):
            sess.run(element)


def test_a_dataset_of_another_process():
    spec = cluster_of(ps=1, worker=1)
    with process(spec, "ps", 0), tf.Graph().as_default():
        server = tf.train.Server(tf.train.ClusterSpec(spec), "worker", 0)
        try:
            with tf.device(PS):
                iterator = numbers().make_initializable_iterator()
                element = iterator.get_next()
                rest = tf.data.experimental.get_next_as_optional(iterator).has_value()
                rows = tf.ragged.constant([["a", "b"], []])
                sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.5, 2.5], [2, 2])
                parts = Dataset.from_tensors((rows, sparse)).make_initializable_iterator()
            with tf.device(WORKER):
                doubled = element * 2
            rows, sparse = parts.get_next()
            with session(server) as sess:
                sess.run([iterator.initializer, parts.initializer])
                found = sess.run([rows, sparse])
                assert found[0].to_list() == [[b"a", b"b"], []]
                assert found[1].values.tolist() == [1.5, 2.5]
                assert sess.run(doubled).tolist() == [2000, 2000]
                assert sess.run(rest)
        finally:
            server.stop()
