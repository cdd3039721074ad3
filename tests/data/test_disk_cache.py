"""``cache(filename)``: elements out of a file that is complete or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import runnel as tf

Dataset = tf.data.Dataset


def given(dataset, most=100):
    with tf.Session() as sess:
        element = dataset.make_one_shot_iterator().get_next()
        found = []
        try:
            while len(found) < most:
                found.append(sess.run(element))
        except tf.errors.OutOfRangeError:
            pass
        return found


def counting(calls, count=4):
    def noted(n):
        calls.append(int(n))
        return n

    return Dataset.range(count).map(lambda n: tf.py_func(noted, [n], tf.int64, stateful=False))


def test_a_later_session_takes_elements_out_of_the_file(tmp_path):
    calls = []
    path = str(tmp_path / "kept")
    for _ in range(3):
        assert given(counting(calls).cache(path).repeat(2)) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]
    assert os.listdir(tmp_path) == ["kept.cache"]


def test_elements_of_every_kind_come_back(tmp_path):
    dataset = Dataset.range(3).map(
        lambda n: {
            "text": tf.as_string(n),
            "sparse": tf.SparseTensor([[n % 2]], [n], [2]),
            "half": tf.cast(tf.fill([2, 2], n), tf.bfloat16),
            "empty": tf.zeros([0, 3]),
        }
    )
    first = given(dataset)
    for found in (given(dataset.cache(str(tmp_path / "kept"))) for _ in range(2)):
        for a, b in zip(first, found, strict=True):
            assert a["text"] == b["text"]
            np.testing.assert_array_equal(a["sparse"].values, b["sparse"].values)
            np.testing.assert_array_equal(a["half"], b["half"])
            assert b["empty"].shape == (0, 3)


def test_a_traversal_that_ends_early_leaves_no_file(tmp_path):
    calls = []
    path = str(tmp_path / "kept")
    assert given(counting(calls).cache(path), most=2) == [0, 1]
    assert os.listdir(tmp_path) == []
    assert given(counting(calls).cache(path)) == [0, 1, 2, 3]


def test_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "kept"
    given(Dataset.range(4).cache(str(path)))
    file = tmp_path / "kept.cache"
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match=r"kept\.cache"):
        given(Dataset.range(4).cache(str(path)))


def test_a_process_that_is_killed_leaves_nothing_that_another_would_read(tmp_path):
    program = textwrap.dedent(
        """
        import sys, time
        import runnel as tf
        dataset = tf.data.Dataset.range(1000).cache(sys.argv[1])
        element = dataset.make_one_shot_iterator().get_next()
        with tf.Session() as sess:
            for _ in range(500):
                sess.run(element)
            print("half", flush=True)
            time.sleep(600)
        """
    )
    path = str(tmp_path / "kept")
    child = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    child.stdout.close()
    assert given(Dataset.range(5).cache(path)) == [0, 1, 2, 3, 4]


def test_the_file_holds_ragged_and_sparse_elements(tmp_path):
    rows = tf.ragged.constant([[b"a", b"b"], [], [b"c"]])
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
    dataset = Dataset.from_tensor_slices((rows, sparse)).batch(2).cache(str(tmp_path / "kept"))
    for _ in range(2):  # made, then read
        first, second = given(dataset)
        assert [first[0].to_list(), second[0].to_list()] == [[[b"a", b"b"], []], [[b"c"]]]
        assert [first[1].values.tolist(), second[1].indices.tolist()] == [[1.5], [[0, 0]]]


@pytest.mark.parametrize("stop", [0, 2, 6])
def test_an_iterator_over_it_goes_on_where_it_stood(stop, tmp_path):
    path = str(tmp_path / "kept")
    rest = []
    for restores in (False, True):
        with tf.Graph().as_default(), tf.Session() as sess:
            dataset = Dataset.range(4).map(lambda n: n * 2).cache(path).repeat(3)
            iterator = dataset.make_initializable_iterator()
            element = iterator.get_next()
            saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
            if restores:
                saver.restore(sess, str(tmp_path / "at"))
            else:
                sess.run(iterator.initializer)
                for _ in range(stop):
                    sess.run(element)
                saver.save(sess, str(tmp_path / "at"))
            rest.append([sess.run(element) for _ in range(12 - stop)])
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(element)
    assert rest[0] == rest[1] == [0, 2, 4, 6][stop % 4 :] + [0, 2, 4, 6] * (2 - stop // 4)
