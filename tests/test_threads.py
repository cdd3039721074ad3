"""Threads as many as are needed: everything is done once, by no more than are allowed."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest

from runnel.threads import Threads

SECONDS = 60


@pytest.fixture
def pools() -> Any:
    found: list[Threads] = []
    yield found
    for pool in found:
        pool.close()


@pytest.mark.parametrize("most", [1, 3, 100])
def test_everything_is_done_by_at_most_so_many(pools, most):
    pool = Threads("few", most)
    pools.append(pool)
    lock, at_once, most_seen = threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal at_once, most_seen
        with lock:
            at_once += 1
            most_seen = max(most_seen, at_once)
        with lock:
            at_once -= 1
        return number

    for _ in range(3):  # threads that were idle are used again
        futures = [pool.submit(work, number) for number in range(50)]
        assert [future.result(SECONDS) for future in futures] == list(range(50))
    assert most_seen <= most
    pool.close()
    for thread in threading.enumerate():
        if thread.name == "few":
            thread.join(SECONDS)
    assert pool.busy == 0


def test_what_has_not_begun_when_it_is_closed_is_dropped_and_what_has_is_done(pools):
    pool = Threads("one", 1)
    pools.append(pool)
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> str:
        begun.set()
        assert may_end.wait(SECONDS)
        return "done"

    first, second = pool.submit(wait), pool.submit(wait)
    assert begun.wait(SECONDS)
    pool.close()
    may_end.set()
    assert first.result(SECONDS) == "done"
    with pytest.raises(CancelledError):
        second.result(SECONDS)
    with pytest.raises(RuntimeError):
        pool.submit(wait)


def test_an_error_is_the_result_and_the_thread_goes_on(pools):
    pool = Threads("one", 1)
    pools.append(pool)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(SECONDS)
    assert pool.submit(lambda: 2).result(SECONDS) == 2
