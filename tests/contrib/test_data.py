"""``tf.contrib.data``: what has no newer name."""

import numpy as np
import pytest

import runnel as tf

contrib = tf.contrib.data
Dataset = tf.data.Dataset


def given(dataset):
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(element))
            except tf.errors.OutOfRangeError:
                return found


def test_padded_batches_of_one_size():
    rows = Dataset.range(5).map(lambda n: tf.fill([n], n))
    made = rows.apply(contrib.padded_batch_and_drop_remainder(2, [None], np.int64(-1)))
    np.testing.assert_array_equal(given(made)[1], [[2, 2, -1], [3, 3, 3]])
    assert len(given(made)) == 2
    assert made.output_shapes.as_list() == [2, None]


def test_an_element_of_another_shape_than_was_said_is_an_error():
    rows = Dataset.range(2, 5).map(lambda n: (n, tf.fill([n], n)))
    made = rows.apply(contrib.assert_element_shape(([], [2])))
    assert made.output_shapes[1].as_list() == [2]
    np.testing.assert_array_equal(given(made.take(1))[0][1], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not of the shape"):
        given(made)
    with pytest.raises(ValueError):
        Dataset.range(3).apply(contrib.assert_element_shape([2]))


def test_a_dataset_is_reduced_to_a_tensor():
    mean = contrib.Reducer(
        lambda key: (np.int64(0), np.int64(0)),
        lambda state, n: (state[0] + n, state[1] + 1),
        lambda state: state[0] / state[1],
    )
    with tf.Session() as sess:
        assert sess.run(contrib.reduce_dataset(Dataset.range(6), mean)) == 2.5


def test_windows_slide():
    made = Dataset.range(7).apply(contrib.sliding_window_batch(3, window_shift=2))
    np.testing.assert_array_equal(given(made), [[0, 1, 2], [2, 3, 4], [4, 5, 6]])
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(10, 14)))
    (first, *_) = given(pairs.apply(contrib.sliding_window_batch(2)))
    np.testing.assert_array_equal(first, [[0, 1], [10, 11]])
    with pytest.raises(ValueError, match="both"):
        contrib.sliding_window_batch(2, stride=1, window_shift=1)


def test_sloppy_interleave_gives_every_element():
    made = Dataset.range(3).apply(contrib.sloppy_interleave(lambda n: Dataset.range(n + 1), 2))
    assert sorted(given(made)) == [0, 0, 0, 1, 1, 2]
