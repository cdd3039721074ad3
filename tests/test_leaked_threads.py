"""The rule that no test leaves a thread behind is itself enforced."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests import conftest


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    """Ends the threads of these tests, whatever becomes of them."""
    event = threading.Event()
    yield event
    event.set()


def after(test: Iterator[None]) -> None:
    """What pytest does when the test is over."""
    with pytest.raises(StopIteration):
        next(test)


def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fixture, begun, with no patience."""
    monkeypatch.setattr(conftest, "LEAVING_SECONDS", 0.0)
    test = conftest.leaves_no_thread()
    next(test)
    return test


def test_a_thread_that_a_test_leaves_running_fails_it(monkeypatch, stop):
    test = guarded(monkeypatch)
    thread = threading.Thread(target=stop.wait, name="left-behind", daemon=True)
    thread.start()
    with pytest.raises(pytest.fail.Exception, match="still running: left-behind"):
        next(test)
    stop.set()
    thread.join()


def test_a_thread_that_has_ended_does_not(monkeypatch):
    test = guarded(monkeypatch)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    after(test)


def test_nor_does_one_that_was_there_before(monkeypatch, stop):
    thread = threading.Thread(target=stop.wait, daemon=True)
    thread.start()
    after(guarded(monkeypatch))
    stop.set()
    thread.join()


def test_one_that_is_about_to_end_is_waited_for(monkeypatch, stop):
    test = conftest.leaves_no_thread()
    next(test)
    thread = threading.Thread(target=stop.wait, daemon=True)
    join = threading.Thread.join

    def end_then_join(self: threading.Thread, timeout: float | None = None) -> None:
        stop.set()  # what it waits for comes while it is waited for
        join(self, timeout)

    thread.start()
    monkeypatch.setattr(threading.Thread, "join", end_then_join)
    after(test)


def test_every_test_is_guarded(request):
    assert "_no_leaked_threads" in request.fixturenames
