"""Which arrays share their memory with nothing else."""

from __future__ import annotations

import numpy as np

import runnel as tf
from runnel.queues.own_memory import is_alone, own_array


def test_an_array_of_its_own_is_alone():
    assert is_alone(np.zeros(3))
    assert is_alone(own_array(np.zeros(24, np.uint8), [3], np.dtype(np.float64)))


def test_a_view_of_all_of_an_array_that_nobody_else_has_is_alone():
    # In lines of their own: what an assertion is made of, pytest keeps.
    other_shape = np.zeros(6).reshape(2, 3)
    assert is_alone(other_shape)
    squeezed = np.zeros((1, 2, 3))[0].T
    assert is_alone(squeezed)


def test_a_view_of_an_array_that_someone_else_has_is_not_alone():
    whole = np.zeros(6)
    assert not is_alone(whole.reshape(2, 3))
    first, second = whole.reshape(2, 3), whole.reshape(3, 2)
    del whole
    assert not is_alone(first) and not is_alone(second)
    del second
    assert is_alone(first)


def test_a_view_of_a_part_or_of_other_memory_is_not_alone():
    assert not is_alone(np.zeros(6)[:3])
    assert not is_alone(np.broadcast_to(np.zeros(1), 3))
    assert not is_alone(np.frombuffer(bytearray(8), np.uint8))
    assert not is_alone(np.frombuffer(bytearray(8), np.uint8).reshape(2, 4))


def test_what_is_fetched_in_another_shape_is_the_callers_alone():
    with tf.Graph().as_default(), tf.Session() as session:
        variable, fed = tf.Variable(np.arange(6.0)), tf.placeholder(tf.float64, [6])
        session.run(tf.global_variables_initializer())
        tensors = [variable.read_value(), tf.constant(np.arange(6.0)), fed, fed + 0.0]
        fetches = [tf.reshape(t, [2, 3]) for t in tensors for _ in range(2)]
        given = np.arange(6.0)
        for _ in range(3):
            for fetched in (fetches, *[[fetch] for fetch in fetches]):
                for array in session.run(fetched, {fed: given}):
                    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
                    array[...] = -1.0
        assert given.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
