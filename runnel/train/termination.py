"""SIGTERM as a wish: a training job saves and leaves, rather than being cut off."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from runnel.graph import errors

logger = logging.getLogger("runnel")


class Termination:
    """Within, SIGTERM calls ``stop`` and ends a step that waits for input.

    A step that computes is completed: what is saved then is what a whole number of steps made.
    A program that handles SIGTERM itself, or whose session is not the main thread's, is left alone.

    Example:
        >>> with Termination(coord.request_stop) as termination, termination.watching(sess):
        ...     while not coord.should_stop():
        ...         sess.run(train_op)
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        """``stop`` runs amid whatever the main thread does: it must take no lock."""
        self._stop = stop
        self._session: Any = None
        self._leaves_at_once: int | None = None
        """The thread that does nothing that would have to be saved."""
        self._installed = False
        self.told = False
        """True once there was a SIGTERM."""

    def __enter__(self) -> Termination:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True
        return self

    def __exit__(self, *_: Any) -> None:
        if self._installed and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    @contextlib.contextmanager
    def watching(self, session: Any) -> Iterator[None]:
        """Within, SIGTERM ends steps of ``session`` that wait for input."""
        self._session = session
        try:
            yield
        finally:
            self.pause()

    def pause(self) -> None:
        """From now on steps may wait again: those that save."""
        calm = getattr(self._session, "_calm_steps_of", None)
        self._session = None
        if calm is not None:
            calm(threading.get_ident())

    @contextlib.contextmanager
    def leaving_at_once(self) -> Iterator[None]:
        """Within, SIGTERM raises the end of the input: there is no session, so nothing to save."""
        self._leaves_at_once = threading.get_ident()
        try:
            self.require_untold()
            yield
        finally:
            self._leaves_at_once = None

    def _handle(self, *_: Any) -> None:
        self.told = True
        self._stop()
        interrupt = getattr(self._session, "_interrupt_steps_of", None)
        if interrupt is not None:
            interrupt(threading.get_ident(), "SIGTERM asks the program to leave")
        with contextlib.suppress(RuntimeError):  # the main thread may be amid writing to stderr
            logger.warning("SIGTERM: the session ends after this step")
        if self._leaves_at_once == threading.get_ident():
            self.require_untold()

    def require_untold(self) -> None:
        """The end of the input, once there was a SIGTERM: no step begins any more."""
        if self.told:
            raise errors.OutOfRangeError(None, None, "SIGTERM asks the program to leave")

    def ended(self, error: Exception) -> bool:
        """True where ``error`` is how a step ended that SIGTERM has interrupted."""
        return self.told and isinstance(error, errors.CancelledError)
