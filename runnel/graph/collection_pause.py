"""Pauses Python's cyclic collector while a graph grows or a step is prepared.

Both make hundreds of thousands of objects that live on. The collector would look through them again
and again, for half of the whole time, and find nothing.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Guards what follows. A thread may come here again while it holds it: from a finalizer.
_lock = threading.RLock()
_pauses = 0
_resumes = False
"""Whether the collector was on before the first of the pauses."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """No cyclic garbage is collected in the block, in no thread.

    For work of ours that is over soon: nothing in it may wait for another step.
    """
    global _pauses, _resumes
    with _lock:
        if _pauses == 0:
            _resumes = gc.isenabled()
        _pauses += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _pauses = max(0, _pauses - 1)  # it is 0 already in a child that was made in the block
            if _pauses == 0 and _resumes:
                gc.enable()


def _resume_in_child() -> None:
    """A child process has none of the threads that have paused."""
    global _lock, _pauses
    _lock = threading.RLock()
    if _pauses and _resumes:
        gc.enable()
    _pauses = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
