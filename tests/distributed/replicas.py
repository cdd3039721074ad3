"""Workers of a job in threads, each with its own graph and its own session on its own task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import runnel as tf

LIMIT = 60.0


def replica_device(spec: Any, index: int) -> Any:
    """Variables on parameter servers, the rest on the worker ``index``."""
    return tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=spec)
    )


def monitored(target: str, is_chief: bool, *hooks: Any, **options: Any) -> Any:
    """A monitored session that saves nothing unless told to."""
    return tf.train.MonitoredTrainingSession(
        target, is_chief, hooks=list(hooks), log_step_count_steps=None, **options
    )


def run_all(*workers: Callable[[], None]) -> None:
    """Runs the workers at once, and raises what the first of them raised."""
    raised: list[BaseException] = []

    def guarded(worker: Callable[[], None]) -> None:
        try:
            with tf.Graph().as_default():
                worker()
        except BaseException as error:  # noqa: BLE001 (raised below)
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    if raised:
        raise raised[0]
    assert not any(thread.is_alive() for thread in threads)
