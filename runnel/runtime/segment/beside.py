"""Compiles beside steps: few segments at a time, and in short turns with the steps."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from runnel.runtime.state.at_exit import is_exiting
from runnel.runtime.state.in_thread import in_thread

_MOST = 2
"""Compilations at a time; what is hot meanwhile waits for its turn, interpreted."""
_TURN_SECONDS = 1e-4
"""For how long a thread keeps Python's lock when another wants it, while something is compiled.
A step gives the lock back in every operation on a large array; with Python's own 5 ms it would then
wait that long for the thread that traces, each time."""

THREAD_NAME = "runnel: compiles beside steps"

# Guards what follows.
_lock = threading.Lock()
_running = 0
_usual_turn = 0.0


def begin_beside(function: Callable[[], None]) -> Future[None] | None:
    """What becomes of ``function``, called beside the steps; None when not now."""
    global _running, _usual_turn
    with _lock:
        if _running == _MOST or is_exiting():
            return None
        if _running == 0:
            _usual_turn = sys.getswitchinterval()
            sys.setswitchinterval(min(_TURN_SECONDS, _usual_turn))
        _running += 1
    return in_thread(partial(_run, function), THREAD_NAME)


def _run(function: Callable[[], None]) -> None:
    global _running
    try:
        function()
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                sys.setswitchinterval(_usual_turn)
