"""Which arrays share their memory with nothing else, and when received memory is released."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

import runnel as tf
from runnel.queues.own_memory import OwnMemory, is_alone


def test_an_array_of_its_own_is_alone():
    assert is_alone(np.zeros(3))


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


def allocated():
    return OwnMemory((4096 + 64,), np.uint8)[64:]


def shared():
    return np.frombuffer(mmap.mmap(-1, 4096), np.uint8).view(OwnMemory)


@pytest.mark.parametrize("made", [allocated, shared])
def test_it_is_released_once_when_the_array_and_its_views_are_gone(made):
    whole, released = made(), []
    memory = whole[:80]
    memory.release = lambda: released.append(True)
    array = memory.as_array((4, 5), np.dtype(np.float32))
    del memory
    assert type(array) is np.ndarray and array.flags.writeable and is_alone(array)
    view = array[1]
    assert not is_alone(view) and np.shares_memory(view, whole)
    del array
    assert released == []
    del view
    assert released == [True]


@pytest.mark.parametrize("made", [allocated, shared])
@pytest.mark.parametrize(
    "shape,dtype,size",
    [((), tf.float64, 8), ((0, 3), tf.float32, 0), ((2, 2), tf.bfloat16, 8), ((3,), tf.bool, 3)],
)
def test_values_of_all_kinds_are_alone_in_it(made, shape, dtype, size):
    array = made()[:size].as_array(shape, np.dtype(dtype.as_numpy_dtype))
    assert array.shape == shape and array.dtype == dtype.as_numpy_dtype and is_alone(array)
