"""``tf.data`` gives ragged elements as TensorFlow's does, wherever elements can be."""

from __future__ import annotations

import pytest

import runnel
from tests.conformance.data_pipelines import not_joined
from tests.conformance.same_fetches import assert_same_values
from tests.conformance.test_data import D, elements, outcomes, reference


def words(tf, **how):
    return tf.ragged.constant([["a", "b"], [], ["c"], ["d", "e", "f"]], **how)


def deep(tf):
    return tf.ragged.constant([[[1], [2, 3]], [], [[4, 5, 6], [], [7]]], dtype=tf.int32)


def deep_words(tf):
    return tf.ragged.constant([[["a"]], [], [[], ["b", "c"]], [["d"], []]])


def pairs(tf):
    """Ragged outside, uniform inside."""
    return tf.RaggedTensor.from_row_lengths(tf.constant([[1.0, 2], [3, 4], [5, 6]]), [2, 0, 1])


PIPELINES = {
    "ragged": lambda tf: D(tf).from_tensors({"w": words(tf), "n": deep(tf)}).repeat(2),
    "ragged values": lambda tf: D(tf).from_tensors(tf.ragged.constant_value([[1, 2], [3]])),
    "ragged slices": lambda tf: D(tf).from_tensor_slices((words(tf), [1, 2, 3, 4])),
    "ragged slices of slices": lambda tf: D(tf).from_tensor_slices(deep(tf)),
    "ragged slices of vectors": lambda tf: D(tf).from_tensor_slices(pairs(tf)),
    "ragged with short splits": lambda tf: (
        D(tf).from_tensor_slices(words(tf, row_splits_dtype=tf.int32)).batch(3)
    ),
    "ragged batch": lambda tf: D(tf).from_tensor_slices((words(tf), deep_words(tf))).batch(3),
    "ragged batch without rest": lambda tf: (
        D(tf).from_tensor_slices(pairs(tf)).batch(2, drop_remainder=True)
    ),
    "ragged batch of batches": lambda tf: D(tf).from_tensor_slices(words(tf)).batch(2).batch(2),
    "ragged batch of whole ones": lambda tf: D(tf).from_tensors(deep(tf)).repeat(2).batch(2),
    "ragged map": lambda tf: (
        D(tf).from_tensors(deep(tf)).map(lambda r: (r * 2, r.to_tensor(), tf.reduce_sum(r, axis=2)))
    ),
    "ragged made by a map": lambda tf: (
        D(tf)
        .range(1, 5)
        .map(
            lambda n: tf.RaggedTensor.from_row_lengths(tf.range(2 * n), [n, n]),
            num_parallel_calls=2,
        )
        .map(lambda r: {"r": r, "rows": r.nrows()})
        .batch(2)
    ),
    "ragged rows in a map": lambda tf: (
        D(tf).from_tensor_slices(words(tf)).map(lambda row: (tf.size(row), row))
    ),
    "ragged taken apart": lambda tf: D(tf).from_tensors((deep(tf), pairs(tf), [1, 2, 3])).unbatch(),
    "ragged batch taken apart": lambda tf: (
        D(tf).from_tensor_slices(deep(tf)).batch(2).unbatch().batch(3)
    ),
    "ragged filter": lambda tf: D(tf).from_tensor_slices(deep(tf)).filter(lambda r: r.nrows() > 0),
    "ragged window": lambda tf: (
        D(tf).from_tensor_slices(words(tf)).window(3).flat_map(lambda w: w.batch(3))
    ),
    "ragged, shuffled, kept and made ahead": lambda tf: not_joined(
        tf,
        D(tf)
        .from_tensor_slices(words(tf))
        .cache()
        .shuffle(4, seed=5)
        .repeat(2)
        .batch(3)
        .prefetch(2),
    ),
    "dense to ragged": lambda tf: (
        D(tf)
        .range(5)
        .map(lambda n: {"r": tf.fill([n], n), "n": n, "s": tf.sparse.from_dense([n, 0])})
        .apply(tf.data.experimental.dense_to_ragged_batch(2, True, tf.int32))
    ),
    "dense to ragged, deeply": lambda tf: (
        D(tf)
        .range(1, 5)
        .map(lambda n: (tf.fill([n, 2, n], 1.5), tf.fill([2, n], "x"), tf.fill([n, 3], n)))
        .apply(tf.data.experimental.dense_to_ragged_batch(3))
    ),
    "dense to ragged, of rows": lambda tf: (
        D(tf)
        .from_tensor_slices({"w": words(tf), "d": deep(tf).values[:4], "n": [1, 2, 3, 4]})
        .apply(tf.data.experimental.dense_to_ragged_batch(3))
    ),
    "dense to ragged, taken apart and together": lambda tf: (
        D(tf)
        .from_tensor_slices(words(tf))
        .apply(tf.data.experimental.dense_to_ragged_batch(3))
        .flat_map(D(tf).from_tensor_slices)
        .batch(2)
    ),
    "ragged zip and concatenate": lambda tf: (
        D(tf)
        .zip((D(tf).from_tensors(words(tf)), D(tf).from_tensors(deep(tf))))
        .concatenate(D(tf).from_tensors((words(tf)[:1], deep(tf)[1:])))
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_ragged_elements_are_the_same(name):
    ours, theirs = (elements(tf, PIPELINES[name]) for tf in (runnel, reference))
    assert_same_values(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]


def described(spec):
    """What a class of elements says."""
    kinds = (spec.dtype.name, spec.ragged_rank, spec.row_splits_dtype.name)
    return spec.shape.as_list(), *kinds


def test_the_classes_of_ragged_elements_are_their_specs():
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            dataset = D(tf).from_tensor_slices((words(tf), deep_words(tf)))
            classes = [tf.data.get_output_classes(one) for one in (dataset, dataset.batch(2))]
            found.append([described(spec) for pair in classes for spec in pair])
            made = tf.data.experimental.RaggedTensorStructure(tf.string, [None], 0)
            assert made == tf.RaggedTensorSpec([None], tf.string, 0) == classes[0][0]
            assert isinstance(made, tf.RaggedTensorSpec)
    assert found[0] == found[1]


def test_iterators_of_a_structure_and_optionals_take_ragged_elements():
    def found(tf):
        with tf.Graph().as_default(), tf.Session() as sess:
            dataset = D(tf).from_tensors((words(tf), 7)).repeat()
            what = [
                tf.data.get_output_types(dataset),
                tf.data.get_output_shapes(dataset),
                tf.data.get_output_classes(dataset),
            ]
            any_of_them = tf.data.Iterator.from_structure(*what[:2], output_classes=what[2])
            sess.run(any_of_them.make_initializer(dataset))
            values = [sess.run(any_of_them.get_next())]
            handle = tf.placeholder(tf.string, [])
            fed = tf.data.Iterator.from_string_handle(handle, *what).get_next()
            one = tf.data.make_one_shot_iterator(dataset)
            values.append(sess.run(fed, {handle: sess.run(one.string_handle())}))
            optional = tf.data.experimental.get_next_as_optional(one)
            values.append(sess.run([optional.has_value(), optional.get_value()]))
            values.append(sess.run(tf.data.experimental.get_single_element(dataset.take(1))))
            return values

    assert_same_values(found(runnel), found(reference))


FAILURES = {
    "batches of several sizes": lambda tf: D(tf).from_tensor_slices(words(tf)).batch(3).batch(2),
    "vectors of several lengths": lambda tf: (
        D(tf)
        .range(1, 4)
        .map(lambda n: tf.RaggedTensor.from_row_lengths(tf.zeros([2, n]), [1, 1]))
        .batch(2)
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_both_fail_alike_at_ragged_elements(name):
    ours, theirs = (outcomes(tf, FAILURES[name], 1) for tf in (runnel, reference))
    assert ours == theirs == ["InvalidArgumentError"]


REFUSED = {
    "padded": lambda tf: D(tf).from_tensors(words(tf)).padded_batch(2, [None, None]),
    "other ranks": lambda tf: (
        D(tf).from_tensors(words(tf)).concatenate(D(tf).from_tensors(deep_words(tf)))
    ),
    "sizes differ": lambda tf: D(tf).from_tensor_slices((words(tf), [1, 2, 3])),
    "another rank in an iterator": lambda tf: tf.data.Iterator.from_structure(
        tf.string, [None, None], output_classes=tf.RaggedTensorSpec([None, None], tf.string)
    ).make_initializer(D(tf).from_tensors(deep_words(tf))),
    "a spec without a rank": lambda tf: tf.RaggedTensorSpec(None, tf.string),
    "a spec that is too ragged": lambda tf: tf.RaggedTensorSpec([None, None], tf.string, 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_of_ragged_elements(name):
    for tf in (runnel, reference):
        with tf.Graph().as_default(), pytest.raises((ValueError, TypeError)):
            REFUSED[name](tf)
