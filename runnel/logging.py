"""``tf.logging``: what a program, and runnel itself, has to say, on standard error."""

from __future__ import annotations

import logging as _logging
import sys
from collections import Counter
from typing import Any

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "TaskLevelStatusMessage",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

DEBUG = _logging.DEBUG
ERROR = _logging.ERROR
FATAL = _logging.FATAL
INFO = _logging.INFO
WARN = _logging.WARN

_logger = _logging.getLogger("runnel")
_said: Counter[tuple[str, int]] = Counter()


class _Standard(_logging.StreamHandler[Any]):
    """Writes to what is standard error at the moment, unless the program handles logs itself."""

    def emit(self, record: _logging.LogRecord) -> None:
        if not _logging.getLogger().handlers:
            self.setStream(sys.stderr)
            super().emit(record)


def _prepared() -> _logging.Logger:
    if not any(isinstance(handler, _Standard) for handler in _logger.handlers):
        handler = _Standard()
        text = "%(levelname).1s%(asctime)s %(filename)s:%(lineno)d] %(message)s"
        handler.setFormatter(_logging.Formatter(text, "%m%d %H:%M:%S"))
        _logger.addHandler(handler)
        if _logger.level == _logging.NOTSET:
            _logger.setLevel(WARN)
    return _logger


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says something to who looks for an error."""
    _prepared().debug(msg, *args, stacklevel=2, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says something that is as it should be."""
    _prepared().info(msg, *args, stacklevel=2, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says that something may be wrong."""
    _prepared().warning(msg, *args, stacklevel=2, **kwargs)


def warn(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says that something may be wrong."""
    _prepared().warning(msg, *args, stacklevel=2, **kwargs)


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says that something is wrong."""
    _prepared().error(msg, *args, stacklevel=2, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says that something is so wrong that the program will hardly go on."""
    _prepared().fatal(msg, *args, stacklevel=2, **kwargs)


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says something at one of the levels above."""
    _prepared().log(level, msg, *args, stacklevel=2, **kwargs)


def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Says something at one of the levels above."""
    _prepared().log(level, msg, *args, stacklevel=2, **kwargs)


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Says something if ``condition`` holds."""
    if condition:
        _prepared().log(level, msg, *args, stacklevel=2)


def _times() -> int:
    """How often the line of the caller's caller has been here before."""
    frame = sys._getframe(2)
    place = frame.f_code.co_filename, frame.f_lineno
    _said[place] += 1
    return _said[place] - 1


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Says something the first time that this line is reached, and every ``n`` times."""
    if _times() % n == 0:
        _prepared().log(level, msg, *args, stacklevel=2)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Says something the first ``n`` times that this line is reached."""
    if _times() < n:
        _prepared().log(level, msg, *args, stacklevel=2)


def TaskLevelStatusMessage(msg: Any) -> None:  # noqa: N802 (TensorFlow's name)
    """Says how a task is doing."""
    _prepared().error(msg, stacklevel=2)


def flush() -> None:
    """Has everything that was said be written."""
    for handler in _logger.handlers:
        handler.flush()


def get_verbosity() -> int:
    """The level from which on something is shown."""
    return _prepared().getEffectiveLevel()


def set_verbosity(v: int) -> None:
    """Shows what is said at the level ``v`` and above.

    Example:
        >>> tf.logging.set_verbosity(tf.logging.INFO)
    """
    _prepared().setLevel(v)


def __dir__() -> list[str]:
    return __all__


def get_logger() -> _logging.Logger:
    """The logger that all of these write to (``tf.get_logger``)."""
    return _logger
