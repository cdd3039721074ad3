"""``slim.queues``: queue runners for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.train.coordinator import Coordinator
from runnel.train.queue_runner import start_queue_runners

__all__ = ["NestedQueueRunnerError", "QueueRunners"]


class NestedQueueRunnerError(Exception):
    """Queue runners were started inside a block that has started them."""


_running: set[int] = set()
"""The sessions, by identity, in whose blocks we are."""


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:  # noqa: N802 (TensorFlow's name)
    """Starts the queue runners of the graph; stops them at the end of the block."""
    if id(session) in _running:
        raise NestedQueueRunnerError("Queue runners of this session have been started already")
    coordinator = Coordinator()
    _running.add(id(session))
    threads: list[Any] = []
    try:
        threads = start_queue_runners(sess=session, coord=coordinator)
        yield
    finally:
        _running.discard(id(session))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)


def __dir__() -> list[str]:
    return __all__
