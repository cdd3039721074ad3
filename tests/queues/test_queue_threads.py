"""Queues used by many threads at once: nothing is lost, nothing comes twice, everyone ends."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.queues.elements import InOrder, Prioritized, Shuffled
from runnel.queues.queue import Queue
from tests.queues.told import Told, start

KINDS: dict[str, Any] = {
    "FIFOQueue": lambda: (InOrder(), 0),
    "PriorityQueue": lambda: (Prioritized(), 0),
    "RandomShuffleQueue": lambda: (Shuffled(lambda: 12345), 1),
}


def make(kind: str, capacity: int) -> Queue:
    elements, minimum = KINDS[kind]()
    return Queue(kind, "q", capacity, [tf.int64], [()], elements, minimum)


class Clock:
    """Counts operations of all threads; at chosen counts something happens."""

    def __init__(self, events: dict[int, Any]) -> None:
        self.events = events
        self.count = 0
        self.lock = threading.Lock()

    def tick(self) -> None:
        with self.lock:
            self.count += 1
            event = self.events.pop(self.count, None)
        if event is not None:
            event()

    def finish(self) -> None:
        with self.lock:
            left = list(self.events.values())
        for event in left:
            event()


operations = st.lists(st.tuples(st.booleans(), st.integers(1, 4)), min_size=1, max_size=8)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    capacity=st.integers(1, 5),
    programs=st.lists(operations, min_size=2, max_size=5),
    close_at=st.integers(1, 20),
    at_once=st.booleans(),
    cancelled=st.sets(st.integers(1, 20), max_size=4),
)
def test_elements_are_conserved(kind, capacity, programs, close_at, at_once, cancelled):
    """Producers and consumers, with a close and cancellations at any point."""
    queue = make(kind, capacity)
    pending: list[Any] = []
    put: Counter = Counter()
    put_whole: Counter = Counter()
    taken: Counter = Counter()
    lock = threading.Lock()

    def cancel_one():
        with lock:
            waiting = [told for told in pending if told.outcome is None]
        for told in waiting[:1]:
            if queue.cancel(told):
                told.fail(tf.errors.CancelledError(None, None, "cancelled"))

    events: dict[int, Any] = dict.fromkeys(cancelled, cancel_one)
    events[close_at] = lambda: start(queue.close, at_once)
    clock = Clock(events)
    numbers = iter(range(1, 10_000))

    def run(program):
        for produces, count in program:
            if produces:
                with lock:
                    values = [next(numbers) for _ in range(count)]
                told = start(queue.enqueue_many, [np.array(values)])
            else:
                told = start(queue.dequeue_many, count, up_to=count % 2 == 0)
            with lock:
                pending.append(told)
            clock.tick()
            told.event.wait(30)
            kind_of_end, outputs = told.result()
            with lock:
                if produces:
                    put.update(values)
                    if kind_of_end == "done":
                        put_whole.update(values)
                elif kind_of_end == "done":
                    taken.update(outputs[0])
                    assert count % 2 == 0 or len(outputs[0]) == count

    threads = [threading.Thread(target=run, args=(program,), daemon=True) for program in programs]
    for thread in threads:
        thread.start()
    # When all that are left wait for each other, the events that have not happened yet happen.
    for thread in threads:
        while thread.is_alive():
            thread.join(0.01)
            with lock:
                stuck = sum(told.outcome is None for told in pending)
            if stuck and stuck >= sum(t.is_alive() for t in threads):
                clock.finish()
                start(queue.close, True)
    start(queue.close, True)
    while queue.size():
        taken.update(start(queue.dequeue).result()[1])
    assert start(queue.dequeue).result() == ("failed", tf.errors.OutOfRangeError)
    assert not put_whole - taken, "an element was lost"
    assert max(taken.values(), default=0) <= 1, "an element came twice"
    assert not taken - put, "an element came from nowhere"
    assert queue.waiting == (0, 0)


def test_one_producer_and_one_consumer_keep_the_order():
    queue = make("FIFOQueue", 3)
    count = 2000
    got = []

    def produce():
        for i in range(count):
            start(queue.enqueue, [np.int64(i)]).event.wait(30)

    def consume():
        for _ in range(count):
            told = start(queue.dequeue)
            told.event.wait(30)
            got.append(told.result()[1][0])

    threads = [threading.Thread(target=f, daemon=True) for f in (produce, consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == list(range(count))


def test_ten_thousand_who_wait_are_served_in_order_and_can_leave_from_anywhere():
    queue = make("FIFOQueue", 10)
    waiting = [start(queue.dequeue) for _ in range(10_000)]
    for told in waiting[1::2]:
        assert queue.cancel(told)
    start(queue.enqueue_many, [np.arange(5_000)])
    assert [told.result()[1][0] for told in waiting[::2]] == list(range(5_000))
    assert queue.waiting == (0, 0)
    assert queue.size() == 0


class Compared(Told):
    """Counts how often a waiter is compared with another: once for each that a search passes."""

    comparisons = 0
    __hash__ = Told.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.comparisons += 1
        return self is other


def work_of(action: Callable[[], Any]) -> int:
    """How many calls and comparisons of waiters ``action`` makes: its cost, whatever the clock."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = Compared.comparisons
    gc.disable()  # a collection would count as well
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls + Compared.comparisons - before


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_costs_the_same_however_many_wait(kind):
    """To begin to wait, to leave and to be served take the same work among 100 and 10,000."""

    def costs(count: int) -> list[int]:
        queue = make(kind, 10)
        waiting = [Compared() for _ in range(count)]
        for waiter in waiting:
            queue.dequeue(waiter)
        return [
            work_of(lambda: queue.dequeue(Compared())),
            work_of(lambda: queue.cancel(waiting[count // 2])),
            work_of(lambda: queue.enqueue_many([np.arange(2)], Compared())),
        ]

    assert costs(100) == costs(10_000)
