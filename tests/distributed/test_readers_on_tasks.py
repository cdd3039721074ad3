"""Readers on a task of a cluster, with their queues of names, used by steps of another."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import servers

pytestmark = pytest.mark.timeout(120)
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=1) as found:
        yield found


def lines(path):
    return tf.TextLineReader(), [b"%s:%d" % (str(path).encode(), i) for i in (1, 2, 3)]


def pieces(path):
    return tf.FixedLengthRecordReader(4), [b"%s:%d" % (str(path).encode(), i) for i in range(3)]


def session(server):
    return tf.Session(server.target, config=tf.ConfigProto(isolate_session_state=True))


@pytest.mark.parametrize("master", ["worker0", "ps0"])
@pytest.mark.parametrize("make", [lines, pieces])
def test_a_reader_of_one_task_feeds_steps_of_another(cluster, master, make, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nsix\n")
    with tf.Graph().as_default():
        with tf.device(PS):
            names = tf.train.string_input_producer([str(path)], num_epochs=2)
            reader, keys = make(path)
            key, value = reader.read(names)
            produced = reader.num_records_produced()
        with tf.device(WORKER):
            pair = tf.stack([key, tf.string_join([value, "!"])])
        with session(cluster[master]) as sess:
            sess.run(tf.local_variables_initializer())
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            found = [sess.run(pair).tolist() for _ in range(6)]
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(pair)
            assert sess.run(produced) == 6
            coord.request_stop()
            coord.join(threads)
    assert [one for one, _ in found] == 2 * keys
    assert [value.strip(b"\n!") for _, value in found] == 2 * [b"one", b"two", b"six"]


def _names_for_a_reader(path, names):
    _, value = tf.TextLineReader().read(names)
    return value, str(path)


def _function_that_waits(path, names):
    """A function of the user's that takes from what another step puts there."""
    found = threading.Semaphore(0)

    def wait():
        assert found.acquire(timeout=60)
        return np.array(b"one", object)

    def tell(name):
        found.release()
        return name

    return tf.py_func(wait, [], tf.string), lambda: tf.py_func(tell, ["file"], tf.string)


@pytest.mark.parametrize("make", [_names_for_a_reader, _function_that_waits])
def test_what_waits_on_its_thread_is_reached_by_what_it_waits_for(cluster, make, tmp_path):
    """Both come through one channel: the thread that reads it must not be the one that waits."""
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    with tf.Graph().as_default():
        with tf.device(PS):
            names = tf.FIFOQueue(10, tf.string, [])
            value, given = make(path, names)
            bring = names.enqueue(given() if callable(given) else given)
        with session(cluster["worker0"]) as sess:
            for _ in range(6):  # so often that the part is known to take no time
                sess.run(bring)
                assert sess.run(value) == b"one"
            found = []
            waiting = threading.Thread(target=lambda: found.append(sess.run(value)))
            waiting.start()
            deadline = time.monotonic() + 60
            while not cluster["ps0"].host.runs:
                assert time.monotonic() < deadline
            sess.run(bring)
            waiting.join(60)
    assert found == [b"one"]


def test_steps_of_two_sessions_share_a_reader(cluster, tmp_path):
    """What one has read the other does not get: the reader is its task's."""
    path = tmp_path / "file"
    path.write_bytes(b"1\n2\n3\n4\n")
    with tf.Graph().as_default():
        with tf.device(PS):
            names = tf.FIFOQueue(2, tf.string, [], shared_name="names")
            _, value = tf.TextLineReader(name="shared_lines").read(names)
            put = names.enqueue(str(path))
        with tf.Session(cluster["worker0"].target) as one, tf.Session(cluster["ps0"].target) as two:
            one.run(put)
            found = [sess.run(value) for sess in (one, two, two, one)]
    assert found == [b"1", b"2", b"3", b"4"]
