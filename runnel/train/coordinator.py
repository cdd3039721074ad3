"""Coordinator: several threads that stop together, and the first exception of any of them."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from runnel.graph.errors import OutOfRangeError

logger = logging.getLogger("runnel")

# How soon ``join`` notices that the threads should stop, while it waits for one to end.
_NOTICES_STOP_WITHIN = 0.05

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """Lets threads ask one another to stop, and a main thread wait for all of them.

    A thread calls ``should_stop`` now and then; any thread calls ``request_stop``, with an
    exception if something has failed. ``join`` waits for the threads and raises that exception.
    The types in ``clean_stop_exception_types`` (OutOfRangeError: the input has ended) stop
    the threads too, but ``join`` does not raise them.

    Example:
        >>> coord = tf.train.Coordinator()
        >>> threads = tf.train.start_queue_runners(sess, coord)
        >>> with coord.stop_on_exception():
        ...     while not coord.should_stop():
        ...         sess.run(train_op)
        >>> coord.request_stop()
        >>> coord.join(threads)
    """

    def __init__(
        self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None
    ) -> None:
        self._clean = tuple(clean_stop_exception_types or (OutOfRangeError,))
        # Guards what follows; the event is set while it is held.
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._exception: _ExceptionInfo | None = None
        self._joined = False
        self._registered: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop; ``ex`` is the exception (or ``sys.exc_info()``) behind it.

        Only the first exception is kept. After ``join``, an exception is raised here instead.
        """
        with self._lock:
            given = self._serious(ex)
            if self._joined:
                if given is not None:
                    raise given[1].with_traceback(given[2])
                return
            if not self._stop.is_set():
                if given is not None:
                    logger.info("A thread asks the others to stop: %s", given[1])
                    self._exception = given
                self._stop.set()

    def _serious(self, ex: Any) -> _ExceptionInfo | None:
        """``ex`` with its traceback, unless it is a reason to stop without an error."""
        if ex is None:
            return None
        if isinstance(ex, tuple):
            kind, error, trace = ex
            if not isinstance(error, BaseException):
                return None
        else:
            if not isinstance(ex, BaseException):
                raise TypeError(f"request_stop takes an exception, not {ex!r}")
            kind, error = type(ex), ex
            trace = ex.__traceback__ or sys.exc_info()[2]
        return None if isinstance(error, self._clean) else (kind, error, trace)

    def clear_stop(self) -> None:
        """Forgets that a stop was requested, so that the coordinator can be used again."""
        with self._lock:
            self._joined = False
            self._exception = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """True when a stop was requested."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """An exception in the block is a request to stop; it goes no further.

        Example:
            >>> with coord.stop_on_exception():
            ...     sess.run(train_op)
        """
        try:
            yield
        except BaseException:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested, for ``timeout`` seconds at most; True if it was."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread to those that ``join`` waits for."""
        with self._lock:
            self._registered.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for the threads (and those registered) to end; raises the exception of one.

        Once a stop has been requested they have ``stop_grace_period_secs`` to end. A
        RuntimeError names those that are still alive then, unless ``ignore_live_threads``.
        """
        with self._lock:
            awaited = [*self._registered.union(threads or ())]
        for thread in awaited:
            while thread.is_alive() and not self._stop.is_set():
                thread.join(_NOTICES_STOP_WITHIN)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in awaited:
            if thread.is_alive():
                thread.join(max(deadline - time.monotonic(), 0))
        alive = [thread.name for thread in awaited if thread.is_alive()]
        with self._lock:
            self._joined = True
            self._registered = set()
            if self._exception is not None:
                raise self._exception[1].with_traceback(self._exception[2])
            if alive and not ignore_live_threads:
                raise RuntimeError(
                    f"Coordinator stopped with threads still running: {', '.join(alive)}. They had "
                    f"{stop_grace_period_secs} s; a thread that blocks in session.run ends when "
                    "its queue or its session is closed"
                )
        if alive:
            logger.info("Coordinator stopped with threads still running: %s", ", ".join(alive))

    @property
    def joined(self) -> bool:
        """True when ``join`` has returned or raised."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the exception that a stop was requested with, if there was one."""
        with self._lock:
            if self._exception is not None:
                raise self._exception[1].with_traceback(self._exception[2])


class LooperThread(threading.Thread):
    """A thread that does something again and again until its coordinator stops it.

    ``target`` (or an overridden ``run_loop``) is called every ``timer_interval_secs``, or without
    a pause if that is None.

    Example:
        >>> saver = tf.train.LooperThread.loop(coord, 600, save, args=(sess,))
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord!r}")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._call = target
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        self._call_args = tuple(args or ())
        self._call_kwargs = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Makes and starts a thread that calls ``target`` again and again."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._interval is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(due - time.monotonic(), 0)):
                    due += self._interval
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called when the thread starts."""

    def stop_loop(self) -> None:
        """Called when the thread stops."""

    def run_loop(self) -> None:
        """Called again and again."""
        if self._call is not None:
            self._call(*self._call_args, **self._call_kwargs)
