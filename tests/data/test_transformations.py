"""Transformations whose results depend on chance or on time: what they must show all the same."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf

Dataset = tf.data.Dataset
experimental = tf.data.experimental


def given(dataset, most=10**9):
    with tf.Session() as sess:
        element = dataset.make_one_shot_iterator().get_next()
        found = []
        try:
            while len(found) < most:
                found.append(sess.run(element))
        except tf.errors.OutOfRangeError:
            pass
        return found


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_resampling_gives_classes_as_wanted(initial):
    tf.set_random_seed(1)
    numbers = Dataset.range(6000).map(lambda n: tf.cast(tf.equal(n % 10, 0), tf.int64))
    found = given(
        numbers.apply(experimental.rejection_resample(lambda n: n, [0.5, 0.5], initial, seed=3))
    )
    assert all(label == element for label, element in found)
    assert 0.42 < np.mean([label for label, _ in found]) < 0.58
    assert len(found) > 800


def test_interleave_that_is_sloppy_passes_over_one_that_is_not_ready():
    release = threading.Event()

    either = Dataset.range(2).apply(
        experimental.parallel_interleave(
            lambda n: Dataset.from_generator(
                lambda which: _numbers_of(int(which), release), tf.int64, [], args=(n,)
            ),
            cycle_length=2,
            sloppy=True,
        )
    )
    element = either.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(3)] == [10, 11, 12]
        release.set()
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(element)


def _numbers_of(which, release):
    if which == 0:
        assert release.wait(60)
    yield from range(10 * which, 10 * which + 3)


def test_interleave_reads_its_datasets_at_the_same_time():
    """Each waits for the other to begin: one after the other, they would never end."""
    begun = [threading.Event(), threading.Event()]

    def numbers(which):
        begun[int(which)].set()
        assert begun[1 - int(which)].wait(60)
        yield which

    dataset = Dataset.range(2).interleave(
        lambda n: Dataset.from_generator(numbers, tf.int64, [], args=(n,)),
        cycle_length=2,
        num_parallel_calls=2,
    )
    assert given(dataset) == [0, 1]


def test_written_records_are_read_again(tmp_path):
    path = str(tmp_path / "numbers")
    texts = Dataset.range(4).map(tf.as_string)
    with tf.Session() as sess:
        sess.run(experimental.TFRecordWriter(path, "GZIP").write(texts))
    assert given(tf.data.TFRecordDataset(path, "GZIP")) == [b"0", b"1", b"2", b"3"]


def test_the_only_element():
    with tf.Session() as sess:
        assert sess.run(experimental.get_single_element(Dataset.range(3, 4))) == 3
        for dataset, said in ((Dataset.range(0), "empty"), (Dataset.range(2), "more than one")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                sess.run(experimental.get_single_element(dataset))


def test_batches_of_parsed_examples(tmp_path):
    for part in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"{part}.tfrecord")) as writer:
            for number in range(3):
                example = tf.train.Example()
                example.features.feature["n"].int64_list.value.append(3 * part + number)
                writer.write(example.SerializeToString())
    features = {"n": tf.FixedLenFeature([], tf.int64)}
    batches = experimental.make_batched_features_dataset(
        f"{tmp_path}/*.tfrecord", 4, features, num_epochs=1, shuffle=False
    )
    assert [batch["n"].tolist() for batch in given(batches)] == [[0, 1, 2, 3], [4, 5]]
    shuffled = experimental.make_batched_features_dataset(
        f"{tmp_path}/*.tfrecord", 6, features, label_key="n", num_epochs=1, shuffle_seed=1
    )
    ((rest, labels),) = given(shuffled)
    assert rest == {}
    assert sorted(labels) == list(range(6))


def test_a_dataset_as_a_tensor():
    numbers = Dataset.range(3)
    again = experimental.from_variant(
        experimental.to_variant(numbers), experimental.get_structure(numbers)
    )
    assert given(again) == [0, 1, 2]
    assert experimental.get_structure(numbers) == experimental.TensorStructure(tf.int64, [])


def test_options_stay_with_what_is_made_of_a_dataset():
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_deterministic = False
    first.experimental_threading = experimental.ThreadingOptions()
    first.experimental_threading.private_threadpool_size = 3
    second.experimental_slack = True
    second.experimental_threading = experimental.ThreadingOptions()
    second.experimental_threading.max_intra_op_parallelism = 1
    one = Dataset.range(3).with_options(first).map(lambda n: n + 1).padded_batch(2, [])
    both = Dataset.zip((one, Dataset.range(3).with_options(second))).take(2).options()
    assert one.options().experimental_deterministic is False
    assert both.experimental_deterministic is False
    assert both.experimental_slack is True
    assert both.experimental_threading.private_threadpool_size == 3
    assert both.experimental_threading.max_intra_op_parallelism == 1


def test_a_state_of_another_type_is_refused():
    with pytest.raises(TypeError, match="types for the new state must match"):
        Dataset.range(3).reduce(np.int64(0), lambda s, n: tf.cast(s, tf.float32))
    with pytest.raises(TypeError, match="types for the new state must match"):
        Dataset.range(3).apply(
            experimental.scan(np.int64(0), lambda s, n: (tf.cast(n, tf.int32), n))
        )


def test_weights_of_samples_are_checked():
    two = [Dataset.range(3), Dataset.range(3)]
    with pytest.raises(TypeError, match="float32"):
        experimental.sample_from_datasets(two, weights=[1, 2])
    with pytest.raises(ValueError, match="one number for each"):
        experimental.sample_from_datasets(two, weights=[0.1, 0.2, 0.7])


def test_a_variable_that_a_function_makes_is_initialised_by_the_program():
    def added(number):
        total = tf.get_variable("total", initializer=100, use_resource=True)
        with tf.control_dependencies([tf.assign_add(total, number)]):
            return total.read_value()

    following = tf.data.Dataset.range(1, 4).map(lambda n: added(tf.cast(n, tf.int32)))
    element = tf.data.make_one_shot_iterator(following).get_next()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(element) for _ in range(3)] == [101, 103, 106]


@pytest.mark.parametrize(
    ("value", "dtype", "made"),
    [
        ([1.5, 2.7], tf.int32, [1, 2]),
        (3.0, tf.int64, 3),
        ([], tf.int32, []),
        ("7", tf.int32, 7),
        (300, tf.uint8, 44),
        (5, tf.bool, True),
    ],
)
def test_a_generator_gives_what_numpy_converts_as_in_tensorflow_1_15(value, dtype, made):
    dataset = Dataset.from_generator(lambda: iter([value]), dtype)
    with tf.Session() as sess:
        found = sess.run(dataset.make_one_shot_iterator().get_next())
    assert found.tolist() == made
    assert found.dtype == dtype.as_numpy_dtype
