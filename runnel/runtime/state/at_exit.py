"""Ends running steps at the end of the process, while daemon threads still run them.

Python ends a daemon thread where it next asks for the interpreter's lock. If that is in a call of
compiled code, or in JAX while it traces, the thread is unwound through C++ functions that must not
be unwound, and the process aborts (until Python 3.14, which lets such a thread sleep instead). So,
before the interpreter is finalized, running steps are cancelled, and no thread but the one that
ends the process begins another. A thread that does not look whether its step is cancelled, because
JAX traces on it, is made to call ``sys.exit``, in effect.

A thread inside one long call of native code (XLA compiles, or computes without looking at the step)
cannot be reached. The process waits for it a little, and then leaves it behind where the system's
libraries allow it: the thread sleeps once Python ends it, and the process ends without waiting for
native threads as soon as the interpreter has been finalized.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterable
from inspect import unwrap
from types import CodeType, FrameType
from typing import Any

_PATIENCE = 30.0
"""Seconds for which the end of the process waits for threads that are inside steps, where it cannot
leave them behind."""
_SHORT_PATIENCE = 1.0
"""The same where it can."""
_GRACE = 1.0
"""Seconds for which it waits for a thread that has left its step to end: it may not want to."""
_NOTICE = 0.5
"""Seconds in which a cancelled step may end by itself, before its thread is told to end, and again
if it has gone on. One that runs a compiled loop had better not be told: that may ask Python."""
_INTERVAL = 0.005

_waits: list[Callable[[], None]] = []
_cancels: list[Callable[[], None]] = []
_reports: list[Callable[[], None]] = []
_entrances: set[CodeType] = set()
_ended_by: threading.Thread | None = None
"""The thread that ends the process, once it does."""


def cancel_at_exit(cancel: Callable[[], None], inside: Iterable[Callable[..., Any]]) -> None:
    """Declares how running steps are cancelled, and the functions that a step's thread is in.

    ``cancel`` may be called several times, and must neither raise nor block.
    """
    _cancels.append(cancel)
    _entrances.update(unwrap(function).__code__ for function in inside)


def let_end_at_exit(wait: Callable[[], None]) -> None:
    """Has ``wait`` called before steps are cancelled; it returns soon, and does not raise."""
    _waits.append(wait)


def report_at_exit(report: Callable[[], None]) -> None:
    """Has ``report`` called when no step runs any more; it says what nobody has been told."""
    _reports.append(report)


def install() -> None:
    """Has running steps end before the process does.

    What is registered last is called first. So this is done again when JAX, which takes its
    devices down at the end, has been imported.
    """
    atexit.unregister(_end_steps)
    atexit.register(_end_steps)


def is_exiting() -> bool:
    """True once the process is ending."""
    return _ended_by is not None


def require_running() -> None:
    """Ends the calling thread if the process is ending, by another one."""
    if _ended_by is not None and threading.current_thread() is not _ended_by:
        raise SystemExit


def _end_steps() -> None:
    global _ended_by
    for wait in _waits:
        wait()
    _ended_by = threading.current_thread()
    sys.unraisablehook = _Quiet(sys.unraisablehook)
    own = threading.get_ident()
    look_again = threading.Event()  # never set: nothing tells when a thread leaves a function
    since: dict[int, float] = {}
    """The threads that were seen inside a step, and when, or when they were last told to end."""
    now = time.monotonic()
    leave_behind = _leaves_behind()
    deadline, left = now + (_SHORT_PATIENCE if leave_behind else _PATIENCE), now
    inside: list[int] = []
    while now < deadline:
        for cancel in _cancels:
            cancel()
        threads = sys._current_frames()
        inside = [t for t, frame in threads.items() if t != own and _is_inside(frame)]
        if inside:
            left = now
        elif since.keys().isdisjoint(threads) or now - left > _GRACE:
            break
        for thread in inside:
            if now - since.setdefault(thread, now) > _NOTICE:
                since[thread] = now
                _tell_to_end(thread)
        look_again.wait(_INTERVAL)
        now = time.monotonic()
    for report in _reports:
        report()
    if inside and leave_behind:
        leave_behind()


class _LeavesBehind:
    """Ends the process without threads that are in native code; with GNU's C and C++ libraries."""

    def __init__(self) -> None:
        """Raises OSError, TypeError or AttributeError where the system has none of that."""
        self._libc = ctypes.CDLL(None)
        self._set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        self._on_exit = self._libc.on_exit
        self._exit = ctypes.cast(self._libc._exit, ctypes.c_void_p)
        self._pause = ctypes.cast(self._libc.pause, ctypes.c_void_p)

    def __call__(self) -> None:
        # XLA's compiler asks for the interpreter's lock several times a second, so Python ends its
        # thread. That unwinds through functions which must not be unwound, and so comes to
        # std::terminate: there the thread sleeps.
        self._set_terminate(self._pause)
        # What is registered last is called first, with the process's status. Python has then been
        # finalized, and has written its files.
        self._libc.fflush(None)
        self._on_exit(self._exit, None)


def _leaves_behind() -> _LeavesBehind | None:
    try:
        return _LeavesBehind()
    except (OSError, TypeError, AttributeError):
        return None


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _entrances:
            return True
        frame = frame.f_back
    return False


class _Quiet:
    """Reports what was raised where nothing can be, like ``outer``; but not a thread's end."""

    def __init__(self, outer: Callable[[Any], object]) -> None:
        self._outer = outer

    def __call__(self, unraisable: Any) -> None:
        if unraisable.exc_type is not SystemExit:
            self._outer(unraisable)


def _tell_to_end(thread: int) -> None:
    """Raises SystemExit in ``thread`` when it next runs Python code: it ends without a word."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
