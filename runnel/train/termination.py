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
        self._stop = stop
        self._session: Any = None
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

    def _handle(self, *_: Any) -> None:
        logger.warning("SIGTERM: the session ends after this step")
        self.told = True
        self._stop()
        interrupt = getattr(self._session, "_interrupt_steps_of", None)
        if interrupt is not None:
            interrupt(threading.get_ident(), "SIGTERM asks the program to leave")

    def require_untold(self) -> None:
        """The end of the input, once there was a SIGTERM: no step begins any more."""
        if self.told:
            raise errors.OutOfRangeError(None, None, "SIGTERM asks the program to leave")

    def ended(self, error: Exception) -> bool:
        """True where ``error`` is how a step ended that SIGTERM has interrupted."""
        return self.told and isinstance(error, errors.CancelledError)
