"""SIGTERM as an exception, for a program that only waits for its server."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DRAIN_SECONDS = 30.0
"""How long running steps are given when a task is told to end."""


class ToldToEnd(BaseException):
    """The process got a SIGTERM."""


@contextmanager
def told_to_end() -> Iterator[None]:
    """Within, SIGTERM raises :class:`ToldToEnd`; only where the program leaves it to the system.

    An exception, and no event that a handler sets: the thread that waits for the event may be the
    one that runs the handler, and hold the event's lock.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    try:
        signal.signal(signal.SIGTERM, _raise)
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(*_: Any) -> None:
    raise ToldToEnd
