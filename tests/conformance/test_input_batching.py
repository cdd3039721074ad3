"""``tf.train.batch`` and its kin give batches in the form in which TensorFlow gives them."""

from __future__ import annotations

import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1


def shape(batch):
    if isinstance(batch, dict):
        return {key: shape(batch[key]) for key in batch}
    if isinstance(batch, list | tuple):
        return [shape(part) for part in batch]
    return batch.get_shape().as_list()


FORMS = {
    "one": lambda tf, x: tf.train.batch(x, 2) if tf is runnel else tf.train.batch([x], 2),
    "a list of one": lambda tf, x: tf.train.batch([x], 2),
    "two": lambda tf, x: tf.train.batch([x, x + 1], 2),
    "a dictionary of one": lambda tf, x: tf.train.batch({"x": x}, 2),
    "a dictionary": lambda tf, x: tf.train.batch({"b": x, "a": x + 1}, 2),
    "joined": lambda tf, x: tf.train.batch_join([[x], [x]], 2),
    "shuffled": lambda tf, x: tf.train.shuffle_batch([x], 2, 10, 2),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_is_the_same(name):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            found.append(shape(FORMS[name](tf, tf.constant([1, 2, 3]))))
    assert found[0] == found[1]


def batched(tf, enqueue_many):
    with tf.Graph().as_default(), tf.Session() as sess:
        n = tf.train.range_input_producer(6, 1, shuffle=False).dequeue()
        wide = tf.cast(n, tf.int64)
        sparse = tf.SparseTensor([[0], [2]], tf.stack([n, n + 1]), tf.stack([wide + 3]))
        if enqueue_many:
            sparse = tf.SparseTensor(
                [[0, 0], [1, 2]], tf.stack([n, n + 1]), tf.stack([2, wide + 3])
            )
            rows = tf.stack([n, n])
            batch = tf.train.batch([sparse, rows], 4, enqueue_many=True)
        else:
            batch = tf.train.batch({"s": sparse, "n": n}, 3)
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        found = []
        try:
            while True:
                found.append(sess.run(batch))
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
        return found


@pytest.mark.parametrize("enqueue_many", [False, True])
def test_sparse_tensors_are_batched(enqueue_many):
    assert_same_values(batched(runnel, enqueue_many), batched(reference, enqueue_many))
