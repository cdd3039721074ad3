"""The rendezvous against a reference, in any order of sending, receiving, cancelling, aborting."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runnel.graph.errors import AbortedError, InternalError, UnavailableError
from runnel.queues.rendezvous import DEAD, Rendezvous
from runnel.queues.waiter import WAITING
from tests.queues.told import Told

KEYS = st.sampled_from("abc")


class Receiving(Told):
    """A waiter that keeps values as they are."""

    def result(self) -> Any:
        if self.outcome is not None and callable(self.outcome[1]) and self.outcome[0] == "done":
            self.outcome = ("done", self.outcome[1]())
        return self.outcome


class RendezvousMachine(RuleBasedStateMachine):
    """For each key the reference has a list of values that were left, and who waits."""

    @initialize()
    def begin(self) -> None:
        self.rendezvous = Rendezvous()
        self.left: dict[str, Any] = {}
        self.waiting: dict[str, Receiving] = {}
        self.told: list[tuple[Receiving, Any]] = []
        self.error: Exception | None = None

    @rule(key=KEYS, value=st.integers(), dead=st.booleans())
    def send(self, key: str, value: int, dead: bool) -> None:
        sent = DEAD if dead else value
        if self.error is not None:
            with pytest.raises(type(self.error)) as caught:
                self.rendezvous.put(key, DEAD if dead else value)
            assert caught.value is self.error
        elif key in self.left:
            with pytest.raises(InternalError, match="twice"):
                self.rendezvous.put(key, DEAD if dead else value)
        else:
            self.rendezvous.put(key, DEAD if dead else value)
            if key in self.waiting:
                self.told.append((self.waiting.pop(key), ("done", (sent,))))
            else:
                self.left[key] = sent

    @rule(key=KEYS)
    def receive(self, key: str) -> None:
        waiter = Receiving()
        if self.error is not None:
            with pytest.raises(type(self.error)) as caught:
                self.rendezvous.recv(key, waiter)
            assert caught.value is self.error
        elif key in self.left:
            assert self.rendezvous.recv(key, waiter) == (self.left.pop(key),)
            self.told.append((waiter, None))
        elif key in self.waiting:
            with pytest.raises(InternalError, match="Two operations"):
                self.rendezvous.recv(key, waiter)
        else:
            assert self.rendezvous.recv(key, waiter) is WAITING
            assert waiter.place is self.rendezvous
            self.waiting[key] = waiter

    @rule(key=KEYS)
    def cancel(self, key: str) -> None:
        if key in self.waiting:
            waiter = self.waiting.pop(key)
            assert self.rendezvous.cancel(waiter)
            assert not self.rendezvous.cancel(waiter)
            self.told.append((waiter, None))
        for waiter, _ in self.told:
            assert not self.rendezvous.cancel(waiter)

    @rule(error=st.sampled_from([AbortedError, UnavailableError]))
    def abort(self, error: Any) -> None:
        raised = error(None, None, "a part failed")
        self.rendezvous.abort(raised)
        if self.error is None:
            self.error = raised
            self.left.clear()
            self.told += [(waiter, ("failed", error)) for waiter in self.waiting.values()]
            self.waiting.clear()

    @invariant()
    def they_agree(self) -> None:
        assert self.rendezvous.error is self.error
        for waiter, expected in self.told:
            assert waiter.result() == expected
        for waiter in self.waiting.values():
            assert waiter.result() is None


RendezvousMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=25, deadline=None, derandomize=True
)
TestRendezvous = RendezvousMachine.TestCase


def test_every_value_reaches_its_receiver_whichever_thread_comes_first():
    rendezvous = Rendezvous()
    count, waiters = 500, [Receiving() for _ in range(500)]

    def send() -> None:
        for number in range(count):
            rendezvous.put(str(number), number)

    def receive() -> None:
        for number in reversed(range(count)):
            got = rendezvous.recv(str(number), waiters[number])
            if got is not WAITING:
                waiters[number].complete(lambda got=got: got)

    threads = [threading.Thread(target=run) for run in (send, receive)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, waiter in enumerate(waiters):
        assert waiter.event.wait(60)
        assert waiter.result() == ("done", (number,))


def test_what_a_lost_task_sends_is_not_waited_for():
    rendezvous = Rendezvous()
    first, second = (f"/job:ps/replica:0/task:{i}/device:CPU:0;1;here;" for i in (1, 10))
    waiters = [Receiving() for _ in range(3)]
    for waiter, key in zip(waiters, [first + "a", second + "a", first + "b"], strict=True):
        assert rendezvous.recv(key, waiter) is WAITING
    rendezvous.put(first + "b", 1)
    rendezvous.put(first + "c", 2)
    rendezvous.lose("/job:ps/replica:0/task:1", UnavailableError(None, None, "lost"))
    rendezvous.put(second + "a", 3)
    results = [waiter.result() for waiter in waiters]
    assert results == [("failed", UnavailableError), ("done", (3,)), ("done", (1,))]
    assert rendezvous.recv(first + "c", Receiving()) == (2,)  # it had come before
    with pytest.raises(UnavailableError):
        rendezvous.recv(first + "d", Receiving())
