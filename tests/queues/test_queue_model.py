"""Every queue against a simple reference, through random sequences of operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import runnel as tf
from runnel.graph.errors import CancelledError, FailedPreconditionError, OutOfRangeError
from runnel.ops.queues.queue_ops import RandomWords
from runnel.queues.elements import InOrder, Prioritized, Shuffled
from runnel.queues.queue import Queue
from tests.queues.told import Told, start

numbers = st.integers(-3, 3)


class Waiting:
    """An operation in the reference: what it asks for and, in the end, its result."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked
        self.values = list(asked.get("values", ()))
        self.got: list[int] = []
        self.result: Any = None


class Reference:
    """What a queue is, said in the plainest way: lists, looked through again after every change.

    ``choose`` picks the next element to leave from the list of those present, by position.
    """

    def __init__(self, capacity: int, minimum: int, choose: Any) -> None:
        self.capacity, self.minimum, self.choose = capacity, minimum, choose
        self.elements: list[int] = []
        self.closed = False
        self.producers: list[Waiting] = []
        self.consumers: list[Waiting] = []

    def begin(self, waiting: Waiting) -> Waiting:
        kind = waiting.asked["kind"]
        if kind == "close now":
            self.closed = True
            for pending in self.producers:
                pending.result = ("failed", CancelledError)
            self.producers = []
            waiting.result = ("done", ())
        elif kind in ("put", "close"):
            self.producers.append(waiting)
        else:
            self.consumers.append(waiting)
        self.settle()
        return waiting

    def cancel(self, waiting: Waiting) -> None:
        if waiting in self.producers:
            self.producers.remove(waiting)
        else:
            self.consumers.remove(waiting)
            self.put_back(waiting)
        self.settle()

    def let_go(self) -> None:
        """Those who put in are done; what they have still to put in is there for nobody."""
        pending = self.producers
        self.producers = [Waiting(kind=p.asked["kind"], values=p.values) for p in pending]
        for one in pending:
            one.result = ("done", ())

    def forget_who_waits(self) -> None:
        """Elements that were to be put in are so one by one, those that were taken come back."""
        self.producers = [
            Waiting(kind=p.asked["kind"], values=values)
            for p in self.producers
            for values in ([[value] for value in p.values] or [[]])
        ]
        for waiting in reversed(self.consumers):
            self.put_back(waiting)
        self.consumers = []
        self.settle()

    def put_back(self, waiting: Waiting) -> None:
        self.elements = waiting.got + self.elements
        waiting.got = []

    def settle(self) -> None:
        while self.one_change():
            pass

    def one_change(self) -> bool:
        if self.producers:
            first = self.producers[0]
            if self.closed:
                first.result = ("failed", CancelledError)
            elif first.asked["kind"] == "close":
                self.closed = True
                first.result = ("done", ())
            elif len(self.elements) < self.capacity:
                self.elements.append(first.values.pop(0))
                if not first.values:
                    first.result = ("done", ())
                    self.producers.pop(0)
                return True
            if first.result is not None:
                self.producers.pop(0)
                return True
        if self.consumers:
            first = self.consumers[0]
            wanted = first.asked["count"] - len(first.got)
            spare = len(self.elements) - (0 if self.closed else self.minimum)
            if self.closed and len(self.elements) < wanted:
                self.put_back(first)
                if first.asked.get("up_to") and self.elements:
                    first.asked["count"] = len(self.elements)
                    return True
                first.result = ("failed", OutOfRangeError)
                self.consumers.pop(0)
                return True
            if spare > 0:
                # As in TensorFlow who takes several takes all that are there before who puts in
                # goes on: of a queue with priorities these may be others.
                for _ in range(min(spare, wanted)):
                    first.got.append(self.elements.pop(self.choose(self.elements)))
                if len(first.got) == first.asked["count"]:
                    single = first.asked["kind"] == "take one"
                    first.result = ("done", (first.got[0] if single else first.got,))
                    self.consumers.pop(0)
                return True
        return False


