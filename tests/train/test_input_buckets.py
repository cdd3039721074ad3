"""Batches of examples that are alike, or of which some are left out."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import runnel as tf

training = tf.contrib.training


def batches(fetches, most=1000):
    """What steps give until the input ends."""
    found = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while len(found) < most:
                found.append(sess.run(fetches))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30)
    return found


def numbers(count):
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_has_examples_of_one_bucket(threads):
    number = numbers(36)
    which, batch = training.bucket([number, number * 2], number % 3, 4, 3, num_threads=threads)
    seen = []
    for of, (singles, doubles) in batches((which, batch)):
        assert (singles % 3 == of).all()
        assert singles.shape == (4,)
        np.testing.assert_array_equal(doubles, singles * 2)
        seen += singles.tolist()
    assert sorted(seen) == list(range(36))


def test_each_bucket_may_have_a_batch_size_of_its_own_and_a_smaller_last_batch():
    number = numbers(10)
    which, batch = training.bucket(
        {"n": number}, number % 2, [2, 3], 2, allow_smaller_final_batch=True
    )
    found = {0: [], 1: []}
    for of, values in batches((which, batch)):
        found[int(of)].append(values["n"].tolist())
    assert found == {0: [[0, 2], [4, 6], [8]], 1: [[1, 3, 5], [7, 9]]}


def test_what_is_not_kept_is_in_no_bucket():
    number = numbers(12)
    _, batch = training.bucket([number], number % 2, 2, 2, keep_input=number < 8)
    assert sorted(n for ((part),) in batches(batch) for n in part) == list(range(8))


def test_sequences_of_similar_length_are_padded_together():
    number = numbers(12)
    length = number % 6 + 1
    sequence = tf.fill([length], number)
    lengths, (padded,) = training.bucket_by_sequence_length(
        length, [sequence], 2, [3, 5], dynamic_pad=True
    )
    found = batches((lengths, padded))
    assert len(found) == 6
    for sizes, rows in found:
        assert len({int(np.searchsorted([3, 5], size, "right")) for size in sizes}) == 1
        assert rows.shape == (2, sizes.max())
        for size, row in zip(sizes, rows, strict=True):
            assert (row[:size] % 6 + 1 == size).all()
            assert (row[size:] == 0).all()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_stratified_sample_has_the_shares_that_were_asked_for(known, many):
    tf.set_random_seed(1)
    labels = (np.arange(3000) % 10 == 0).astype(np.int32)
    if many:
        label = tf.train.input_producer(labels.reshape(-1, 10), num_epochs=1).dequeue()
    else:
        label = tf.train.input_producer(labels, num_epochs=1, shuffle=False).dequeue()
    (values,), found = training.stratified_sample(
        [label * 5],
        label,
        [0.5, 0.5],
        8,
        init_probs=[0.9, 0.1] if known else None,
        enqueue_many=many,
    )
    given = batches((values, found))
    for five_times, of in given:
        np.testing.assert_array_equal(five_times, of * 5)
    assert 0.35 < np.mean([of for _, of in given]) < 0.65
    assert len(given) > 40


@pytest.mark.parametrize("many", [False, True])
def test_a_rejection_sample_keeps_examples_with_their_probability(many):
    tf.set_random_seed(2)
    number = numbers(500 if many else 1000)
    tensors = [tf.stack([number, number + 500])] if many else [number]

    def chance(tensors):
        assert tensors[0].get_shape().ndims == 0, "it is given one example"
        return tf.cast(tensors[0] % 2, tf.float32) * 0.5

    (batch,) = training.rejection_sample(tensors, chance, 10, enqueue_many=many)
    found = np.concatenate(batches(batch))
    assert (found % 2 == 1).all()
    assert 180 < len(found) < 320


def test_a_probability_that_is_none_can_be_an_error():
    (batch,) = training.rejection_sample(
        [numbers(5)], lambda tensors: tf.cast(tensors[0], tf.float32) + 1.5, 2, runtime_checks=True
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        batches(batch)


def ragged_numbers(count):
    """Sparse vectors 0, 1 1, 2 2 2 ..., each with its length."""
    number = numbers(count)
    length = tf.cast(number + 1, tf.int64)
    places = tf.range(length)[:, None]
    return number + 1, tf.SparseTensor(places, tf.fill(length[None], number), length[None])


def test_sparse_tensors_go_into_buckets():
    length, vector = ragged_numbers(8)
    which, batch = training.bucket({"v": vector, "n": length}, length % 2, 2, 2)
    assert batch["v"].get_shape().ndims == 2
    for of, values in batches((which, batch)):
        assert (values["n"] % 2 == of).all()
        rows, long = values["v"].dense_shape
        assert rows == 2 and long == max(values["n"])
        counted = np.bincount(values["v"].indices[:, 0])
        np.testing.assert_array_equal(counted, values["n"])
        np.testing.assert_array_equal(values["v"].values, np.repeat(values["n"] - 1, counted))


def test_sparse_tensors_go_into_buckets_by_length():
    length, vector = ragged_numbers(8)
    lengths, (batch,) = training.bucket_by_sequence_length(length, [vector], 2, [3, 5])
    found = batches((lengths, batch))
    assert sorted(n for row, _ in found for n in row) == list(range(1, 9))
    for of, values in found:
        np.testing.assert_array_equal(np.bincount(values.indices[:, 0]), of)


def test_buckets_have_summaries_of_their_sizes():
    training.bucket([tf.constant(1)], tf.constant(0), 1, 2, capacity=5, name="b")
    with tf.Session() as sess:
        summary = tf.Summary.FromString(sess.run(tf.summary.merge_all()))
    # As TensorFlow 1.15 names them.
    assert {value.tag: value.simple_value for value in summary.value} == {
        "b/bucket/bucket_queue_0/size": 0.0,
        "b/bucket/bucket_queue_1/size": 0.0,
        "b/bucket/top_queue/fraction_of_5_full": 0.0,
    }
