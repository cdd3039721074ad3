"""The stack of default sessions of each thread.

It stands in the description layer so that ``Tensor.eval`` can find a session without this
layer knowing what a session is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()


def get_default_session() -> Any:
    """The innermost default session of this thread, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


def push_default_session(session: Any) -> None:
    """Makes ``session`` the default of this thread until :func:`remove_default_session`."""
    _stack.sessions.append(session)


def remove_default_session(session: Any) -> None:
    """Takes the newest entry of ``session`` off this thread's stack, if there is one."""
    for position in reversed(range(len(_stack.sessions))):
        if _stack.sessions[position] is session:
            del _stack.sessions[position]
            return


@contextmanager
def default_session(session: Any) -> Iterator[Any]:
    """Within the block, ``session`` is this thread's default session."""
    push_default_session(session)
    try:
        yield session
    finally:
        remove_default_session(session)
