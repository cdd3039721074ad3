"""The specs of elements: what ``element_spec`` says, and what may be made of it."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

Dataset = tf.data.Dataset


def test_a_dataset_says_what_its_elements_are():
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    dataset = Dataset.from_tensors({"a": np.zeros([2, 3], np.int32), "s": sparse})
    assert dataset.element_spec == {
        "a": tf.TensorSpec([2, 3], tf.int32),
        "s": tf.SparseTensorSpec([2, 3], tf.float32),
    }
    iterator = dataset.batch(4).make_one_shot_iterator()
    assert iterator.element_spec["a"] == tf.TensorSpec([None, 2, 3], tf.int32)
    assert tf.data.experimental.get_structure(iterator) == iterator.element_spec


def test_windows_are_datasets_in_datasets():
    windows = Dataset.range(6).window(2)
    inner = windows.element_spec
    assert inner == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert inner.value_type is Dataset
    assert tf.data.experimental.DatasetStructure is tf.data.DatasetSpec


def test_a_spec_makes_a_dataset_of_a_variant():
    numbers = Dataset.range(3)
    spec = tf.TensorSpec([], tf.int64)
    made = tf.data.experimental.from_variant(tf.data.experimental.to_variant(numbers), spec)
    element = made.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [sess.run(element) for _ in range(3)] == [0, 1, 2]


def test_optionals_are_elements_of_datasets():
    some = tf.data.experimental.Optional.from_value(tf.constant([1.0, 2.0]))
    dataset = Dataset.from_tensors((some, 7))
    assert dataset.element_spec[0] == tf.OptionalSpec(tf.TensorSpec([2], tf.float32))
    optional, number = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        has_value, value, seven = sess.run([optional.has_value(), optional.get_value(), number])
    assert (has_value, value.tolist(), seven) == (True, [1.0, 2.0], 7)


def test_an_optional_without_a_value_takes_a_spec():
    spec = tf.TensorSpec([2], tf.float32)
    none = tf.data.experimental.Optional.none_from_structure(spec)
    with tf.Session() as sess:
        assert not sess.run(none.has_value())
    assert none.value_structure == spec


@pytest.mark.parametrize(
    ("spec", "fits", "refused"),
    [
        (lambda: tf.TensorSpec([None, 2]), lambda: tf.zeros([3, 2]), lambda: tf.zeros([3, 3])),
        (lambda: tf.TensorSpec(None, tf.string), lambda: "text", lambda: 1.0),
        (lambda: tf.TensorSpec([2]), lambda: tf.TensorSpec([None]), lambda: tf.TensorSpec([3])),
        (
            lambda: tf.SparseTensorSpec([None, 3]),
            lambda: tf.SparseTensor([[0, 1]], [1.0], [2, 3]),
            lambda: tf.zeros([2, 3]),
        ),
        (
            lambda: tf.RaggedTensorSpec([2, None], tf.int32),
            lambda: tf.ragged.constant([[1], []]),
            lambda: tf.ragged.constant([["a"], []]),
        ),
    ],
)
def test_compatible_values(spec, fits, refused):
    assert spec().is_compatible_with(fits())
    assert not spec().is_compatible_with(refused())


def test_the_most_specific_type_holds_for_both():
    first, second = tf.TensorSpec([2, 3]), tf.TensorSpec([2, 4])
    assert first.most_specific_compatible_type(second) == tf.TensorSpec([2, None])
    with pytest.raises(ValueError, match="not compatible"):
        first.most_specific_compatible_type(tf.TensorSpec([2, 3], tf.int32))


def test_a_spec_has_a_name_that_counts():
    tensor = tf.zeros([2], name="zeros_here")
    made = tf.TensorSpec.from_tensor(tensor)
    assert made.name == "zeros_here"
    assert made != tf.TensorSpec([2])
    assert tf.TensorSpec.from_spec(made, "other").name == "other"
    assert repr(tf.TensorSpec([2])).startswith("TensorSpec(shape=")
