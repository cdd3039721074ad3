"""Readers between queues: a program of the old kind, its end, and steps that stop."""

from __future__ import annotations

import threading

import pytest

import runnel as tf


def test_examples_go_from_files_through_queues_into_batches(tmp_path):
    for i in range(3):
        with tf.python_io.TFRecordWriter(tmp_path / f"train-{i}.tfrecord") as writer:
            for j in range(4):
                example = tf.train.Example()
                example.features.feature["x"].int64_list.value.append(10 * i + j)
                writer.write(example.SerializeToString())
    files = tf.train.match_filenames_once(f"{tmp_path}/train-*")
    names = tf.train.string_input_producer(files, num_epochs=2, shuffle=False)
    _, record = tf.TFRecordReader().read(names)
    x = tf.parse_single_example(record, {"x": tf.FixedLenFeature([], tf.int64)})["x"]
    batch = tf.train.batch([x], 5, allow_smaller_final_batch=True)
    found = []
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while not coordinator.should_stop():
                found += sess.run(batch).tolist()
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    assert found == [10 * i + j for i in range(3) for j in range(4)] * 2


def test_a_reader_that_waits_for_a_name_stops_in_time():
    names = tf.FIFOQueue(3, tf.string, [[]])
    key, _ = tf.IdentityReader().read(names)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(key, options=tf.RunOptions(timeout_in_ms=200))
        sess.run(names.enqueue("name"))
        assert sess.run(key) == b"name"
        sess.run(names.close())
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(key)


def test_closing_a_session_ends_a_reader_that_waits():
    names = tf.FIFOQueue(3, tf.string, [[]])
    key, _ = tf.IdentityReader().read(names)
    sess, found = tf.Session(), []
    begun = threading.Event()

    def step():
        begun.set()
        try:
            sess.run(key)
        except Exception as error:  # noqa: BLE001 (what it is is asked below)
            found.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    assert begun.wait(30)
    sess.close()
    thread.join(30)
    assert isinstance(found[0], tf.errors.CancelledError | RuntimeError)


def test_a_damaged_file_is_reported_with_its_place(tmp_path):
    path = tmp_path / "file"
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(3):
            writer.write(b"record")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    names = tf.train.string_input_producer([str(path)], num_epochs=1)
    _, record = tf.TFRecordReader().read(names)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        assert [sess.run(record), sess.run(record)] == [b"record"] * 2
        with pytest.raises(tf.errors.DataLossError, match=f"{path}.*record at"):
            sess.run(record)
        coordinator.request_stop()
        coordinator.join(threads)


def test_only_readers_of_one_record_a_file_have_a_state():
    assert tf.WholeFileReader().supports_serialize and not tf.TextLineReader().supports_serialize
    state = tf.TextLineReader().serialize_state()
    with tf.Session() as sess, pytest.raises(tf.errors.UnimplementedError):
        sess.run(state)


def test_a_database_of_lmdb_is_refused_with_what_to_do_instead():
    with pytest.raises(tf.errors.UnimplementedError, match="TFRecordWriter"):
        tf.LMDBReader()
