"""Queue operations in a graph: shapes, names, dictionaries, sharing, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


def test_static_shapes_and_types():
    queue = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []])
    vector, text = queue.dequeue()
    assert (vector.shape, text.shape) == (tf.TensorShape([2]), tf.TensorShape([]))
    assert (vector.dtype, text.dtype) == (tf.float32, tf.string)
    assert queue.dequeue_many(3)[0].shape.as_list() == [3, 2]
    n = tf.placeholder(tf.int32, [])
    assert queue.dequeue_many(n)[0].shape.as_list() == [None, 2]
    assert queue.dequeue_up_to(3)[0].shape.as_list() == [None, 2]
    assert tf.FIFOQueue(1, tf.int32).dequeue().shape.ndims is None


def test_elements_with_names_are_dictionaries():
    queue = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[], []], names=["x", "y"])
    put = queue.enqueue({"y": 1, "x": 2.0})
    many = queue.enqueue_many({"y": [3], "x": [4.0]})
    one, batch = queue.dequeue(), queue.dequeue_many(1)
    with tf.Session() as sess:
        sess.run([put, many])
        assert sess.run(one) == {"x": 2.0, "y": 1}
        assert sess.run(batch["y"]).tolist() == [3]
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        queue.enqueue([1.0, 2])
    with pytest.raises(ValueError, match="do not match names"):
        queue.enqueue({"x": 1.0})
    with pytest.raises(ValueError, match="must have names"):
        tf.FIFOQueue(1, tf.int32).enqueue({"x": 1})


@pytest.mark.parametrize("kind", ["fifo", "shuffle", "padding", "priority", "staging"])
@pytest.mark.parametrize("many", [False, True])
def test_a_single_string_is_a_tensor_like_any_other(kind, many):
    """It came out as bytes, which have no shape, when it was fed or a row of a batch."""
    given = tf.placeholder(tf.string, [None] if many else [])
    if kind == "staging":
        area = tf.contrib.staging.StagingArea([tf.string], [[]])
        put, [one] = area.put([given[0] if many else given]), area.get()
    else:
        queue = {
            "fifo": lambda: tf.FIFOQueue(9, tf.string, [[]]),
            "shuffle": lambda: tf.RandomShuffleQueue(9, 0, tf.string, [[]]),
            "padding": lambda: tf.PaddingFIFOQueue(9, tf.string, [[]]),
            "priority": lambda: tf.PriorityQueue(9, tf.string, [[]]),
        }[kind]()
        first = [] if kind != "priority" else [tf.zeros(tf.shape(given), tf.int64)]
        put = (queue.enqueue_many if many else queue.enqueue)([*first, given])
        one = queue.dequeue()
        one = one[1] if kind == "priority" else one
    uses = [tf.reshape(one, [1]), tf.stack([one]), tf.fill([1], one), tf.expand_dims(one, 0)]
    with tf.Session() as sess:
        sess.run(put, {given: ["a"] if many else "a"})
        assert [value.tolist() for value in sess.run(uses)] == [[b"a"]] * 4


def test_strings_and_shapes_that_vary():
    queue = tf.FIFOQueue(10, [tf.string, tf.int32])
    puts = [queue.enqueue([["a"] * n, np.zeros((n, 1), np.int32)]) for n in (1, 3)]
    take = queue.dequeue()
    with tf.Session() as sess:
        sess.run(puts)
        assert [sess.run(take)[0].tolist() for _ in puts] == [[b"a"], [b"a"] * 3]


def test_a_queue_chosen_while_the_step_runs():
    queues = [tf.FIFOQueue(10, tf.int32, shapes=[[]]) for _ in range(3)]
    which = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(which, queues)
    put, take, size = chosen.enqueue(which * 10), chosen.dequeue(), chosen.size()
    with tf.Session() as sess:
        for i in range(3):
            sess.run(put, {which: i})
        assert [sess.run(q.size()) for q in queues] == [1, 1, 1]
        assert [sess.run(take, {which: i}) for i in (2, 0, 1)] == [20, 0, 10]
        assert sess.run(size, {which: 1}) == 0
    with pytest.raises(TypeError, match="matching component dtypes"):
        tf.QueueBase.from_list(which, [queues[0], tf.FIFOQueue(1, tf.float32)])
    with pytest.raises(TypeError, match="list of queues"):
        tf.QueueBase.from_list(which, queues[0])


def test_shared_names_and_containers():
    a = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="shared")
    b = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="shared")
    with tf.container("other"):
        c = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="shared")
    small = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="shared")
    with tf.Session() as sess, tf.Session() as another:
        sess.run(a.enqueue(4))
        assert sess.run([b.size(), c.size()]) == [1, 0]
        assert another.run(a.size()) == 0, "sessions share nothing"
        with pytest.raises(tf.errors.InvalidArgumentError, match="has capacity 10 but requested"):
            sess.run(small.size())
        assert sess.run(b.dequeue()) == 4


def test_handles_of_the_older_kind():
    ref = tf.get_op_def("FIFOQueue")(component_types=[tf.int32], shapes=[[]], capacity=5)
    queue = tf.QueueBase([tf.int32], [[]], None, ref)
    put, take = queue.enqueue(3), queue.dequeue()
    assert (put.type, take.op.type) == ("QueueEnqueue", "QueueDequeue")
    with tf.Session() as sess:
        sess.run(put)
        assert sess.run([queue.size(), queue.is_closed(), take]) == [0, False, 3]


def test_the_same_seed_gives_the_same_order():
    def order(seed):
        with tf.Graph().as_default(), tf.Session() as sess:
            queue = tf.RandomShuffleQueue(50, 0, tf.int32, shapes=[[]], seed=seed)
            sess.run(queue.enqueue_many([list(range(50))]))
            return sess.run(queue.dequeue_many(50)).tolist()

    assert order(1) == order(1) != order(2)
    assert sorted(order(None)) == list(range(50))


def test_mistakes_while_describing():
    with pytest.raises(ValueError, match="fully defined"):
        tf.FIFOQueue(1, tf.int32, shapes=[[None]])
    with pytest.raises(ValueError, match="same length as dtypes"):
        tf.FIFOQueue(1, [tf.int32, tf.int32], shapes=[[]])
    with pytest.raises(ValueError, match="list of shapes must be provided"):
        tf.PaddingFIFOQueue(1, tf.int32, shapes=None)
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[2]])
    with pytest.raises(ValueError, match="incompatible"):
        queue.enqueue([[1, 2, 3]])
    with pytest.raises(ValueError, match="1 components, but 2"):
        queue.enqueue([[1, 2], [3, 4]])
    with pytest.raises(TypeError):
        queue.enqueue([["a", "b"]])


def test_an_error_names_the_operation_and_its_line():
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    take = queue.dequeue(name="take_one")
    with tf.Session() as sess:
        sess.run(queue.close())
        with pytest.raises(tf.errors.OutOfRangeError) as caught:
            sess.run(take)
    assert caught.value.op is take.op
    assert "take_one" in str(caught.value) and "test_queues.py" in str(caught.value)


def test_a_wrong_handle():
    accumulator = tf.ConditionalAccumulator(tf.float32, [])
    size = tf.get_op_def("QueueSizeV2")(accumulator.accumulator_ref)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="queue is exp"):
        sess.run(size)
