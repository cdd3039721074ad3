"""Barriers and staging areas: what comes together, what waits."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.queues.barrier import BarrierState
from runnel.queues.staging import StagingBuffer, StagingMap
from tests.queues.told import start

FIRST = -(1 << 63)


def barrier():
    return BarrierState("b", [tf.int64, tf.string], [(), ()])


def strings(*values):
    return np.array([v.encode() for v in values], object)


def done(told):
    kind, outputs = told.result()
    assert kind == "done", outputs
    return outputs


def test_elements_leave_when_they_are_complete_in_the_order_of_their_keys():
    b = barrier()
    b.insert_many(0, [b"k1"], np.array([1]))
    b.insert_many(1, [b"k2", b"k1"], strings("b", "a"))
    take = start(b.take_many, 2, False)
    assert (b.ready_size(), b.incomplete_size()) == (0, 1)
    assert take.result() is None
    b.insert_many(0, [b"k2"], np.array([2]))
    assert done(take) == ([FIRST, FIRST + 1], [b"k1", b"k2"], [1, 2], [b"a", b"b"])


def test_a_closed_barrier_completes_what_it_has():
    b = barrier()
    b.insert_many(0, [b"k1", b"k2"], np.array([1, 2]))
    b.close(False)
    with pytest.raises(tf.errors.CancelledError, match="brand new key"):
        b.insert_many(0, [b"k3"], np.array([3]))
    b.insert_many(1, [b"k1"], strings("a"))
    assert start(b.take_many, 3, False).result() == ("failed", tf.errors.OutOfRangeError)
    # As TensorFlow does: who takes fewer gets what is complete, and does not wait for the rest.
    assert done(start(b.take_many, 5, True))[1] == [b"k1"]
    assert start(b.take_many, 5, True).result() == ("failed", tf.errors.OutOfRangeError)
    b.insert_many(1, [b"k2"], strings("b"))
    assert done(start(b.take_many, 5, True))[1] == [b"k2"]
    assert start(b.take_many, 1, True).result() == ("failed", tf.errors.OutOfRangeError)


def test_who_takes_up_to_some_when_the_barrier_is_closed_gets_what_is_complete():
    b = barrier()
    b.insert_many(0, [b"k1", b"k2"], np.array([1, 2]))
    b.insert_many(1, [b"k1"], strings("a"))
    small = start(b.take_many, 5, True)
    b.close(False)
    assert done(small)[1] == [b"k1"]
    b.insert_many(1, [b"k2"], strings("b"))
    assert done(start(b.take_many, 1, False))[1] == [b"k2"]


def test_closing_at_once_drops_what_is_not_complete():
    b = barrier()
    b.insert_many(0, [b"k1"], np.array([1]))
    take = start(b.take_many, 1, False)
    b.close(True)
    assert take.result() == ("failed", tf.errors.OutOfRangeError)
    with pytest.raises(tf.errors.CancelledError):
        b.insert_many(1, [b"k1"], strings("a"))


def test_barrier_mistakes():
    b = barrier()
    b.insert_many(0, [b"k"], np.array([1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="already has a value"):
        b.insert_many(0, [b"k"], np.array([1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        b.insert_many(2, [b"k"], np.array([1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="a value for each"):
        b.insert_many(1, [b"k"], strings("a", "b"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        b.insert_many(0, [b"x"], np.array([[1, 2]]))


def test_a_staging_area_is_bounded():
    area = StagingBuffer("s", capacity=1, memory_limit=0)
    assert done(start(area.put, [np.int64(1)])) == ()
    second = start(area.put, [np.int64(2)])
    peek = start(area.peek, 1)
    assert second.result() is None and peek.result() is None
    assert done(start(area.get)) == (1,)
    assert done(second) == ()
    third, last = start(area.get), start(area.get)
    assert done(third) == (2,) and last.result() is None
    assert area.cancel(last) and not area.cancel(third)


def test_a_limit_in_bytes():
    area = StagingBuffer("s", capacity=0, memory_limit=16)
    start(area.put, [np.int64(1)])
    start(area.put, [np.int64(2)])
    waits = start(area.put, [np.int64(3)])
    assert waits.result() is None and area.size() == 2
    area.clear()
    assert done(waits) == () and area.size() == 1
    with pytest.raises(tf.errors.ResourceExhaustedError, match="24 bytes"):
        area.put([np.zeros(3)], None)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_map_gathers_components_under_keys(ordered):
    area = StagingMap("m", 0, 0, ordered)
    wants = start(area.get, 5, [0, 1])
    some = start(area.get_any, [0, 1])
    start(area.put, 5, [1], [np.int64(50)], 2)
    assert (area.size(), area.incomplete_size()) == (0, 1)
    start(area.put, 5, [0], [np.int64(40)], 2)
    assert done(wants) == (40, 50) and some.result() is None
    area.cancel(some)
    for key in (9, 3):
        start(area.put, key, [0, 1], [np.int64(key), np.int64(0)], 2)
    assert done(start(area.peek, 3, [0])) == (3,)
    assert done(start(area.get_any, [0])) == ((3, 3) if ordered else (9, 9))
    rest = 3 if ordered else 9
    assert start(area.get, rest, [0]).result() == ("failed", tf.errors.InvalidArgumentError)
    assert done(start(area.get, rest, [1])) == (0,)
    assert area.size() == 1


def test_map_mistakes_and_bounds():
    area = StagingMap("m", 1, 0, False)
    start(area.put, 1, [0], [np.int64(1)], 1)
    again = start(area.put, 1, [0], [np.int64(1)], 1)
    assert again.result() == ("failed", tf.errors.InvalidArgumentError)
    waits = start(area.put, 2, [0], [np.int64(2)], 1)
    assert waits.result() is None
    assert done(start(area.get, 1, [0])) == (1,)
    assert done(waits) == ()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        area.get(1, [3], None)