class QueueMachine(RuleBasedStateMachine):
    """Runs the same operations on a queue and on the reference."""

    def make(self, capacity: int) -> tuple[Queue, Reference]:
        elements = InOrder()
        queue = Queue("FIFOQueue", "q", capacity, [tf.int64], [()], elements)
        return queue, Reference(capacity, 0, lambda present: 0)

    @initialize(capacity=st.integers(1, 4))
    def begin(self, capacity: int) -> None:
        self.queue, self.reference = self.make(capacity)
        self.pairs: list[tuple[Told, Waiting]] = []
        self.cut_off = False

    def both(self, told: Told, waiting: Waiting) -> None:
        self.pairs.append((told, self.reference.begin(waiting)))

    @rule(value=numbers)
    def put(self, value: int) -> None:
        told = start(self.queue.enqueue, [np.int64(value)])
        self.both(told, Waiting(kind="put", values=[value]))

    @rule(values=st.lists(numbers, min_size=1, max_size=6))
    def put_many(self, values: list[int]) -> None:
        told = start(self.queue.enqueue_many, [np.array(values)])
        self.both(told, Waiting(kind="put", values=values))

    @rule()
    def take(self) -> None:
        self.both(start(self.queue.dequeue), Waiting(kind="take one", count=1))

    @rule(count=st.integers(1, 6), up_to=st.booleans())
    def take_many(self, count: int, up_to: bool) -> None:
        told = start(self.queue.dequeue_many, count, up_to=up_to)
        self.both(told, Waiting(kind="take", count=count, up_to=up_to))

    @precondition(lambda self: not self.queue.is_closed)
    @rule(at_once=st.booleans())
    def close(self, at_once: bool) -> None:
        self.cut_off = at_once
        told = start(self.queue.close, at_once)
        self.both(told, Waiting(kind="close now" if at_once else "close"))

    @rule(which=st.integers(0, 100))
    def cancel(self, which: int) -> None:
        waiting = [pair for pair in self.pairs if pair[0].result() is None]
        finished = [pair for pair in self.pairs if pair[0].result() is not None]
        if finished:
            assert not self.queue.cancel(finished[which % len(finished)][0])
        if waiting:
            pair = waiting[which % len(waiting)]
            assert self.queue.cancel(pair[0])
            self.reference.cancel(pair[1])
            self.pairs.remove(pair)

    @rule()
    def let_producers_go(self) -> None:
        self.queue.let_producers_go()
        self.reference.let_go()

    @rule()
    def go_on_elsewhere(self) -> None:
        """Another queue is given what is in this one; who waits here is forgotten."""
        if self.cut_off:
            with pytest.raises(FailedPreconditionError):
                self.queue.contents()
            return
        contents = self.queue.contents()
        self.queue, made = self.make(self.queue.capacity)
        self.queue.replace(contents)
        self.reference.choose = made.choose
        self.pairs = [pair for pair in self.pairs if pair[0].result() is not None]
        self.reference.forget_who_waits()

    @invariant()
    def they_agree(self) -> None:
        for told, waiting in self.pairs:
            assert told.result() == waiting.result
        assert self.queue.size() == len(self.reference.elements)
        assert self.queue.is_closed == self.reference.closed
        assert self.queue.waiting == (
            len(self.reference.producers),
            len(self.reference.consumers),
        )


class PaddingMachine(QueueMachine):
    def make(self, capacity: int) -> tuple[Queue, Reference]:
        queue = Queue("PaddingFIFOQueue", "q", capacity, [tf.int64], [()], InOrder(), pads=True)
        return queue, Reference(capacity, 0, lambda present: 0)


class PriorityMachine(QueueMachine):
    """The element is its own priority."""

    def make(self, capacity: int) -> tuple[Queue, Reference]:
        queue = Queue("PriorityQueue", "q", capacity, [tf.int64], [()], Prioritized())
        return queue, Reference(capacity, 0, lambda present: present.index(min(present)))


class ShuffleMachine(QueueMachine):
    """Which element leaves is decided by the queue; the reference looks it up."""

    def make(self, capacity: int) -> tuple[Queue, Reference]:
        minimum = capacity // 2
        drawn: list[int] = []

        class Observed(Shuffled):
            def take(self, count: int) -> Any:
                runs = super().take(count)
                drawn.extend(int(run.element()[0]) for run in runs)
                return runs

        elements = Observed(RandomWords(1, capacity))
        queue = Queue("RandomShuffleQueue", "q", capacity, [tf.int64], [()], elements, minimum)
        return queue, Reference(capacity, minimum, lambda present: present.index(drawn.pop(0)))


for _machine in (QueueMachine, PaddingMachine, PriorityMachine, ShuffleMachine):
    _machine.TestCase.settings = settings(
        max_examples=100, stateful_step_count=30, deadline=None, derandomize=True
    )

TestFIFOQueue = QueueMachine.TestCase
TestPaddingFIFOQueue = PaddingMachine.TestCase
TestPriorityQueue = PriorityMachine.TestCase
TestRandomShuffleQueue = ShuffleMachine.TestCase
