"""A thread whose exception is its test's failure."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable
from typing import Any


class CheckedThread:
    """A thread that reports its exception to the test that joins it."""

    def __init__(
        self,
        testcase: unittest.TestCase,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self._testcase = testcase
        self._call = (target, args, kwargs or {})
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        target, args, kwargs = self._call
        try:
            target(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (handed to the joining thread)
            self._error = error

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self, timeout: float = 60.0) -> None:
        """Waits for the thread; fails the test if it raised or did not end in time."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._testcase.fail(f"A checked thread did not end within {timeout} s")
        if self._error is not None:
            raise self._testcase.failureException(
                f"Error in checked thread: {self._error!r}"
            ) from self._error

    def is_alive(self) -> bool:
        """True while the thread runs."""
        return self._thread.is_alive()
